# SPDX-License-Identifier: Apache-2.0
"""As much of torch as megalith.torch uses, over plain memory.

"cuda:0" is host memory too, as in FakeCuda.c. Values are bytes: nothing here
computes.
"""

import contextlib
import ctypes
from types import SimpleNamespace


class dtype:
    def __init__(self, name, size):
        self.name, self.size = name, size
        self.itemsize = size

    def __repr__(self):
        return "torch." + self.name


uint8, int32 = dtype("uint8", 1), dtype("int32", 4)
bfloat16, float32 = dtype("bfloat16", 2), dtype("float32", 4)
float16 = dtype("float16", 2)
contiguous_format = object()
Size = tuple


class device:
    def __init__(self, text, index=None):
        kind, _, ordinal = str(text).partition(":")
        self.type = kind
        self.index = int(ordinal) if ordinal else index

    def __eq__(self, other):
        return (isinstance(other, device)
                and (self.type, self.index) == (other.type, other.index))

    def __hash__(self):
        return hash((self.type, self.index))

    def __repr__(self):
        return self.type + ("" if self.index is None else f":{self.index}")


class Tensor:
    def __init__(self, storage, offset, shape, strides, dtype, device):
        self.storage, self.offset = storage, offset
        self.shape, self.strides = Size(shape), tuple(strides)
        self.dtype, self.device = dtype, device
        self._version = 0

    def data_ptr(self):
        if self.numel() == 0:
            return 0  # as torch does
        return ctypes.addressof(self.storage) + self.offset

    @property
    def ndim(self):
        return len(self.shape)

    def numel(self):
        count = 1
        for dim in self.shape:
            count *= dim
        return count

    def element_size(self):
        return self.dtype.size

    @property
    def nbytes(self):
        return self.numel() * self.dtype.size

    def stride(self):
        return self.strides

    def is_contiguous(self):
        return self.numel() == 0 or self.strides == _strides(self.shape)

    def detach(self):
        return self

    def contiguous(self):
        return self if self.is_contiguous() else self.clone()

    def as_strided(self, shape, strides):
        return Tensor(self.storage, self.offset, shape, strides, self.dtype,
                      self.device)

    def narrow(self, dim, start, length):
        assert dim == 0 and 0 <= start and start + length <= self.shape[0]
        return Tensor(self.storage,
                      self.offset + start * self.strides[0] * self.dtype.size,
                      (length,) + self.shape[1:], self.strides, self.dtype,
                      self.device)

    def __getitem__(self, rows):
        assert rows.start is None and rows.step is None
        return self.narrow(0, 0, rows.stop)

    def clone(self, memory_format=None):
        assert self.numel() == 0 or len(self.shape) == 1 or (
            self.is_contiguous())
        copy = empty(self.shape, dtype=self.dtype, device=self.device)
        ctypes.memmove(copy.data_ptr(), self.data_ptr(), self.nbytes)
        return copy

    def copy_(self, other):
        assert self.shape == other.shape and self.dtype is other.dtype
        ctypes.memmove(self.data_ptr(), other.data_ptr(), self.nbytes)
        self._version += 1
        return self

    def to(self, target):
        if isinstance(target, dtype):
            return empty(self.shape, dtype=target, device=self.device)
        copy = self.clone()
        copy.device = _device(target)
        return copy

    def view(self, *shape):
        shape = tuple(shape[0]) if len(shape) == 1 else shape
        assert self.is_contiguous()
        return self.as_strided(shape, _strides(shape))

    def unbind(self, dim):
        assert dim == 0
        step = self.strides[0] * self.dtype.size
        return [Tensor(self.storage, self.offset + row * step, self.shape[1:],
                       self.strides[1:], self.dtype, self.device)
                for row in range(self.shape[0])]

    def bfloat16(self):
        return self.to(bfloat16)

    def __repr__(self):
        return f"tensor({list(self.shape)}, {self.dtype}, {self.device})"

    # For tests.
    def bytes(self):
        return ctypes.string_at(self.data_ptr(), self.nbytes)

    def fill(self, data):
        assert len(data) == self.nbytes, (len(data), self.nbytes)
        ctypes.memmove(self.data_ptr(), data, len(data))
        self._version += 1
        return self


def _strides(shape):
    strides, unit = [], 1
    for dim in reversed(shape):
        strides.insert(0, unit)
        unit *= dim
    return tuple(strides)


def _device(given):
    if given is None:
        return device("cpu")
    result = given if isinstance(given, device) else device(given)
    return device("cuda:0") if result == device("cuda") else result


def empty(*shape, dtype=float32, device=None):
    if len(shape) == 1 and isinstance(shape[0], (tuple, list)):
        shape = tuple(shape[0])
    size = dtype.size
    for dim in shape:
        size *= dim
    storage = (ctypes.c_char * (size + 256))()
    return Tensor(storage, -ctypes.addressof(storage) % 256, shape,
                  _strides(shape), dtype, _device(device))


zeros = empty
randn = empty


def frombuffer(data, dtype):
    tensor = empty(len(data) // dtype.size, dtype=dtype)
    return tensor.fill(bytes(data))


def from_dlpack(array):
    """Memory of another library, which it keeps alive."""
    capsule = array.__dlpack__(stream=cuda.current_stream().cuda_stream)
    assert array.__dlpack_device__() == (2, 0)
    kind = {"bf16": bfloat16, "f32": float32}[array.dtype]
    storage = ctypes.c_char.from_address(array.data_ptr())
    tensor = Tensor(storage, 0, array.shape, _strides(array.shape), kind,
                    device("cuda:0"))
    tensor.capsule = capsule
    return tensor


def empty_like(tensor):
    return empty(tensor.shape, dtype=tensor.dtype, device=tensor.device)


@contextlib.contextmanager
def inference_mode(mode=True):
    yield


no_grad = inference_mode
is_grad_enabled = is_inference_mode_enabled = lambda: False
_C = SimpleNamespace(_cuda_getCurrentRawStream=lambda ordinal: 0x5000 + ordinal)
cuda = SimpleNamespace(
    current_device=lambda: 0,
    current_stream=lambda ordinal=0: SimpleNamespace(cuda_stream=0))


def Parameter(tensor, requires_grad=True):
    return tensor


class Module:
    def __init__(self):
        self._parameters, self._buffers, self._modules = {}, {}, {}

    def state_dict(self, prefix=""):
        found = {prefix + name: tensor for table in
                 (self._parameters, self._buffers)
                 for name, tensor in table.items()}
        for name, child in self._modules.items():
            found.update(child.state_dict(prefix + name + "."))
        return found

    def load_state_dict(self, given, strict=True):
        own = self.state_dict()
        if strict and set(own) != set(given):
            raise RuntimeError(f"keys differ: {set(own) ^ set(given)}")
        for name in set(own) & set(given):
            if own[name].shape != given[name].shape:
                raise RuntimeError(f"size mismatch for {name}")
            own[name].copy_(given[name])

    def _apply(self, fn):
        for child in self._modules.values():
            child._apply(fn)
        for table in (self._parameters, self._buffers):
            for name, tensor in table.items():
                table[name] = fn(tensor)
        return self

    def to(self, target):
        return self._apply(lambda tensor: tensor.to(target))

    def cpu(self):
        return self._apply(lambda tensor: tensor
                           if tensor.device.type == "cpu" else tensor.to("cpu"))

    def half(self):
        return self.to(float16)

    def __call__(self, *arguments):
        return self.forward(*arguments)


nn = SimpleNamespace(Module=Module, Parameter=Parameter)

# SPDX-License-Identifier: Apache-2.0
"""A block on a device: weights, state, and one launch a step."""

from __future__ import annotations

import ctypes
import os
import weakref
from ctypes import byref, c_int64, c_void_p
from typing import Any, Dict, List, Mapping, Optional, Tuple, Union

from . import _arrays, _dlpack, _driver
from ._library import (DTYPE_CODES, WeightEntry, check, library,
                       name_bytes)
from .bundle import Bundle, PathLike, Tensor
from .errors import InvalidArgument, Mismatch, NotFound

_TYPESTR = {"u8": "|u1", "i32": "<i4", "bf16": "<V2", "f32": "<f4"}
#: megalith_cache_capacity of a block that nothing bounds.
_UNBOUNDED = 2**63 - 1


class DeviceArray:
    """Device memory that other libraries read without a copy.

    >>> torch.from_dlpack(array)
    >>> jax.dlpack.from_dlpack(array)
    >>> cupy.asarray(array)         # but for bf16, which CuPy lacks

    `dtype` is "u8", "i32", "bf16" or "f32"; the shape is row-major. The memory
    lives as long as the array or any array made from it does.
    """

    def __init__(self, pointer: int, dtype: str, shape: Tuple[int, ...],
                 device: int, owner: Any, stream: int) -> None:
        #: Device address.
        self.pointer = pointer
        self.dtype = dtype
        self.shape = shape
        #: CUDA device ordinal.
        self.device = device
        self._owner = owner
        self._stream = stream

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return _arrays.Memory(0, self.dtype, self.shape, None, None).nbytes

    def data_ptr(self) -> int:
        """The device address, as torch calls it."""
        return self.pointer

    def to_host(self) -> memoryview:
        """A host copy of the bytes, after all work of the context."""
        return memoryview(_driver.copy_to_host(self.device, self.pointer,
                                               self.nbytes))

    def __dlpack_device__(self) -> Tuple[int, int]:
        return (_dlpack.CUDA, self.device)

    def __dlpack__(self, *, stream: Optional[int] = None,
                   max_version: Optional[Tuple[int, int]] = None,
                   dl_device: Optional[Tuple[int, int]] = None,
                   copy: Optional[bool] = None) -> Any:
        if copy or dl_device not in (None, self.__dlpack_device__()):
            raise BufferError("a megalith array is exported in place only")
        # 1 is the legacy default stream, which is 0 elsewhere; -1: no wait.
        wanted = 0 if stream in (None, 1) else stream
        if wanted not in (-1, self._stream):
            _driver.synchronize(self.device)
        return _dlpack.export(self.pointer, self.dtype, self.shape,
                              self.__dlpack_device__(), self)

    @property
    def __cuda_array_interface__(self) -> Dict[str, Any]:
        return {"version": 3, "shape": self.shape,
                "typestr": _TYPESTR[self.dtype], "strides": None,
                "data": (self.pointer, False), "stream": self._stream or 1}

    def __repr__(self) -> str:
        return (f"<megalith.DeviceArray {self.dtype} {list(self.shape)} on "
                f"cuda:{self.device}>")


class _Handle:
    """A megalith_instance, destroyed with the last thing that uses it."""

    def __init__(self, bundle: Bundle, device: int, capacity: int) -> None:
        handle = c_void_p()
        opened = library()
        check(opened.megalith_instance_create(bundle._handle, device, capacity,
                                              byref(handle)))
        self.value = handle.value
        weakref.finalize(self, opened.megalith_instance_destroy, handle)


class _Outputs:
    """Buffers for outputs, taken again once nobody holds them. Steps of an
    instance are ordered, so a buffer is not written before it was read."""

    def __init__(self, device: int, nbytes: int) -> None:
        self._device = device
        self._nbytes = max(nbytes, 1)
        self._free: List[int] = []
        self._all: List[int] = []
        weakref.finalize(self, _Outputs._release, device, self._all)

    @staticmethod
    def _release(device: int, pointers: List[int]) -> None:
        for pointer in pointers:
            _driver.free(device, pointer)

    def take(self) -> Tuple[int, "_Lease"]:
        if not self._free:
            pointer = _driver.allocate(self._device, self._nbytes)
            self._all.append(pointer)
            self._free.append(pointer)
        pointer = self._free.pop()
        return pointer, _Lease(self, pointer)

    def give(self, pointer: int) -> None:
        self._free.append(pointer)


class _Lease:
    """Gives its buffer back when it dies."""

    def __init__(self, outputs: _Outputs, pointer: int) -> None:
        weakref.finalize(self, outputs.give, pointer)


def _stream_value(stream: Any) -> int:
    """A CUstream of an int, None, or torch's, CuPy's or cuda-python's."""
    if stream is None:
        return 0
    if isinstance(stream, int):
        return stream
    for attribute in ("cuda_stream", "ptr"):
        value = getattr(stream, attribute, None)
        if isinstance(value, int):
            return value
    protocol = getattr(stream, "__cuda_stream__", None)
    if protocol is not None:
        return int((protocol() if callable(protocol) else protocol)[1])
    raise TypeError(f"stream is a {type(stream).__name__}, expected an "
                    "address, None, or a stream of torch or CuPy")


def _dtype_text(dtype: str) -> str:
    """As the library's messages have it."""
    return dtype.upper() if dtype in DTYPE_CODES else dtype


def _shape_text(shape: Tuple[int, ...]) -> str:
    """As the library's messages have it."""
    return "x".join("?" if dim == -1 else str(dim) for dim in shape) or "scalar"


class Instance:
    """A bundle on a CUDA device.

    `capacity` is the most tokens the caches hold, in rows; 0 allocates no
    cache, and then each must be given with `bind_state`.

    Usable from any thread, by one at a time. Raises NoDriver, NoKernel,
    ResourceLimit.
    """

    def __init__(self, bundle: Bundle, device: int = 0,
                 capacity: int = 0) -> None:
        self._library = library()
        self.bundle = bundle
        #: CUDA device ordinal.
        self.device = device
        self._keep = _Handle(bundle, device, capacity)
        self._value = self._keep.value
        self._step = self._library.megalith_step
        self._outputs: Optional[_Outputs] = None
        self._last_stream = 0
        # Memory the caller gave with bind_state, by state.
        self._bound: Dict[str, Any] = {}

    # Weights ---------------------------------------------------------------

    def bind(self, weights: Union[PathLike, Mapping[str, Any]],
             prefix: str = "") -> None:
        """Gives weights: a safetensors file, or a mapping such as a state_dict
        from `prefix` + name to arrays (host or device, any framework).

        Names the bundle does not want are skipped, so shards and whole
        checkpoints work; several calls may give a part each. Dtypes and shapes
        must be the bundle's (`bundle.tensors`); uint16 arrays are taken as the
        bits of bf16. Each tensor is copied and packed once: later changes to
        the arrays do not reach the block. All or nothing.
        """
        if isinstance(weights, (str, os.PathLike)):
            check(self._library.megalith_bind_safetensors(
                self._live(), name_bytes(os.fspath(weights)),
                name_bytes(prefix)))
            return
        found = [(tensor, weights[prefix + name])
                 for name, tensor in self.bundle.tensors.items()
                 if prefix + name in weights]
        if not found:
            raise NotFound(
                f"none of the {len(weights)} tensors given, with prefix "
                f"{prefix!r}, is a weight of block {self.bundle.block!r}")
        for tensor, array in found:
            self._matching(tensor, array)
        entries = (WeightEntry * len(found))()
        kept = []
        for entry, (tensor, array) in zip(entries, found):
            memory = _arrays.host_copy(self._matching(tensor, array))
            shape = (c_int64 * max(len(tensor.shape), 1))(*tensor.shape)
            kept.append((memory, shape))
            entry.name, entry.data = name_bytes(tensor.name), memory.pointer
            entry.bytes, entry.shape = memory.nbytes, shape
            entry.rank, entry.dtype = len(tensor.shape), DTYPE_CODES[tensor.dtype]
        check(self._library.megalith_bind_weights(self._live(), entries,
                                                  len(entries)))

    def check_ready(self) -> None:
        """Raises NotReady, listing the tensors, unless all weights are there."""
        check(self._library.megalith_weights_ready(self._live()))

    # Steps -----------------------------------------------------------------

    def step(self, hidden: Any, out: Any = None, stream: Any = None) -> Any:
        """One token: launches the kernel once on `stream`, and returns `out`.

        `hidden` and `out` are device arrays of `bundle.input` and
        `bundle.output` (or addresses), 16-byte aligned; they may be the same
        memory if the manifest's "in_place" says so. Without `out` a
        DeviceArray is made. `stream` is a CUstream, or a stream of torch or
        CuPy; None is the legacy default stream. Asynchronous: nothing is
        copied and nothing waits.
        """
        value = stream if type(stream) is int else _stream_value(stream)
        source = (hidden if type(hidden) is int
                  else self._vector(hidden, self.bundle.input, "hidden"))
        if out is None:
            if self._outputs is None:
                self._outputs = _Outputs(self.device,
                                         self.bundle.output.nbytes)
            target, lease = self._outputs.take()
            out = DeviceArray(target, self.bundle.output.dtype,
                              self.bundle.output.shape, self.device, lease,
                              value)
        elif type(out) is int:
            target = out
        else:
            target = self._vector(out, self.bundle.output, "out")
        status = self._step(self._live(), source, target, value)
        if status:
            check(status)
        self._last_stream = value
        return out

    def step_host(self, hidden: Any) -> memoryview:
        """One token from host memory; waits, and returns the output's bytes."""
        memory = self._matching(self.bundle.input._replace(name="hidden"),
                                hidden)
        memory = _arrays.host_copy(memory)
        result = bytearray(self.bundle.output.nbytes)
        check(self._library.megalith_step_host(
            self._live(), memory.pointer,
            (ctypes.c_char * len(result)).from_buffer(result)))
        return memoryview(result)

    @property
    def position(self) -> int:
        """Tokens seen, which is the number of valid rows in every cache."""
        value = c_int64()
        check(self._library.megalith_get_position(self._live(), byref(value)))
        return value.value

    @position.setter
    def position(self, value: int) -> None:
        check(self._library.megalith_set_position(self._live(), value))

    @property
    def capacity(self) -> Optional[int]:
        """Rows every cache can hold; None if nothing bounds the position."""
        rows = c_int64()
        check(self._library.megalith_cache_capacity(self._live(), byref(rows)))
        return None if rows.value == _UNBOUNDED else rows.value

    # State -----------------------------------------------------------------

    def state(self, name: str, rows: Optional[int] = None) -> DeviceArray:
        """A view of a state, without a copy: steps change it in place.

        A cache has shape [rows, ...]: the valid ones (`position`) by default,
        at most `capacity`.
        """
        tensor = self._state(name)
        shape = tensor.shape
        if tensor.is_cache:
            most = self.capacity or 0
            rows = self.position if rows is None else rows
            if not 0 <= rows <= most:
                raise InvalidArgument(
                    f"cache {name!r}: {rows} rows wanted, expected 0..{most}")
            shape = (rows,) + shape[1:]
        elif rows is not None:
            raise InvalidArgument(
                f"state {name!r} is no cache, expected no number of rows")
        pointer = c_void_p()
        check(self._library.megalith_state_pointer(
            self._live(), name_bytes(name), byref(pointer)))
        # Views of the caller's memory keep it, others the instance.
        owner = self._bound.get(name, self._keep)
        return DeviceArray(pointer.value or 0, tensor.dtype, shape,
                           self.device, owner, self._last_stream)

    def set_state(self, name: str, array: Any) -> None:
        """Copies a state from an array; a cache takes any number of rows, from
        row 0. Does not move the position."""
        tensor = self._state(name)
        memory = _arrays.host_copy(self._matching(tensor, array))
        check(self._library.megalith_set_state(
            self._live(), name_bytes(name), memory.pointer, memory.nbytes))

    def get_state(self, name: str) -> memoryview:
        """A host copy of a state's bytes; of a cache, the valid rows."""
        tensor = self._state(name)
        size = tensor.nbytes * (self.position if tensor.is_cache else 1)
        data = bytearray(size)
        if size:
            check(self._library.megalith_get_state(
                self._live(), name_bytes(name),
                (ctypes.c_char * size).from_buffer(data), size))
        return memoryview(data)

    def bind_state(self, name: str, array: Any) -> None:
        """Makes a device array the state's memory, without a copy. It is kept
        alive by the instance; for a cache its rows are the capacity. Views
        that `state` made before keep what they saw, if it was an array."""
        tensor = self._state(name)
        memory = self._matching(tensor, array)
        self._on_device(memory, f"state {name!r}")
        check(self._library.megalith_bind_state(
            self._live(), name_bytes(name), memory.pointer, memory.nbytes))
        self._bound[name] = memory.owner

    def reset(self) -> None:
        """A fresh start: every state zero, position 0. Weights stay."""
        check(self._library.megalith_reset(self._live()))

    def probe(self, name: str) -> memoryview:
        """The bytes that the last step left in a probe (`bundle.probes`)."""
        tensor = self.bundle.probes.get(name)
        if tensor is None:
            raise NotFound(f"block {self.bundle.block!r} has no probe {name!r}")
        data = bytearray(tensor.nbytes)
        check(self._library.megalith_read_probe(
            self._live(), name_bytes(name),
            (ctypes.c_char * len(data)).from_buffer(data), len(data)))
        return memoryview(data)

    # Life ------------------------------------------------------------------

    def close(self) -> None:
        """Gives the device memory back, once no view of it is left."""
        self._value = None
        self._keep = None  # type: ignore[assignment]
        self._outputs = None
        self._bound.clear()

    def __enter__(self) -> "Instance":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return (f"<megalith.Instance of {self.bundle.block!r} on "
                f"cuda:{self.device}>")

    # Helpers ---------------------------------------------------------------

    def _live(self) -> Any:
        if self._value is None:
            raise InvalidArgument("the instance is closed")
        return self._value

    def _state(self, name: str) -> Tensor:
        tensor = self.bundle.states.get(name)
        if tensor is None:
            raise NotFound(f"block {self.bundle.block!r} has no state {name!r}")
        return tensor

    def _matching(self, tensor: Tensor, array: Any) -> _arrays.Memory:
        """The memory of `array`, which must be what `tensor` says."""
        what = f"tensor {tensor.name!r}"
        if type(array) is DeviceArray:
            memory = _arrays.Memory(array.pointer, array.dtype, array.shape,
                                    array.device, array)
        else:
            memory = _arrays.describe(array, what)
        dtype = memory.dtype
        if dtype == "u16" and tensor.dtype == "bf16":
            dtype = "bf16"
        if dtype != tensor.dtype:
            raise Mismatch(f"{what}: dtype is {_dtype_text(dtype)}, expected "
                           f"{_dtype_text(tensor.dtype)}")
        shape = memory.shape
        if (shape[1:] != tensor.shape[1:] or len(shape) != len(tensor.shape)
                if tensor.is_cache else shape != tensor.shape):
            raise Mismatch(f"{what}: shape is {_shape_text(shape)}, expected "
                           f"{_shape_text(tensor.shape)}")
        return memory._replace(dtype=dtype)

    def _on_device(self, memory: _arrays.Memory, what: str) -> None:
        if memory.device != self.device:
            where = "cpu" if memory.device is None else f"cuda:{memory.device}"
            raise Mismatch(f"{what} is on {where}, expected "
                           f"cuda:{self.device}")

    def _vector(self, array: Any, tensor: Tensor, what: str) -> int:
        memory = self._matching(tensor._replace(name=what), array)
        self._on_device(memory, what)
        return memory.pointer


def load(bundle: Union[PathLike, Bundle], device: int = 0,
         capacity: int = 4096) -> Instance:
    """An instance of a bundle (a directory, or a Bundle) on a CUDA device, with
    zero state and room for `capacity` tokens.

    >>> block = megalith.load("motif.bundle", capacity=8192)
    >>> block.bind("model.safetensors")
    >>> hidden = torch.from_dlpack(block.step(hidden))
    """
    opened = bundle if isinstance(bundle, Bundle) else Bundle(bundle)
    return Instance(opened, device, capacity)

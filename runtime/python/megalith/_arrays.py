# SPDX-License-Identifier: Apache-2.0
"""What memory an array of any framework is, without importing the framework.

Understood, in this order: torch tensors (data_ptr), __cuda_array_interface__,
__array_interface__ (NumPy), __dlpack__, and the buffer protocol.
"""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple, Optional, Tuple

from . import _dlpack, _driver
from ._library import DTYPE_BYTES


class Memory(NamedTuple):
    """Contiguous memory of an array."""

    pointer: int
    #: "u8", "i32", "bf16", "f32", "u16" (taken as the bits of bf16), or a
    #: name that no tensor has.
    dtype: str
    shape: Tuple[int, ...]
    #: CUDA device ordinal; None is host memory.
    device: Optional[int]
    #: Keeps the memory alive.
    owner: Any

    @property
    def nbytes(self) -> int:
        size = 2 if self.dtype == "u16" else DTYPE_BYTES.get(self.dtype, 0)
        for dim in self.shape:
            size *= dim
        return size


_TORCH = {"torch.uint8": "u8", "torch.int32": "i32", "torch.bfloat16": "bf16",
          "torch.float32": "f32", "torch.uint16": "u16"}
# ml_dtypes' bfloat16 and torch's are two opaque bytes in the interfaces.
_TYPESTR = {"|u1": "u8", "<i4": "i32", "<f4": "f32", "<u2": "u16",
            "<V2": "bf16", "|V2": "bf16"}
_FORMATS = {"B": "u8", "b": "i8", "c": "u8", "i": "i32", "f": "f32",
            "H": "u16"}


def describe(array: Any, what: str) -> Memory:
    """The memory of `array`, which errors call `what`. TypeError, ValueError."""
    if hasattr(array, "data_ptr") and hasattr(array, "is_contiguous"):
        return _torch(array, what)
    for attribute, reader in (("__cuda_array_interface__", _cuda_interface),
                              ("__array_interface__", _host_interface)):
        try:
            interface = getattr(array, attribute)
        except (AttributeError, TypeError):
            continue
        return reader(array, interface, what)
    if hasattr(array, "__dlpack__"):
        return _from_dlpack(array, what)
    try:
        view = memoryview(array)
    except TypeError:
        raise TypeError(
            f"{what} is a {type(array).__name__}, expected an array with "
            "__dlpack__, __cuda_array_interface__ or data_ptr, or a buffer"
        ) from None
    return _from_buffer(view, what)


def host_copy(memory: Memory) -> Memory:
    """`memory` itself on the host; a copy of device memory."""
    if memory.device is None:
        return memory
    data = _driver.copy_to_host(memory.device, memory.pointer, memory.nbytes)
    pointer = (ctypes.addressof((ctypes.c_char * len(data)).from_buffer(data))
               if data else 0)
    return memory._replace(pointer=pointer, device=None, owner=data)


def _contiguous(shape: Tuple[int, ...], strides: Optional[Tuple[int, ...]],
                unit: int, what: str) -> None:
    """Raises unless `strides`, in `unit`s, are row-major's."""
    if strides is None or 0 in shape:
        return
    for dim, stride in zip(reversed(shape), reversed(strides)):
        if dim != 1 and stride != unit:
            raise ValueError(f"{what} is not contiguous, expected row-major "
                             "memory without gaps")
        unit *= dim


def _torch(tensor: Any, what: str) -> Memory:
    if not tensor.is_contiguous():
        raise ValueError(f"{what} is not contiguous, expected row-major "
                         "memory without gaps")
    kind = tensor.device.type
    if kind not in ("cpu", "cuda"):
        raise ValueError(f"{what} is on device {str(tensor.device)!r}, "
                         "expected cpu or cuda")
    device = None if kind == "cpu" else tensor.device.index or 0
    name = str(tensor.dtype)
    return Memory(tensor.data_ptr(), _TORCH.get(name, name),
                  tuple(tensor.shape), device, tensor)


def _interface(array: Any, interface: Any, what: str,
               device: Optional[int]) -> Memory:
    typestr = interface["typestr"]
    dtype = _TYPESTR.get(typestr, typestr)
    size = int(typestr[2:])
    shape = tuple(interface["shape"])
    _contiguous(shape, interface.get("strides"), size, what)
    data = interface.get("data")
    if not isinstance(data, tuple):
        raise TypeError(f"{what} gives no address of its data")
    return Memory(data[0], dtype, shape, device, array)


def _cuda_interface(array: Any, interface: Any, what: str) -> Memory:
    # Version 3 names the stream to wait for; without one all is waited for.
    device = getattr(getattr(array, "device", None), "id", 0)
    if not isinstance(device, int):
        device = 0
    if interface.get("stream") not in (None, 1):
        _driver.synchronize(device)
    return _interface(array, interface, what, device)


def _host_interface(array: Any, interface: Any, what: str) -> Memory:
    return _interface(array, interface, what, None)


def _from_dlpack(array: Any, what: str) -> Memory:
    kind, ordinal = array.__dlpack_device__()
    kind = int(kind)
    if kind == _dlpack.CUDA:
        # 1 is the legacy default stream: the producer makes it wait.
        capsule = array.__dlpack__(stream=1)
    elif kind == _dlpack.CPU:
        capsule = array.__dlpack__()
    else:
        raise ValueError(f"{what} is on DLPack device {kind}, expected cpu "
                         f"({_dlpack.CPU}) or cuda ({_dlpack.CUDA})")
    pointer, dtype, shape, _, strides = _dlpack.read(capsule)
    _contiguous(shape, strides, 1, what)
    return Memory(pointer, dtype, shape,
                  ordinal if kind == _dlpack.CUDA else None,
                  (capsule, array))


def _from_buffer(view: memoryview, what: str) -> Memory:
    if not view.c_contiguous:
        raise ValueError(f"{what} is not contiguous, expected row-major "
                         "memory without gaps")
    dtype = _FORMATS.get(view.format.lstrip("@=<"), f"format {view.format!r}")
    shape = tuple(view.shape)
    if view.nbytes == 0:
        return Memory(0, dtype, shape, None, view)
    if view.readonly:
        # ctypes takes no address of read-only memory.
        data = bytearray(view)
        address = ctypes.addressof(ctypes.c_char.from_buffer(data))
        return Memory(address, dtype, shape, None, data)
    return Memory(ctypes.addressof(ctypes.c_char.from_buffer(view.cast("B"))),
                  dtype, shape, None, view)

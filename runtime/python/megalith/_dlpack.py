# SPDX-License-Identifier: Apache-2.0
"""DLPack both ways, by ctypes: https://dmlc.github.io/dlpack.

Capsules are made here as version 0 ("dltensor"), which every consumer takes.
"""

from __future__ import annotations

import ctypes
from ctypes import (CFUNCTYPE, POINTER, PYFUNCTYPE, Structure, c_int32,
                    c_int64, c_uint8, c_uint16, c_uint64, c_void_p)
from typing import Any, Dict, Optional, Tuple

CPU, CUDA = 1, 2
#: DLDataType (code, bits) of each dtype, and back.
_TYPES = {"u8": (1, 8), "i32": (0, 32), "bf16": (4, 16), "f32": (2, 32)}
_NAMES = {value: name for name, value in _TYPES.items()}
_NAMES[(1, 16)] = "u16"


class _Device(Structure):
    _fields_ = [("type", c_int32), ("id", c_int32)]


class _DataType(Structure):
    _fields_ = [("code", c_uint8), ("bits", c_uint8), ("lanes", c_uint16)]


class _Tensor(Structure):
    _fields_ = [("data", c_void_p), ("device", _Device), ("ndim", c_int32),
                ("dtype", _DataType), ("shape", POINTER(c_int64)),
                ("strides", POINTER(c_int64)), ("byte_offset", c_uint64)]


class _Managed(Structure):
    pass


_DELETER = CFUNCTYPE(None, POINTER(_Managed))
_Managed._fields_ = [("tensor", _Tensor), ("context", c_void_p),
                     ("deleter", _DELETER)]

_NAME = b"dltensor"
_DESTRUCTOR = PYFUNCTYPE(None, c_void_p)
_new = ctypes.pythonapi.PyCapsule_New
_new.restype = ctypes.py_object
_new.argtypes = (c_void_p, ctypes.c_char_p, _DESTRUCTOR)
_valid = ctypes.pythonapi.PyCapsule_IsValid
_valid.restype = ctypes.c_int
_valid.argtypes = (ctypes.py_object, ctypes.c_char_p)
_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype = c_void_p
_pointer.argtypes = (ctypes.py_object, ctypes.c_char_p)
# A destructor gets a dying object, which must not become a Python value.
_raw_valid = PYFUNCTYPE(ctypes.c_int, c_void_p, ctypes.c_char_p)(
    ("PyCapsule_IsValid", ctypes.pythonapi))
_raw_pointer = PYFUNCTYPE(c_void_p, c_void_p, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi))

#: What lives until its consumer calls the deleter, by address.
_exported: Dict[int, Tuple[Any, ...]] = {}


@_DELETER
def _release(managed: Any) -> None:
    _exported.pop(ctypes.addressof(managed.contents), None)


@_DESTRUCTOR
def _destroy(capsule: int) -> None:
    # Named "used_dltensor" by a consumer, who then calls the deleter.
    if _raw_valid(capsule, _NAME):
        _exported.pop(_raw_pointer(capsule, _NAME), None)


def export(pointer: int, dtype: str, shape: Tuple[int, ...],
           device: Tuple[int, int], owner: Any) -> Any:
    """A capsule over contiguous memory, which keeps `owner` alive."""
    managed = _Managed()
    dims = (c_int64 * max(len(shape), 1))(*shape)
    code, bits = _TYPES[dtype]
    managed.tensor = _Tensor(pointer, _Device(*device), len(shape),
                             _DataType(code, bits, 1), dims, None, 0)
    managed.deleter = _release
    address = ctypes.addressof(managed)
    _exported[address] = (managed, dims, owner)
    try:
        return _new(address, _NAME, _destroy)
    except BaseException:
        del _exported[address]
        raise


def read(capsule: Any) -> Tuple[int, str, Tuple[int, ...], Tuple[int, int],
                                Optional[Tuple[int, ...]]]:
    """(pointer, dtype, shape, device, strides or None) of a capsule that stays
    unconsumed, so its tensor lives as long as it does."""
    if not _valid(capsule, _NAME):
        raise TypeError("__dlpack__ gave no capsule named 'dltensor'")
    tensor = ctypes.cast(_pointer(capsule, _NAME),
                         POINTER(_Managed)).contents.tensor
    shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
    strides = (tuple(tensor.strides[i] for i in range(tensor.ndim))
               if tensor.strides else None)
    kind = (tensor.dtype.code, tensor.dtype.bits)
    dtype = (_NAMES.get(kind, f"DLPack type {kind}")
             if tensor.dtype.lanes == 1 else "a vector type")
    return ((tensor.data or 0) + tensor.byte_offset, dtype, shape,
            (tensor.device.type, tensor.device.id), strides)

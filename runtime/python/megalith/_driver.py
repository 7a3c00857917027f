# SPDX-License-Identifier: Apache-2.0
"""The few calls of the CUDA driver that the library does not offer.

They copy and allocate device memory for arrays of any framework, in the
device's primary context, which is the library's and every framework's.
"""

from __future__ import annotations

import ctypes
from ctypes import POINTER, c_char_p, c_int, c_size_t, c_uint64, c_void_p
from typing import Optional

from . import errors

_PROTOTYPES = {
    "cuInit": (ctypes.c_uint,),
    "cuDevicePrimaryCtxRetain": (POINTER(c_void_p), c_int),
    "cuCtxPushCurrent_v2": (c_void_p,),
    "cuCtxPopCurrent_v2": (POINTER(c_void_p),),
    "cuCtxSynchronize": (),
    "cuMemAlloc_v2": (POINTER(c_uint64), c_size_t),
    "cuMemFree_v2": (c_uint64,),
    "cuMemcpyDtoH_v2": (c_void_p, c_uint64, c_size_t),
    "cuGetErrorName": (c_int, POINTER(c_char_p)),
}

_opened: Optional[ctypes.CDLL] = None
_contexts: dict = {}


def _driver() -> ctypes.CDLL:
    global _opened
    if _opened is None:
        try:
            opened = ctypes.CDLL("libcuda.so.1")
        except OSError as error:
            raise errors.NoDriver(
                f"libcuda.so.1 could not be opened ({error})") from None
        for name, arguments in _PROTOTYPES.items():
            function = getattr(opened, name)
            function.restype = c_int
            function.argtypes = arguments
        _opened = opened
        _check("cuInit", opened.cuInit(0))
    return _opened


def _check(call: str, result: int) -> None:
    if result == 0:
        return
    name = c_char_p()
    _driver().cuGetErrorName(result, ctypes.byref(name))
    text = (name.value or b"unknown error").decode()
    error = errors.ResourceLimit if result == 2 else errors.DriverError
    raise error(f"{call}: {text} ({result})")


class _Context:
    """A device's primary context, current within a `with`."""

    def __init__(self, device: int) -> None:
        driver = _driver()
        if device not in _contexts:
            context = c_void_p()
            _check("cuDevicePrimaryCtxRetain",
                   driver.cuDevicePrimaryCtxRetain(ctypes.byref(context),
                                                   device))
            _contexts[device] = context
        self._context = _contexts[device]

    def __enter__(self) -> ctypes.CDLL:
        driver = _driver()
        _check("cuCtxPushCurrent", driver.cuCtxPushCurrent_v2(self._context))
        return driver

    def __exit__(self, *exception: object) -> None:
        _driver().cuCtxPopCurrent_v2(ctypes.byref(c_void_p()))


def synchronize(device: int) -> None:
    """Waits for all work of the device's context."""
    with _Context(device) as driver:
        _check("cuCtxSynchronize", driver.cuCtxSynchronize())


def copy_to_host(device: int, pointer: int, size: int) -> bytearray:
    """`size` bytes at a device address, after all work of the context."""
    data = bytearray(size)
    if size == 0:
        return data
    target = (ctypes.c_char * size).from_buffer(data)
    with _Context(device) as driver:
        _check("cuCtxSynchronize", driver.cuCtxSynchronize())
        _check("cuMemcpyDtoH", driver.cuMemcpyDtoH_v2(target, pointer, size))
    return data


def allocate(device: int, size: int) -> int:
    """The address of `size` fresh bytes."""
    pointer = c_uint64()
    with _Context(device) as driver:
        _check(f"cuMemAlloc of {size} bytes",
               driver.cuMemAlloc_v2(ctypes.byref(pointer), size))
    return pointer.value


def free(device: int, pointer: int) -> None:
    """Frees what `allocate` gave."""
    with _Context(device) as driver:
        _check("cuMemFree", driver.cuMemFree_v2(pointer))

# SPDX-License-Identifier: Apache-2.0
"""Finds and opens libmegalith, and gives its functions their types."""

from __future__ import annotations

import ctypes
import os
import sys
from ctypes import POINTER, c_char_p, c_int, c_int32, c_int64, c_size_t, c_void_p
from pathlib import Path
from typing import List, Optional, Tuple

from . import errors

#: megalith_version() of the oldest library this package works with.
_LEAST_VERSION = 100
_MAX_RANK = 8

#: megalith_dtype by name.
DTYPE_CODES = {"u8": 0, "i32": 1, "bf16": 2, "f32": 3}
DTYPE_NAMES = {code: name for name, code in DTYPE_CODES.items()}
DTYPE_BYTES = {"u8": 1, "i32": 4, "bf16": 2, "f32": 4}


class TensorInfo(ctypes.Structure):
    """megalith_tensor_info."""

    _fields_ = [("name", c_char_p), ("dtype", c_int), ("rank", c_int32),
                ("shape", c_int64 * _MAX_RANK)]


class WeightEntry(ctypes.Structure):
    """megalith_weight."""

    _fields_ = [("name", c_char_p), ("data", c_void_p), ("bytes", c_size_t),
                ("shape", POINTER(c_int64)), ("rank", c_int32),
                ("dtype", c_int)]


_INFO = POINTER(TensorInfo)
_OUT = POINTER(c_void_p)
_PROTOTYPES = {
    "bundle_load": (c_char_p, _OUT),
    "bundle_free": (c_void_p,),
    "bundle_manifest": (c_void_p, POINTER(c_char_p)),
    "bundle_block": (c_void_p, POINTER(c_char_p)),
    "bundle_input": (c_void_p, _INFO),
    "bundle_output": (c_void_p, _INFO),
    "bundle_tensor_count": (c_void_p, POINTER(c_size_t)),
    "bundle_tensor": (c_void_p, c_size_t, _INFO),
    "bundle_state_count": (c_void_p, POINTER(c_size_t)),
    "bundle_state": (c_void_p, c_size_t, _INFO),
    "bundle_probe_count": (c_void_p, POINTER(c_size_t)),
    "bundle_probe": (c_void_p, c_size_t, _INFO),
    "instance_create": (c_void_p, c_int, c_int64, _OUT),
    "instance_destroy": (c_void_p,),
    "bind_weights": (c_void_p, POINTER(WeightEntry), c_size_t),
    "bind_safetensors": (c_void_p, c_char_p, c_char_p),
    "weights_ready": (c_void_p,),
    "set_state": (c_void_p, c_char_p, c_void_p, c_size_t),
    "get_state": (c_void_p, c_char_p, c_void_p, c_size_t),
    "bind_state": (c_void_p, c_char_p, c_void_p, c_size_t),
    # The arrays by their addresses, which is what costs least.
    "bind_states": (c_void_p, c_void_p, c_void_p, c_size_t, c_int64),
    "state_pointer": (c_void_p, c_char_p, _OUT),
    "cache_capacity": (c_void_p, POINTER(c_int64)),
    "set_position": (c_void_p, c_int64),
    "get_position": (c_void_p, POINTER(c_int64)),
    "step": (c_void_p, c_void_p, c_void_p, c_void_p),
    "step_host": (c_void_p, c_void_p, c_void_p),
    "read_probe": (c_void_p, c_char_p, c_void_p, c_size_t),
    "reset": (c_void_p,),
}

_opened: Optional[ctypes.CDLL] = None


def _candidates() -> List[Tuple[str, str]]:
    """(what to open, where that came from), in order."""
    named = os.environ.get("MEGALITH_LIBRARY")
    if named:
        return [(named, "MEGALITH_LIBRARY")]
    found = [(str(Path(__file__).parent / "libmegalith.so"),
              "beside the package")]
    for prefix in dict.fromkeys((sys.prefix, sys.base_prefix)):
        found.append((os.path.join(prefix, "lib", "libmegalith.so"),
                      "in the Python prefix"))
    found.append(("libmegalith.so.0", "by the loader's search path"))
    return found


def library() -> ctypes.CDLL:
    """The library, opened once. NotFound if there is none."""
    global _opened
    if _opened is not None:
        return _opened
    tried = []
    for path, where in _candidates():
        try:
            opened = ctypes.CDLL(path)
        except OSError as error:
            tried.append(f"{where}: {error}")
            continue
        _declare(opened, path)
        _opened = opened
        return opened
    raise errors.NotFound(
        "libmegalith.so could not be opened, expected it beside the package, "
        "in the prefix, on the loader's path or named by MEGALITH_LIBRARY: "
        + "; ".join(tried))


def _declare(opened: ctypes.CDLL, path: str) -> None:
    opened.megalith_version.restype = ctypes.c_uint32
    opened.megalith_version.argtypes = ()
    version = opened.megalith_version()
    if version < _LEAST_VERSION or version // 10000 != _LEAST_VERSION // 10000:
        raise errors.UnsupportedVersion(
            f"{path} has version {version}, expected {_LEAST_VERSION} or a "
            "later one of the same major version")
    opened.megalith_last_error.restype = c_char_p
    opened.megalith_last_error.argtypes = ()
    for name, arguments in _PROTOTYPES.items():
        function = getattr(opened, "megalith_" + name)
        function.restype = c_int
        function.argtypes = arguments


def check(status: int) -> None:
    """Raises the exception of a status other than 0."""
    if status:
        raise errors.from_status(
            status,
            library().megalith_last_error().decode("utf-8", "replace"))


def name_bytes(name: str) -> bytes:
    """A name as the library takes it."""
    encoded = name.encode()
    if b"\0" in encoded:
        raise errors.InvalidArgument(f"name {name!r} holds a zero character")
    return encoded

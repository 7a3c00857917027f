# SPDX-License-Identifier: Apache-2.0
"""A bundle: what a block needs and holds. Needs no GPU."""

from __future__ import annotations

import ctypes
import json
import os
import weakref
from ctypes import byref, c_char_p, c_size_t, c_void_p
from typing import Any, Callable, Dict, NamedTuple, Tuple, Union

from ._library import (DTYPE_BYTES, DTYPE_NAMES, TensorInfo, check, library,
                       name_bytes)

PathLike = Union[str, "os.PathLike[str]"]


class Tensor(NamedTuple):
    """A tensor as the bundle describes it."""

    #: The checkpoint's name; "" for the input and the output.
    name: str
    #: "u8", "i32", "bf16" or "f32".
    dtype: str
    #: shape[0] of a cache is -1: it grows by one row a step.
    shape: Tuple[int, ...]

    @property
    def is_cache(self) -> bool:
        """Whether it grows by one row a step."""
        return bool(self.shape) and self.shape[0] == -1

    @property
    def nbytes(self) -> int:
        """Bytes of the tensor, of one row for a cache."""
        size = DTYPE_BYTES[self.dtype]
        for dim in self.shape[1 if self.is_cache else 0:]:
            size *= dim
        return size

    @classmethod
    def _of(cls, info: TensorInfo) -> "Tensor":
        return cls(info.name.decode(), DTYPE_NAMES[info.dtype],
                   tuple(info.shape[:info.rank]))


class Bundle:
    """A bundle directory, read and checked.

    >>> bundle = Bundle("motif.bundle")
    >>> bundle.input
    Tensor(name='', dtype='bf16', shape=(1024,))

    Immutable, and usable from any number of threads. Raises IoError,
    BadFormat or UnsupportedVersion.
    """

    def __init__(self, path: PathLike) -> None:
        self._library = library()
        handle = c_void_p()
        check(self._library.megalith_bundle_load(name_bytes(os.fspath(path)),
                                                 byref(handle)))
        self._handle = handle
        self._finalizer = weakref.finalize(
            self, self._library.megalith_bundle_free, handle)
        #: The bundle's directory, as given.
        self.path = os.fspath(path)
        #: The block's name.
        self.block: str = self._text(self._library.megalith_bundle_block)
        #: The hidden vector in, and out.
        self.input = self._info(self._library.megalith_bundle_input)
        self.output = self._info(self._library.megalith_bundle_output)
        #: Checkpoint tensors that must be bound, by name, in order.
        self.tensors = self._all("tensor")
        #: States by name, in order.
        self.states = self._all("state")
        #: Workspace values that each step leaves for inspection.
        self.probes = self._all("probe")

    @property
    def manifest(self) -> Dict[str, Any]:
        """manifest.json, parsed (docs/bundle-format.md)."""
        return json.loads(self._text(self._library.megalith_bundle_manifest))

    def __repr__(self) -> str:
        return f"<megalith.Bundle {self.block!r} at {self.path!r}>"

    def _text(self, function: Callable[..., int]) -> str:
        text = c_char_p()
        check(function(self._handle, byref(text)))
        return (text.value or b"").decode()

    def _info(self, function: Callable[..., int], *index: int) -> Tensor:
        info = TensorInfo()
        check(function(self._handle, *index, byref(info)))
        return Tensor._of(info)

    def _all(self, kind: str) -> Dict[str, Tensor]:
        count = c_size_t()
        prefix = "megalith_bundle_" + kind
        check(getattr(self._library, prefix + "_count")(self._handle,
                                                        byref(count)))
        one = getattr(self._library, prefix)
        found = [self._info(one, index) for index in range(count.value)]
        return {tensor.name: tensor for tensor in found}

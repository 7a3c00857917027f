# SPDX-License-Identifier: Apache-2.0
"""The statuses of megalith.h as exceptions; messages are the library's own."""

from __future__ import annotations

from typing import Dict, Type


class MegalithError(RuntimeError):
    """A call failed, and changed nothing. `status` is the megalith_status."""

    status = 13


class InvalidArgument(MegalithError, ValueError):
    """An argument that no bundle could make right."""

    status = 1


class NotFound(MegalithError, LookupError):
    """A name that the bundle or file does not have."""

    status = 2


class IoError(MegalithError):
    """A file that cannot be opened, read or written."""

    status = 3


class BadFormat(MegalithError):
    """A file whose contents break its format."""

    status = 4


class UnsupportedVersion(MegalithError):
    """A bundle of a newer format version."""

    status = 5


class Mismatch(MegalithError, ValueError):
    """A tensor whose dtype, shape or values are not what the bundle wants."""

    status = 6


class NoDriver(MegalithError):
    """No CUDA driver: everything but launching works."""

    status = 7


class NoKernel(MegalithError):
    """No such device, or no kernel for it."""

    status = 8


class ResourceLimit(MegalithError):
    """Too little memory, shared memory or resident CTAs."""

    status = 9


class NotReady(MegalithError):
    """Weights or caches that a step needs are not bound yet."""

    status = 10


class CapacityError(MegalithError):
    """A position or row count above the cache capacity."""

    status = 11


class DriverError(MegalithError):
    """A call of the CUDA driver failed."""

    status = 12


class InternalError(MegalithError):
    """A defect of the library itself."""

    status = 13


class Timeout(MegalithError):
    """The device was not done in time; the message says where it is."""

    status = 14


_BY_STATUS: Dict[int, Type[MegalithError]] = {
    error.status: error
    for error in (InvalidArgument, NotFound, IoError, BadFormat,
                  UnsupportedVersion, Mismatch, NoDriver, NoKernel,
                  ResourceLimit, NotReady, CapacityError, DriverError,
                  InternalError, Timeout)
}


def from_status(status: int, message: str) -> MegalithError:
    """The exception for a status other than 0."""
    return _BY_STATUS.get(status, MegalithError)(message)

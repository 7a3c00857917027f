# SPDX-License-Identifier: Apache-2.0
"""Megalith: an LLM decode block as one CUDA launch a step.

    import megalith, torch

    block = megalith.load("motif.bundle", device=0, capacity=4096)
    block.bind("model.safetensors")         # or a state_dict
    for _ in range(100):
        hidden = torch.from_dlpack(block.step(hidden))

Pure Python over libmegalith's C interface. Arrays of any framework are used
where they lie: what has __dlpack__, __cuda_array_interface__ or data_ptr.
`megalith.torch` has the torch.nn.Module that `megalithc --emit=torch` uses.
"""

from __future__ import annotations

from .bundle import Bundle, Tensor
from .errors import (BadFormat, CapacityError, DriverError, InternalError,
                     InvalidArgument, IoError, MegalithError, Mismatch,
                     NoDriver, NoKernel, NotFound, NotReady, ResourceLimit,
                     Timeout, UnsupportedVersion)
from .instance import DeviceArray, Instance, load

__version__ = "0.1.0"

__all__ = [
    "BadFormat", "Bundle", "CapacityError", "DeviceArray", "DriverError",
    "Instance", "InternalError", "InvalidArgument", "IoError",
    "MegalithError", "Mismatch", "NoDriver", "NoKernel", "NotFound",
    "NotReady", "ResourceLimit", "Tensor", "Timeout", "UnsupportedVersion",
    "load",
]

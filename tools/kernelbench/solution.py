# SPDX-License-Identifier: Apache-2.0
"""KernelBench-Mega, 02_kimi_linear_decode, by Megalith.

The step is one cooperative launch of one kernel, which `megalithc` compiled
from the description of the block: `extern "C" __global__ void` megalith_motif
in motif/bundle/kernel.cu, run from motif/bundle/*.cubin by the C runtime
motif/megalith/libmegalith.so through ctypes. Python does pointer bookkeeping
only; it is all in motif/megalith/torch.py. There is no graph, no generated
code at run time, and no launch but the one.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from motif import Motif


@dataclass(frozen=True)
class Config:
    """What of the task may vary; the rest is compiled into the kernel."""

    n_experts: int = 64


def build_config(shape: dict) -> Config:
    return Config(n_experts=int(shape.get("n_experts", 64)))


class Model(Motif):
    def __init__(self, cfg) -> None:
        super().__init__()
        self.cfg = cfg
        compiled = next(w.shape[0] for w in self.weight_table
                        if w.name.endswith("moe.router.weight"))
        if cfg.n_experts != compiled:
            raise ValueError(f"the configuration has {cfg.n_experts} experts, "
                             f"expected {compiled}, as compiled")


def init_state(cfg, context_len: int, seed: int) -> list:
    """Random states: N(0, 0.05^2) for the recurrences, N(0, 0.1^2) for conv
    windows and caches, drawn in the order of the description."""
    device = torch.device("cuda:0")
    generator = torch.Generator(device=device).manual_seed(seed)
    state: list = []
    for entry in Motif.state_table:
        layer, key = entry.path
        while len(state) <= layer:
            state.append({})
        shape = [context_len if dim == -1 else dim for dim in entry.shape]
        std = 0.05 if entry.dtype == torch.float32 else 0.1
        state[layer][key] = torch.randn(shape, device=device,
                                        generator=generator,
                                        dtype=entry.dtype) * std
    return state


def init_token(cfg, seed: int) -> torch.Tensor:
    device = torch.device("cuda:0")
    generator = torch.Generator(device=device).manual_seed(seed + 1)
    return torch.randn(2304, device=device, generator=generator,
                       dtype=torch.bfloat16) * 0.25

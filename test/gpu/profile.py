#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kernel time by torch.profiler and time a phase by clock stamps.

    profile.py BUNDLE STAMPED_BUNDLE

Weights are random codes with the motif's magnitudes; every step has its own
input. Needs torch and libmegalith.so beside this file.
"""

import ctypes
import json
import os
import sys
import time

import torch
from torch.profiler import ProfilerActivity, profile

HERE = os.path.dirname(os.path.abspath(__file__))
LIB = ctypes.CDLL(os.path.join(HERE, "libmegalith.so"))
LIB.megalith_last_error.restype = ctypes.c_char_p
DTYPES = {torch.uint8: 0, torch.int32: 1, torch.bfloat16: 2, torch.float32: 3}
CAPACITY = 16384 + 512


def check(status):
    if status:
        raise RuntimeError(LIB.megalith_last_error().decode())


class Instance:
    """A bundle on device 0."""

    def __init__(self, path):
        with open(os.path.join(path, "manifest.json")) as file:
            self.manifest = json.load(file)
        bundle = ctypes.c_void_p()
        check(LIB.megalith_bundle_load(path.encode(), ctypes.byref(bundle)))
        self.handle = ctypes.c_void_p()
        check(LIB.megalith_instance_create(
            bundle, 0, ctypes.c_int64(CAPACITY), ctypes.byref(self.handle)))

    def bind(self, name, tensor):
        tensor = tensor.contiguous().cpu()
        shape = (ctypes.c_int64 * tensor.dim())(*tensor.shape)
        check(LIB.megalith_bind_weight(
            self.handle, name.encode(), DTYPES[tensor.dtype], tensor.dim(),
            shape, ctypes.c_void_p(tensor.data_ptr()),
            ctypes.c_size_t(tensor.numel() * tensor.element_size())))

    def set_state(self, name, tensor):
        tensor = tensor.contiguous().cpu()
        check(LIB.megalith_set_state(
            self.handle, name.encode(), ctypes.c_void_p(tensor.data_ptr()),
            ctypes.c_size_t(tensor.numel() * tensor.element_size())))

    def set_position(self, rows):
        check(LIB.megalith_set_position(self.handle, ctypes.c_int64(rows)))

    def step(self, x, out):
        check(LIB.megalith_step(
            self.handle, ctypes.c_void_p(x.data_ptr()),
            ctypes.c_void_p(out.data_ptr()),
            ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)))

    def probe(self, name, count):
        out = torch.empty(count, dtype=torch.int32)
        check(LIB.megalith_read_probe(
            self.handle, name.encode(), ctypes.c_void_p(out.data_ptr()),
            ctypes.c_size_t(4 * count)))
        return out

    def randomise_weights(self, seed):
        g = torch.Generator(device="cuda").manual_seed(seed)

        def uniform(shape, low, high):
            return torch.rand(shape, device="cuda", generator=g) * (
                high - low) + low

        for weight in self.manifest["weights"]:
            names = [t["name"] for t in weight["tensors"]]
            shapes = [t["shape"] for t in weight["tensors"]]
            if weight["kind"] == "quant":
                self.bind(names[0], torch.randint(
                    0, 256, shapes[0], dtype=torch.uint8, device="cuda",
                    generator=g))
                self.bind(names[1], uniform(shapes[1], .007, .009).bfloat16())
                self.bind(names[2], torch.randint(
                    6, 10, shapes[2], device="cuda", generator=g).bfloat16())
            elif len(shapes[0]) == 1:
                self.bind(names[0], torch.ones(shapes[0]).bfloat16())
            else:
                std = 0.1 if len(shapes[0]) == 3 else 0.02
                self.bind(names[0], (torch.randn(
                    shapes[0], device="cuda", generator=g) * std).bfloat16())

    def randomise_state(self, context, seed):
        g = torch.Generator(device="cuda").manual_seed(seed)
        self.set_position(context)
        for state in self.manifest["states"]:
            shape = [context if d == -1 else d for d in state["shape"]]
            wide = state["dtype"] == "f32"
            value = torch.randn(shape, device="cuda", generator=g) * (
                0.05 if wide else 0.1)
            self.set_state(state["name"],
                           value if wide else value.bfloat16())


def inputs(instance, count):
    g = torch.Generator(device="cuda").manual_seed(7)
    width = instance.manifest["input"]["shape"][0]
    return [(torch.randn(width, device="cuda", generator=g) * 0.25).bfloat16()
            for _ in range(count)]


def time_kernel(instance, steps=100):
    """Launches and microseconds a step at each context."""
    xs = inputs(instance, 64)
    out = torch.empty_like(xs[0])
    print("context | launches a step | kernel us: median, min, p99 | host us")
    for context in (2048, 8192, 16384):
        instance.randomise_state(context, 2)
        for x in xs[:8]:
            instance.step(x, out)
        torch.cuda.synchronize()
        instance.set_position(context)
        with profile(activities=[ProfilerActivity.CUDA],
                     acc_events=True) as prof:
            for i in range(steps):
                instance.step(xs[i % 64], out)
            torch.cuda.synchronize()
        kernels = [e for e in prof.events()
                   if e.device_type == torch.autograd.DeviceType.CUDA]
        times = sorted(e.device_time for e in kernels)
        instance.set_position(context)
        begin = time.perf_counter()
        for i in range(20):  # short of the launch queue's depth
            instance.step(xs[i], out)
        host = (time.perf_counter() - begin) / 20 * 1e6
        torch.cuda.synchronize()
        print(f"{context} | {len(kernels) / steps:g} | "
              f"{times[len(times) // 2]:.1f}, {times[0]:.1f}, "
              f"{times[int(len(times) * .99)]:.1f} | {host:.1f}")


def measure_stream(megabytes=1024):
    """GB/s of a read-only pass over memory that does not fit in L2."""
    data = torch.randint(0, 2**31 - 1, (megabytes * 2**18,),
                         dtype=torch.int32, device="cuda")
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    best = 0.0
    for _ in range(5):
        begin.record()
        data.view(torch.float32).amax()
        end.record()
        torch.cuda.synchronize()
        best = max(best, data.numel() * 4 / begin.elapsed_time(end) / 1e6)
    print(f"read stream (torch amax over {megabytes} MiB): {best:.0f} GB/s")


def time_phases(instance, context=2048, steps=12):
    """Average microseconds of work and of waiting, phase by phase."""
    phases = instance.manifest["schedule"]["phase_list"]
    ctas = instance.manifest["launch"]["max_ctas"]
    clock = torch.cuda.get_device_properties(0).multi_processor_count
    grid = min(ctas, clock)
    xs = inputs(instance, steps)
    out = torch.empty_like(xs[0])
    instance.randomise_state(context, 2)
    stamps = []
    for x in xs:
        instance.step(x, out)
        torch.cuda.synchronize()
        raw = instance.probe("megalith.stamps", len(phases) * ctas * 2)
        raw = raw[:len(phases) * grid * 2].reshape(len(phases), grid, 2)
        stamps.append(raw.long() & 0xffffffff)
    stamps = torch.stack(stamps[4:])
    work = (stamps[..., 1] - stamps[..., 0]) % (1 << 32)
    wait = (stamps[:, 1:, :, 0] - stamps[:, :-1, :, 1]) % (1 << 32)
    print(f"phase | work: mean, max over CTAs | wait after it: mean, min"
          f" | stage   (context {context}, SM clocks in thousands)")
    for i, phase in enumerate(phases):
        waiting = (f"{wait[:, i].double().mean() / 1e3:.2f}, "
                   f"{wait[:, i].amin(1).double().mean() / 1e3:.2f}"
                   if i + 1 < len(phases) else "-")
        print(f"{i} | {work[:, i].double().mean() / 1e3:.2f}, "
              f"{work[:, i].amax(1).double().mean() / 1e3:.2f} | {waiting} | "
              f"{'; '.join(phase['stages'])}")


def main():
    kernel, stamped = Instance(sys.argv[1]), Instance(sys.argv[2])
    measure_stream()
    kernel.randomise_weights(1)
    time_kernel(kernel)
    stamped.randomise_weights(1)
    time_phases(stamped)


if __name__ == "__main__":
    main()

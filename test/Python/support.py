# SPDX-License-Identifier: Apache-2.0
"""A bundle and a driver for tests that have no GPU.

The driver is FakeCuda.c: device memory is host memory, and the kernel is
`Kernel.run` below, which leaves traces of what it was given.
"""

import ctypes
import json
import os
import struct
import tempfile

MANIFEST = {
    "format": "megalith-bundle", "version": 1, "compiler": "test",
    "block": "sample", "kernel": "megalith_sample",
    "input": {"dtype": "bf16", "shape": [16]},
    "output": {"dtype": "bf16", "shape": [16]},
    "weights": [
        {"name": "norm", "kind": "dense", "shape": [16],
         "tensors": [{"name": "norm", "dtype": "bf16", "shape": [16]}]},
        {"name": "a.w", "kind": "quant", "shape": [160, 24], "group": 32,
         "tensors": [
             {"name": "a.w.w_q", "dtype": "u8", "shape": [80, 24]},
             {"name": "a.w.scales", "dtype": "bf16", "shape": [5, 24]},
             {"name": "a.w.zeros", "dtype": "bf16", "shape": [5, 24]}]}],
    "weight_bytes": 5152,
    "packed": [
        {"layout": "raw", "offset": 0, "bytes": 32, "sources": ["norm"]},
        {"layout": "mma_m16k128", "offset": 32, "bytes": 5120,
         "sources": ["a.w"]}],
    "states": [{"name": "0.S", "dtype": "f32", "shape": [2, 3]},
               {"name": "1.kv", "dtype": "bf16", "shape": [-1, 8]},
               {"name": "1.rope", "dtype": "bf16", "shape": [-1, 4]}],
    "in_place": True, "workspace": {"bytes": 256},
    "probes": [{"name": "ids", "dtype": "i32", "shape": [4], "offset": 64}],
    "relaxations": [],
    "launch": {"threads": 512, "shared_bytes": 100000, "max_ctas": 100},
    "schedule": {},
    "targets": [{"arch": "sm_90a", "file": "kernel.sm_90a.cubin"}],
}


def cubin():
    """The least that is an ELF file for CUDA: a header, the sections' names,
    and two section headers, of which the second holds the names."""
    names = b"\0" * 8
    header = struct.pack(
        "<4s5B7x2HI3QI6H", b"\x7fELF", 2, 1, 1, 0, 0, 2, 190, 1, 0, 0,
        64 + len(names), 0, 64, 0, 0, 64, 2, 1)
    strings = struct.pack("<2I4Q2I2Q", 0, 3, 0, 0, 64, len(names), 0, 0, 1, 0)
    return header + names + bytes(64) + strings


def write_bundle(folder, manifest=None):
    """A bundle in `folder`; the kernel is never looked at."""
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "manifest.json"), "w") as file:
        json.dump(manifest or MANIFEST, file)
    with open(os.path.join(folder, "kernel.sm_90a.cubin"), "wb") as file:
        file.write(cubin())
    return folder


def temporary_bundle(case, manifest=None):
    """A bundle that goes with the test case."""
    folder = tempfile.TemporaryDirectory()
    case.addCleanup(folder.cleanup)
    return write_bundle(folder.name, manifest)


class Header(ctypes.Structure):
    """mega_kernel_header."""

    _fields_ = [("input", ctypes.c_void_p), ("output", ctypes.c_void_p),
                ("weights", ctypes.c_void_p), ("workspace", ctypes.c_void_p),
                ("position", ctypes.c_int64)]


class Kernel:
    """What the fake driver launches, for a bundle like MANIFEST: the output is
    the input, the first word of S counts, a cache's new row is its number."""

    def __init__(self):
        self.driver = ctypes.CDLL("libcuda.so.1")
        self.states = []
        self.rows = (16, 8)
        self.header = None
        self.stream = None
        self._callback = ctypes.CFUNCTYPE(
            None, ctypes.c_void_p, ctypes.c_void_p)(self.run)
        ctypes.c_void_p.in_dll(self.driver, "fake_kernel").value = (
            ctypes.cast(self._callback, ctypes.c_void_p).value)

    def counter(self, name):
        return ctypes.c_long.in_dll(self.driver, "fake_" + name)

    def run(self, parameter, stream):
        self.header = Header.from_buffer_copy(
            ctypes.string_at(parameter, ctypes.sizeof(Header)))
        self.stream = stream or 0
        self.states = list(struct.unpack("3Q", ctypes.string_at(
            parameter + ctypes.sizeof(Header), 24)))
        ctypes.memmove(self.header.output, self.header.input, 32)
        count = ctypes.c_float.from_address(self.states[0])
        count.value += 1
        position = self.header.position
        for address, size in zip(self.states[1:], self.rows):
            ctypes.memset(address + position * size, position % 251, size)


def bf16(values):
    """The bits of numbers that bf16 holds exactly, little-endian."""
    return b"".join(struct.pack("<f", value)[2:] for value in values)


def weight_bytes():
    """Values for every tensor of MANIFEST, by name."""
    return {
        "norm": bf16(range(16)),
        "a.w.w_q": bytes(i % 256 for i in range(80 * 24)),
        "a.w.scales": bf16([0.5] * 120),
        "a.w.zeros": bf16([i % 16 for i in range(120)]),
    }

# SPDX-License-Identifier: Apache-2.0
"""The package over the real library and a fake driver."""

import array
import copy
import ctypes
import gc
import json
import os
import struct
import subprocess
import sys
import tempfile
import unittest

import support
from megalith import _dlpack

import megalith


class HostArray:
    """An array as NumPy shows it."""

    def __init__(self, data, typestr, shape, strides=None):
        self.data = bytearray(data)
        self.address = ctypes.addressof(
            (ctypes.c_char * max(len(data), 1)).from_buffer(self.data or
                                                            bytearray(1)))
        self.__array_interface__ = {
            "version": 3, "typestr": typestr, "shape": shape,
            "strides": strides, "data": (self.address, False)}


class CudaArray:
    """Device memory as CuPy and Numba show it."""

    def __init__(self, data, typestr, shape):
        self.memory = ctypes.create_string_buffer(len(data) + 256)
        address = ctypes.addressof(self.memory)
        self.address = address + -address % 256
        ctypes.memmove(self.address, data, len(data))
        self.size = len(data)
        self.__cuda_array_interface__ = {
            "version": 3, "typestr": typestr, "shape": shape,
            "strides": None, "data": (self.address, False)}

    def bytes(self):
        return ctypes.string_at(self.address, self.size)


class DlpackArray:
    """Device memory as JAX shows it; counts its capsules."""

    def __init__(self, cuda, dtype, shape, device=(_dlpack.CUDA, 0)):
        self.cuda, self.dtype, self.shape = cuda, dtype, shape
        self.device = device
        self.streams = []

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, stream=None):
        self.streams.append(stream)
        return _dlpack.export(self.cuda.address, self.dtype, self.shape,
                              self.device, self.cuda)


class PackageTest(unittest.TestCase):
    def setUp(self):
        self.kernel = support.Kernel()
        self.path = support.temporary_bundle(self)
        self.allocations = self.kernel.counter("allocations").value
        self.addCleanup(self.expect_no_leak)

    def expect_no_leak(self):
        gc.collect()
        self.assertEqual(self.kernel.counter("allocations").value,
                         self.allocations)
        self.assertEqual(_dlpack._exported, {})

    def weights(self):
        data = support.weight_bytes()
        return {
            "norm": HostArray(data["norm"], "<V2", (16,)),
            "a.w.w_q": memoryview(data["a.w.w_q"]).cast("B", (80, 24)),
            "a.w.scales": HostArray(data["a.w.scales"], "<u2", (5, 24)),
            "a.w.zeros": CudaArray(data["a.w.zeros"], "<V2", (5, 24)),
        }

    def bound(self, capacity=4):
        block = megalith.load(self.path, capacity=capacity)
        self.addCleanup(block.close)
        block.bind(self.weights())
        return block

    def fails(self, error, text):
        return self.assertRaisesRegex(error, text)

    def test_bundle(self):
        bundle = megalith.Bundle(self.path)
        self.assertEqual(bundle.block, "sample")
        self.assertEqual(bundle.input, ("", "bf16", (16,)))
        self.assertEqual(bundle.output, ("", "bf16", (16,)))
        self.assertEqual(list(bundle.tensors),
                         ["norm", "a.w.w_q", "a.w.scales", "a.w.zeros"])
        self.assertEqual(bundle.tensors["a.w.w_q"],
                         ("a.w.w_q", "u8", (80, 24)))
        self.assertEqual(bundle.states["1.kv"], ("1.kv", "bf16", (-1, 8)))
        self.assertTrue(bundle.states["1.kv"].is_cache)
        self.assertFalse(bundle.states["0.S"].is_cache)
        self.assertEqual(bundle.states["0.S"].nbytes, 24)
        self.assertEqual(bundle.states["1.kv"].nbytes, 16)
        self.assertEqual(bundle.probes["ids"].shape, (4,))
        self.assertEqual(bundle.manifest, support.MANIFEST)

    def test_errors_have_the_librarys_messages(self):
        with self.fails(megalith.IoError, "/nowhere/manifest.json"):
            megalith.Bundle("/nowhere")
        newer = dict(copy.deepcopy(support.MANIFEST), version=99)
        with self.fails(megalith.UnsupportedVersion, "99"):
            megalith.Bundle(support.temporary_bundle(self, newer))
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "manifest.json"), "w") as file:
                file.write("{")
            with self.fails(megalith.BadFormat, "manifest.json"):
                megalith.Bundle(folder)
        with self.fails(megalith.NoKernel, "no device 7"):
            megalith.load(self.path, device=7)
        with self.fails(megalith.InvalidArgument, "-1 rows"):
            megalith.load(self.path, capacity=-1)
        self.assertTrue(issubclass(megalith.NotFound, LookupError))
        self.assertTrue(issubclass(megalith.Mismatch, ValueError))
        try:
            megalith.Bundle("/nowhere")
        except megalith.MegalithError as error:
            self.assertEqual(error.status, 3)

    def test_weights(self):
        block = megalith.load(self.path, capacity=4)
        self.addCleanup(block.close)
        with self.fails(megalith.NotReady, "4 of 4 weight tensors .*'norm'"):
            block.check_ready()
        with self.fails(megalith.NotFound, "none of the 1 tensors.*'sample'"):
            block.bind({"other": b""})
        with self.fails(megalith.NotFound, "prefix 'm.'"):
            block.bind(self.weights(), prefix="m.")
        wrong = self.weights()
        wrong["a.w.zeros"] = HostArray(bytes(480), "<f4", (5, 24))
        with self.fails(megalith.Mismatch,
                        "'a.w.zeros': dtype is F32, expected BF16"):
            block.bind(wrong)
        wrong["a.w.zeros"] = HostArray(bytes(240), "<u2", (24, 5))
        with self.fails(megalith.Mismatch,
                        "shape is 24x5, expected 5x24"):
            block.bind(wrong)
        wrong["a.w.zeros"] = HostArray(bytes(480), "<u2", (5, 24), (96, 4))
        with self.fails(ValueError, "'a.w.zeros' is not contiguous"):
            block.bind(wrong)
        wrong["a.w.zeros"] = 3
        with self.fails(TypeError, "'a.w.zeros' is a int, expected an array"):
            block.bind(wrong)
        # None of these gave anything; a part and then the rest is fine.
        weights = self.weights()
        block.bind({"m.norm": weights.pop("norm"), "m.x": 1}, prefix="m.")
        with self.fails(megalith.NotReady, "3 of 4"):
            block.check_ready()
        block.bind(weights)
        block.check_ready()
        with self.fails(megalith.InvalidArgument, "already bound"):
            block.bind(self.weights())
        # What lies on the device is what was given.
        block.step_host(support.bf16(range(16)) and HostArray(
            support.bf16(range(16)), "<V2", (16,)))
        self.assertEqual(
            ctypes.string_at(self.kernel.header.weights, 32),
            support.weight_bytes()["norm"])

    def packed(self, block):
        block.step_host(memoryview(bytes(32)).cast("H"))
        return ctypes.string_at(self.kernel.header.weights, 5152)

    def test_weights_are_all_or_nothing(self):
        block = megalith.load(self.path, capacity=4)
        self.addCleanup(block.close)
        bad = self.weights()
        bad["a.w.zeros"] = HostArray(support.bf16([1] * 119 + [16]), "<V2",
                                     (5, 24))
        with self.fails(megalith.Mismatch, "zero point 119 is 16, expected"):
            block.bind(bad)
        with self.fails(megalith.NotReady, "4 of 4"):
            block.check_ready()
        block.bind(self.weights())
        self.assertEqual(self.packed(block), self.packed(self.bound()))

    def test_parts_are_kept(self):
        """What waits for the rest of its region is the library's own copy."""
        block = megalith.load(self.path, capacity=4)
        self.addCleanup(block.close)
        weights = self.weights()
        codes = bytearray(support.weight_bytes()["a.w.w_q"])
        block.bind({"a.w.w_q": memoryview(codes).cast("B", (80, 24))})
        codes[:] = bytes(len(codes))
        del weights["a.w.w_q"]
        block.bind(weights)
        self.assertEqual(self.packed(block), self.packed(self.bound()))

    def test_bind_weights_by_hand(self):
        """What the package never asks of the library."""
        from megalith._library import WeightEntry, check, library
        block = megalith.load(self.path, capacity=4)
        self.addCleanup(block.close)
        data = (ctypes.c_char * 32)()
        shape = (ctypes.c_int64 * 1)(16)

        def bind(*entries):
            listed = (WeightEntry * len(entries))(*entries)
            check(library().megalith_bind_weights(block._live(), listed,
                                                  len(entries)))
        at = ctypes.addressof(data)
        good = WeightEntry(b"norm", at, 32, shape, 1, 2)
        for bad, text in (
                ((WeightEntry(b"other", at, 32, shape, 1, 2),),
                 "no tensor 'other'"),
                ((good, good), "tensor 'norm' is given twice"),
                ((WeightEntry(None, at, 32, shape, 1, 2),), "name is null"),
                ((WeightEntry(b"norm", None, 32, shape, 1, 2),),
                 "data is null"),
                ((WeightEntry(b"norm", at, 32, None, 1, 2),),
                 "shape is null"),
                ((WeightEntry(b"norm", at, 32, shape, 9, 2),),
                 "rank is 9, expected 0..8"),
                ((WeightEntry(b"norm", at, 32, shape, 1, 4),),
                 "unknown dtype 4"),
                ((WeightEntry(b"norm", at, 30, shape, 1, 2),),
                 "30 bytes do not fit BF16")):
            with self.subTest(text), self.fails(megalith.MegalithError, text):
                bind(*bad)
        bind()
        with self.fails(megalith.NotReady, "4 of 4"):
            block.check_ready()
        bind(good)
        with self.fails(megalith.NotReady, "3 of 4"):
            block.check_ready()

    def test_weights_of_a_file(self):
        data = support.weight_bytes()
        bundle = megalith.Bundle(self.path)
        kinds = {"bf16": "BF16", "u8": "U8"}
        header, offset = {}, 0
        for name, value in data.items():
            tensor = bundle.tensors[name]
            header["m." + name] = {
                "dtype": kinds[tensor.dtype], "shape": tensor.shape,
                "data_offsets": [offset, offset + len(value)]}
            offset += len(value)
        text = json.dumps(header).encode()
        path = os.path.join(self.path, "model.safetensors")
        with open(path, "wb") as file:
            file.write(struct.pack("<Q", len(text)) + text
                       + b"".join(data.values()))
        with megalith.load(bundle) as block:
            with self.fails(megalith.IoError, "absent"):
                block.bind("/absent.safetensors")
            block.bind(path, prefix="m.")
            block.check_ready()

    def test_step(self):
        block = self.bound()
        hidden = CudaArray(support.bf16(range(16)), "<V2", (16,))
        launches = self.kernel.counter("launches").value
        waits = self.kernel.counter("waits").value
        out = block.step(hidden)
        self.assertEqual(self.kernel.counter("launches").value, launches + 1)
        self.assertEqual(self.kernel.counter("waits").value, waits)
        self.assertEqual((out.dtype, out.shape, out.device),
                         ("bf16", (16,), 0))
        self.assertEqual(bytes(out.to_host()), hidden.bytes())
        self.assertEqual(self.kernel.header.input, hidden.address)
        self.assertEqual(self.kernel.stream, 0)
        # The caller's output, in place, addresses, streams.
        target = CudaArray(bytes(32), "<V2", (16,))
        self.assertIs(block.step(hidden, target, stream=0x77), target)
        self.assertEqual(target.bytes(), hidden.bytes())
        self.assertEqual(self.kernel.stream, 0x77)
        self.assertIs(block.step(target, target), target)

        class Stream:
            cuda_stream = 0x88
        self.assertEqual(block.step(hidden.address, target.address, Stream()),
                         target.address)
        self.assertEqual(self.kernel.stream, 0x88)
        self.assertEqual(block.position, 4)
        with self.fails(megalith.CapacityError, "capacity of 4 rows"):
            block.step(hidden)
        block.position = 2
        self.kernel.counter("fail_launch").value = 1
        with self.fails(megalith.DriverError, "CUDA_ERROR_LAUNCH_FAILED"):
            block.step(hidden)
        self.kernel.counter("fail_launch").value = 0
        self.assertEqual(block.position, 2)

    def test_refused_steps(self):
        block = self.bound()
        data = support.bf16(range(16))
        hidden = CudaArray(data, "<V2", (16,))
        for bad, error, text in (
                (HostArray(data, "<V2", (16,)), megalith.Mismatch,
                 "hidden is on cpu, expected cuda:0"),
                (CudaArray(data, "<V2", (4, 4)), megalith.Mismatch,
                 "'hidden': shape is 4x4, expected 16"),
                (CudaArray(data, "<f2", (16,)), megalith.Mismatch,
                 "dtype is <f2, expected BF16"),
                (hidden.address + 2, megalith.InvalidArgument,
                 "multiple of 16"),
                (0, megalith.InvalidArgument, "null"),
                ("text", TypeError, "is a str")):
            with self.subTest(text), self.fails(error, text):
                block.step(bad)
        with self.fails(TypeError, "stream is a str"):
            block.step(hidden, stream="s")
        with self.fails(megalith.InvalidArgument, "overlaps"):
            block.step(hidden.address, hidden.address + 16)
        self.assertEqual(block.position, 0)

    def test_outputs_are_taken_again_once_free(self):
        block = self.bound(capacity=100)
        hidden = CudaArray(support.bf16(range(16)), "<V2", (16,))
        first, second = block.step(hidden), block.step(hidden)
        self.assertNotEqual(first.pointer, second.pointer)
        address = first.pointer
        capsule = first.__dlpack__(stream=-1)
        del first
        self.assertNotEqual(block.step(hidden).pointer, address)
        del capsule
        self.assertEqual(block.step(hidden).pointer, address)

    def test_host_step(self):
        block = self.bound()
        data = support.bf16(range(16))
        self.assertEqual(
            bytes(block.step_host(HostArray(data, "<V2", (16,)))), data)
        self.assertEqual(
            bytes(block.step_host(memoryview(data).cast("H"))), data)
        self.assertEqual(block.position, 2)

    def test_states(self):
        block = self.bound()
        block.set_state("0.S", memoryview(struct.pack("6f", *range(6))).cast(
            "f", (2, 3)))
        view = block.state("0.S")
        self.assertEqual(view.shape, (2, 3))
        hidden = CudaArray(support.bf16(range(16)), "<V2", (16,))
        block.step(hidden)
        # A view shows what the step did; a copy does as well.
        self.assertEqual(struct.unpack("6f", view.to_host()),
                         (1, 1, 2, 3, 4, 5))
        self.assertEqual(bytes(block.get_state("0.S")), bytes(view.to_host()))
        block.step(hidden)
        self.assertEqual(block.state("1.kv").shape, (2, 8))
        self.assertEqual(bytes(block.get_state("1.kv")),
                         bytes(16) + b"\1" * 16)
        self.assertEqual(block.state("1.kv", rows=4).shape, (4, 8))
        with self.fails(megalith.InvalidArgument, r"5 rows wanted, .*0\.\.4"):
            block.state("1.kv", rows=5)
        with self.fails(megalith.InvalidArgument, "no cache"):
            block.state("0.S", rows=1)
        for method in (block.state, block.get_state):
            with self.fails(megalith.NotFound, "no state 'x'"):
                method("x")
        with self.fails(megalith.CapacityError, "5 rows are above"):
            block.set_state("1.kv", memoryview(bytes(80)).cast("H", (5, 8)))
        with self.fails(megalith.Mismatch, r"2x4, expected \?x8"):
            block.set_state("1.kv", memoryview(bytes(16)).cast("H", (2, 4)))
        self.assertEqual(len(block.probe("ids")), 16)
        with self.fails(megalith.NotFound, "no probe 'x'"):
            block.probe("x")
        block.reset()
        self.assertEqual(block.position, 0)
        self.assertEqual(bytes(view.to_host()), bytes(24))

    def test_bound_states(self):
        block = megalith.load(self.path, capacity=0)
        self.addCleanup(block.close)
        block.bind(self.weights())
        hidden = CudaArray(support.bf16(range(16)), "<V2", (16,))
        with self.fails(megalith.NotReady, "'1.kv' has no memory"):
            block.step(hidden)
        cache = CudaArray(bytes(48), "<V2", (3, 8))
        block.bind_state("1.kv", cache)
        block.bind_state("1.rope", DlpackArray(
            CudaArray(bytes(64), "<V2", (8, 4)), "bf16", (8, 4)))
        self.assertEqual(block.capacity, 3)
        with self.fails(megalith.Mismatch, "is on cpu, expected cuda:0"):
            block.bind_state("0.S", HostArray(bytes(24), "<f4", (2, 3)))
        own = CudaArray(struct.pack("6f", *range(6)), "<f4", (2, 3))
        block.bind_state("0.S", own)
        block.step(hidden)
        self.assertEqual(self.kernel.states[:2], [own.address, cache.address])
        self.assertEqual(struct.unpack("6f", own.bytes()), (1, 1, 2, 3, 4, 5))
        self.assertEqual(block.state("0.S").pointer, own.address)

    def test_views_outlive_the_instance(self):
        block = self.bound()
        view = block.state("0.S")
        block.close()
        with self.fails(megalith.InvalidArgument, "instance is closed"):
            block.reset()
        block.close()
        self.assertEqual(bytes(view.to_host()), bytes(24))
        capsule = view.__dlpack__()
        del view
        gc.collect()
        self.assertGreater(self.kernel.counter("allocations").value,
                           self.allocations)
        pointer, dtype, shape, device, strides = _dlpack.read(capsule)
        self.assertEqual((dtype, shape, device, strides),
                         ("f32", (2, 3), (_dlpack.CUDA, 0), None))
        self.assertEqual(ctypes.string_at(pointer, 24), bytes(24))

    def test_consumed_capsules(self):
        """A consumer renames the capsule and calls the deleter."""
        block = self.bound()
        capsule = block.state("0.S").__dlpack__()
        api = ctypes.pythonapi
        api.PyCapsule_SetName.argtypes = (ctypes.py_object, ctypes.c_char_p)
        managed = ctypes.cast(_dlpack._pointer(capsule, b"dltensor"),
                              ctypes.POINTER(_dlpack._Managed))
        used = b"used_dltensor"
        api.PyCapsule_SetName(capsule, used)
        self.assertEqual(len(_dlpack._exported), 1)
        del capsule
        self.assertEqual(len(_dlpack._exported), 1)
        managed.contents.deleter(managed)
        self.assertEqual(len(_dlpack._exported), 0)

    def test_exports(self):
        block = self.bound()
        view = block.state("0.S")
        interface = view.__cuda_array_interface__
        self.assertEqual(
            (interface["typestr"], interface["shape"], interface["stream"]),
            ("<f4", (2, 3), 1))
        self.assertEqual(interface["data"], (view.pointer, False))
        self.assertEqual(
            block.state("1.kv", 4).__cuda_array_interface__["typestr"], "<V2")
        hidden = CudaArray(support.bf16(range(16)), "<V2", (16,))
        out = block.step(hidden, stream=0x99)
        waits = self.kernel.counter("waits").value
        out.__dlpack__(stream=0x99)
        out.__dlpack__(stream=-1)
        self.assertEqual(self.kernel.counter("waits").value, waits)
        out.__dlpack__(stream=1, max_version=(1, 0))
        self.assertEqual(self.kernel.counter("waits").value, waits + 1)
        with self.fails(BufferError, "in place only"):
            out.__dlpack__(copy=True)
        with self.fails(BufferError, "in place only"):
            out.__dlpack__(dl_device=(_dlpack.CPU, 0))

    def test_dlpack_imports(self):
        block = self.bound()
        source = DlpackArray(CudaArray(support.bf16(range(16)), "<V2", (16,)),
                             "bf16", (16,))
        out = block.step(source)
        self.assertEqual(source.streams, [1])
        self.assertEqual(bytes(out.to_host()), source.cuda.bytes())
        strange = DlpackArray(source.cuda, "bf16", (16,), (10, 0))
        with self.fails(ValueError, "DLPack device 10, expected cpu"):
            block.step(strange)

    def test_dlpack_of_another_device(self):
        """The message names the device found and the one wanted."""
        block = self.bound()
        memory = CudaArray(support.bf16(range(16)), "<V2", (16,))
        for device, text in (
                ((_dlpack.CPU, 0), "^hidden is on cpu, expected cuda:0$"),
                ((_dlpack.CUDA, 1), "^hidden is on cuda:1, expected cuda:0$")):
            with self.fails(megalith.Mismatch, text):
                block.step(DlpackArray(memory, "bf16", (16,), device))
            with self.fails(megalith.Mismatch, text.replace(
                    "hidden", "state '1.kv'")):
                block.bind_state("1.kv", DlpackArray(memory, "bf16", (2, 8),
                                                     device))
        with self.fails(megalith.Mismatch, "dtype is F32, expected BF16"):
            block.step(DlpackArray(memory, "f32", (8,)))
        with self.fails(megalith.Mismatch, "shape is .*8.*, expected .*16"):
            block.step(DlpackArray(memory, "bf16", (8,)))

    def test_dlpack_of_numpy(self):
        """NumPy's own capsules, as if it had no interface but DLPack."""
        try:
            import numpy
        except ImportError:
            self.skipTest("no numpy")

        class Only:
            def __init__(self, values):
                self.values = values

            def __dlpack_device__(self):
                return self.values.__dlpack_device__()

            def __dlpack__(self, stream=None):
                return self.values.__dlpack__(stream=stream)
        block = self.bound()
        bits = numpy.frombuffer(bytearray(support.bf16(range(16))),
                                numpy.uint16)
        for values in (bits, Only(bits)):
            with self.fails(megalith.Mismatch,
                            "^hidden is on cpu, expected cuda:0$"):
                block.step(values)
            # From the host on purpose.
            self.assertEqual(bytes(block.step_host(values)), bits.tobytes())
        with self.fails(ValueError, "hidden. is not contiguous"):
            block.step(Only(numpy.zeros((16, 2), numpy.uint16)[:, 0]))
        # A checkpoint's tensor, too.
        other = megalith.load(self.path, capacity=4)
        self.addCleanup(other.close)
        weights = dict(self.weights(), norm=Only(bits))
        other.bind(weights)

    def test_dlpack_capsules_that_are_none(self):
        block = self.bound()
        memory = CudaArray(support.bf16(range(16)), "<V2", (16,))

        class Strange(DlpackArray):
            capsule = None

            def __dlpack__(self, stream=None):
                return self.capsule
        strange = Strange(memory, "bf16", (16,))
        for capsule in (None, 7, "dltensor"):
            strange.capsule = capsule
            with self.fails(TypeError, "no capsule named 'dltensor'"):
                block.step(strange)

    def test_host_time_of_a_step(self):
        """Generous for a busy machine; the demand is checked on a GPU."""
        import time
        block = self.bound(capacity=10000)
        hidden = CudaArray(support.bf16(range(16)), "<V2", (16,))
        target = CudaArray(bytes(32), "<V2", (16,))
        best = min(self.timed(time, block, hidden.address, target.address)
                   for _ in range(20))
        self.assertLess(best, 100e-6)

    @staticmethod
    def timed(time, block, source, target):
        begin = time.perf_counter()
        for _ in range(100):
            block.step(source, target, 0)
        return (time.perf_counter() - begin) / 100

    def test_search_for_the_library(self):
        """A wrong MEGALITH_LIBRARY is an error that names it."""
        run = subprocess.run(
            [sys.executable, "-c", "import megalith; megalith.Bundle('x')"],
            env=dict(os.environ, MEGALITH_LIBRARY="/nowhere/lib.so"),
            capture_output=True, text=True)
        self.assertNotEqual(run.returncode, 0)
        self.assertIn("NotFound: libmegalith.so could not be opened",
                      run.stderr)
        self.assertIn("MEGALITH_LIBRARY: /nowhere/lib.so", run.stderr)

    def test_without_a_driver(self):
        """Everything but an instance works, and that says why."""
        environment = dict(os.environ, LD_LIBRARY_PATH="")
        run = subprocess.run(
            [sys.executable, "-c",
             "import sys, megalith\n"
             "bundle = megalith.Bundle(sys.argv[1])\n"
             "print(bundle.block)\n"
             "try: megalith.load(bundle)\n"
             "except (megalith.NoDriver, megalith.MegalithError) as e:\n"
             "  print(type(e).__name__)", self.path],
            env=environment, capture_output=True, text=True)
        self.assertEqual(run.returncode, 0, run.stderr)
        lines = run.stdout.split()
        self.assertEqual(lines[0], "sample")
        # A machine with a GPU would find no kernel for it, or a broken one.
        self.assertIn(lines[1], ("NoDriver", "NoKernel", "DriverError"))


if __name__ == "__main__":
    unittest.main()

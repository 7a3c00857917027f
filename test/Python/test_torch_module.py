# SPDX-License-Identifier: Apache-2.0
"""megalith.torch over the real library, a fake driver, and fake_torch.

With real torch on the path instead, the same tests run on its CPU: then "cpu"
stands for the device.
"""

import copy
import gc
import os
import struct
import sys
import unittest

try:
    import torch
except ModuleNotFoundError:
    sys.path.insert(0, os.path.join(os.path.dirname(__file__), "fake_torch"))
    import torch

import support
from megalith import torch as runtime

import megalith

FAKE = not hasattr(torch, "__version__")
if not FAKE:
    runtime._KIND = "cpu"
    runtime._raw_stream = lambda ordinal: 0x5000 + ordinal
DEVICE = torch.device("cuda:0" if FAKE else "cpu")
ON = torch.device("cuda") if FAKE else DEVICE

WEIGHTS = tuple(runtime.Weight(*row) for row in (
    ("norm", torch.bfloat16, (16,), True),
    ("a.w.w_q", torch.uint8, (80, 24), False),
    ("a.w.scales", torch.bfloat16, (5, 24), False),
    ("a.w.zeros", torch.bfloat16, (5, 24), False),
    ("step.training", torch.bfloat16, (2,), True),  # in no bundle; odd names
))
STATES = tuple(runtime.State(*row) for row in (
    ("0.S", (0, "S"), torch.float32, (2, 3)),
    ("1.kv", (1, "kv"), torch.bfloat16, (-1, 8)),
    ("1.rope", (1, "rope"), torch.bfloat16, (-1, 4)),
))


def fill(tensor, data):
    if FAKE:
        return tensor.fill(data)
    if not data:
        return tensor
    source = torch.frombuffer(bytearray(data), dtype=tensor.dtype)
    with torch.no_grad():
        return tensor.copy_(source.view(tensor.shape))


def contents(tensor):
    if FAKE:
        return tensor.bytes()
    return bytes(tensor.contiguous().view(-1).view(torch.uint8).tolist())


def make(shape, dtype, data=None, device=DEVICE):
    tensor = torch.zeros(shape, dtype=dtype, device=device)
    return tensor if data is None else fill(tensor, data)


class ModuleTest(unittest.TestCase):
    def setUp(self):
        self.kernel = support.Kernel()
        path = support.temporary_bundle(self)

        class Sample(runtime.BlockModule):
            bundle_path = path
            weight_table = WEIGHTS
            state_table = STATES
        self.Sample = Sample
        self.allocations = self.kernel.counter("allocations").value

    def checkpoint(self):
        data = dict(support.weight_bytes())
        data["step.training"] = bytes(4)
        return {weight.name: make(weight.shape, weight.dtype,
                                  data[weight.name], "cpu")
                for weight in WEIGHTS}

    def loaded(self):
        module = self.Sample().to(ON)
        module.load_state_dict(self.checkpoint(), strict=True)
        return module

    def hidden(self, first=0):
        return make((16,), torch.bfloat16,
                    support.bf16(range(first, first + 16)))

    def foreign(self, rows):
        return [{"S": make((2, 3), torch.float32,
                           struct.pack("6f", *range(6)))},
                {"kv": make((rows, 8), torch.bfloat16, b"\x11" * 16 * rows),
                 "rope": make((rows, 4), torch.bfloat16, b"\x22" * 8 * rows)}]

    # Weights ---------------------------------------------------------------

    def test_names_shapes_and_dtypes(self):
        module = self.Sample()
        found = {name: (tuple(t.shape), t.dtype)
                 for name, t in module.state_dict().items()}
        self.assertEqual(found, {w.name: (w.shape, w.dtype) for w in WEIGHTS})
        self.assertEqual(list(module._parameters), ["norm"])
        self.assertEqual(list(module._modules["a"]._modules["w"]._buffers),
                         ["w_q", "scales", "zeros"])
        missing = self.checkpoint()
        del missing["a.w.zeros"]
        with self.assertRaisesRegex(RuntimeError, "a.w.zeros"):
            module.load_state_dict(missing, strict=True)

    def test_loading_packs_once(self):
        module = self.loaded()
        instance = module._instance
        self.assertIsNotNone(instance)
        before = self.kernel.counter("allocated_bytes").value
        hidden, state = self.hidden(), self.foreign(1)
        hidden, state = module.step(hidden, state)
        module.step(hidden, state)
        self.assertIs(module._instance, instance)
        # The fixed state's own memory went when the caller's came.
        self.assertLessEqual(self.kernel.counter("allocated_bytes").value,
                             before)

    def test_weights_are_on_the_device_once(self):
        module = self.loaded()
        for name, tensor in module.state_dict().items():
            self.assertEqual(tensor.device.type, "cpu", name)
            self.assertEqual(contents(tensor),
                             contents(self.checkpoint()[name]))
        module.release()
        gc.collect()
        self.assertEqual(self.kernel.counter("allocations").value,
                         self.allocations)

    def test_packing_waits_for_a_device(self):
        module = self.Sample()
        module.load_state_dict(self.checkpoint())
        self.assertIsNone(module._instance)
        with self.assertRaisesRegex(megalith.NotReady, "has no device"):
            module.prepare()
        with self.assertRaisesRegex(megalith.NotReady, "has no device"):
            module.new_state()
        # The first step's hidden vector chooses it.
        module.step(self.hidden(), self.foreign(2))
        self.assertEqual(module._device, DEVICE)

    def test_weights_that_were_never_loaded(self):
        module = self.Sample(device=DEVICE)
        partial = self.checkpoint()
        del partial["norm"]
        module.load_state_dict(partial, strict=False)
        self.assertIsNone(module._instance)
        with self.assertRaisesRegex(
                megalith.NotReady,
                "1 of 5 weight tensors were never loaded: 'norm'"):
            module.step(self.hidden(), self.foreign(2))

    def test_changed_weights_are_noticed_with_a_new_state(self):
        module = self.loaded()
        hidden, state = module.step(self.hidden(), self.foreign(1))
        fill(module._parameters["norm"], support.bf16(range(1, 17)))
        packed = lambda: self.kernel_norm()
        module.step(hidden, state)
        self.assertEqual(packed(), support.bf16(range(16)))
        module.step(self.hidden(), self.foreign(1))
        self.assertEqual(packed(), support.bf16(range(1, 17)))
        # Or at once.
        fill(module._parameters["norm"], support.bf16(range(2, 18)))
        module.prepare()
        module.step(hidden, state)
        self.assertEqual(packed(), support.bf16(range(2, 18)))
        # A second load as well.
        module.load_state_dict(self.checkpoint())
        module.step(hidden, state)
        self.assertEqual(packed(), support.bf16(range(16)))

    def kernel_norm(self):
        import ctypes
        return ctypes.string_at(self.kernel.header.weights, 32)

    def test_bad_weights_leave_no_instance(self):
        module = self.Sample(device=DEVICE)
        bad = self.checkpoint()
        fill(bad["a.w.zeros"], support.bf16([16] * 120))
        with self.assertRaisesRegex(megalith.Mismatch,
                                    "zero point 0 is 16, expected"):
            module.load_state_dict(bad)
        with self.assertRaisesRegex(megalith.Mismatch, "zero point 0 is 16"):
            module.step(self.hidden(), self.foreign(1))
        module.load_state_dict(self.checkpoint())
        module.step(self.hidden(), self.foreign(1))

    def test_dtypes_stay(self):
        with self.assertRaisesRegex(TypeError, "'sample' cannot become "
                                               "torch.float16"):
            self.loaded().half()
        module = self.loaded()
        self.assertIs(module.cpu() if FAKE else module.share_memory(), module)

    # Steps -----------------------------------------------------------------

    def test_a_foreign_state_is_taken_up(self):
        module = self.loaded()
        hidden, state = self.hidden(), self.foreign(3)
        fixed, cache = state[0]["S"], state[1]["kv"]
        waits = self.kernel.counter("waits").value
        launches = self.kernel.counter("launches").value
        module.step(hidden, self.foreign(1))  # frees the instance's own memory
        waits = self.kernel.counter("waits").value
        out, same = module.step(hidden, state)
        self.assertIs(same, state)
        self.assertEqual(self.kernel.counter("waits").value, waits)
        self.assertEqual(self.kernel.counter("launches").value, launches + 2)
        self.assertEqual(contents(out), contents(hidden))
        self.assertIsNot(out, hidden)
        # Fixed states are used where they lie.
        self.assertIs(state[0]["S"], fixed)
        self.assertEqual(self.kernel.states[0], fixed.data_ptr())
        self.assertEqual(struct.unpack("6f", contents(fixed)),
                         (1, 1, 2, 3, 4, 5))
        # Caches move once, and show a row more; the caller's is untouched.
        self.assertEqual(self.kernel.header.position, 3)
        self.assertEqual(self.kernel.stream, 0x5000)
        self.assertEqual(tuple(state[1]["kv"].shape), (4, 8))
        self.assertEqual(tuple(state[1]["rope"].shape), (4, 4))
        self.assertEqual(contents(state[1]["kv"]),
                         b"\x11" * 48 + b"\3" * 16)
        self.assertEqual(contents(state[1]["rope"]), b"\x22" * 24 + b"\3" * 8)
        self.assertEqual(contents(cache), b"\x11" * 48)
        address = state[1]["kv"].data_ptr()
        out, state = module.step(out, state)
        self.assertEqual(state[1]["kv"].data_ptr(), address)
        self.assertEqual(contents(state[1]["kv"]),
                         b"\x11" * 48 + b"\3" * 16 + b"\4" * 16)
        self.assertEqual(self.kernel.counter("waits").value, waits)

    def test_two_sequences_in_turn(self):
        module = self.loaded()
        hidden = self.hidden()
        states = [self.foreign(1), self.foreign(5)]
        for _ in range(3):
            for state in states:
                module.step(hidden, state)
        for state, rows in zip(states, (1, 5)):
            new = b"".join(bytes([rows + i]) * 16 for i in range(3))
            self.assertEqual(contents(state[1]["kv"]),
                             b"\x11" * 16 * rows + new)
            self.assertEqual(struct.unpack_from("f", contents(state[0]["S"])),
                             (3,))
        # Taking a state up again copies no cache that is already ours.
        address = states[0][1]["kv"].data_ptr()
        module.step(hidden, states[0])
        self.assertEqual(states[0][1]["kv"].data_ptr(), address)

    def test_replaced_entries_are_noticed(self):
        module = self.loaded()
        hidden, state = self.hidden(), self.foreign(2)
        module.step(hidden, state)
        other = make((2, 3), torch.float32, bytes(24))
        state[0]["S"] = other
        module.step(hidden, state)
        self.assertEqual(self.kernel.states[0], other.data_ptr())
        state[0] = {"S": make((2, 3), torch.float32, bytes(24))}
        module.step(hidden, state)
        self.assertEqual(self.kernel.states[0], state[0]["S"].data_ptr())
        # A shorter cache goes back to an earlier token.
        state[1]["kv"] = state[1]["kv"][:3]
        state[1]["rope"] = state[1]["rope"][:3]
        module.step(hidden, state)
        self.assertEqual(self.kernel.header.position, 3)

    def test_a_full_cache_grows(self):
        module = self.loaded()
        hidden, state = self.hidden(), module.new_state(capacity=2)
        room = state[1]["kv"]._megalith_buffer
        self.assertEqual([sorted(layer) for layer in state],
                         [["S"], ["kv", "rope"]])
        self.assertEqual(tuple(state[1]["kv"].shape), (0, 8))
        address = None
        for step in range(5):
            hidden, state = module.step(hidden, state)
            if step < 2:
                self.assertIn(address, (None, state[1]["kv"].data_ptr()))
                address = state[1]["kv"].data_ptr()
                self.assertEqual(address, room.data_ptr())
        self.assertNotEqual(state[1]["kv"].data_ptr(), address)
        self.assertEqual(
            contents(state[1]["kv"]),
            b"".join(bytes([row]) * 16 for row in range(5)))
        with self.assertRaisesRegex(megalith.InvalidArgument, "0 rows"):
            module.new_state(capacity=0)

    def test_an_earlier_view_is_copied(self):
        """A step from a kept view of fewer rows must not write into the rows
        that later views show."""
        module = self.loaded()
        hidden, state = self.hidden(), self.foreign(1)
        module.step(hidden, state)
        fork = [dict(state[0], S=state[0]["S"].clone()), dict(state[1])]
        module.step(hidden, state)
        before = contents(state[1]["kv"])
        module.step(hidden, fork)
        module.step(hidden, fork)
        self.assertEqual(contents(state[1]["kv"]), before)
        self.assertEqual(contents(fork[1]["kv"]),
                         b"\x11" * 16 + b"\1" * 16 + b"\2" * 16 + b"\3" * 16)

    def test_a_misaligned_state_is_copied(self):
        module = self.loaded()
        state = self.foreign(1)
        if FAKE:
            odd = torch.empty(7, dtype=torch.float32, device=DEVICE)
            odd = odd.narrow(0, 1, 6).as_strided((2, 3), (3, 1))
        else:
            odd = torch.zeros(7)[1:].view(2, 3)
        state[0]["S"] = fill(odd, bytes(24))
        module.step(self.hidden(), state)
        self.assertIsNot(state[0]["S"], odd)
        self.assertEqual(struct.unpack_from("f", contents(state[0]["S"])),
                         (1,))

    def test_refused_states_change_nothing(self):
        module = self.loaded()
        hidden, good = self.hidden(), self.foreign(2)
        module.step(hidden, good)
        launches = self.kernel.counter("launches").value

        def without(layer, key):
            state = self.foreign(2)
            del state[layer][key]
            return state

        def replaced(layer, key, tensor):
            state = self.foreign(2)
            state[layer][key] = tensor
            return state
        for bad, text in (
                ([{}], r"the state has no state\[0\]\['S'\], expected "
                       r"torch.float32 \[2, 3\]"),
                (None, r"no state\[0\]\['S'\]"),
                (without(1, "rope"), r"no state\[1\]\['rope'\], expected "
                                     r"torch.bfloat16 \[rows, 4\]"),
                (replaced(0, "S", 1.0), r"state\[0\]\['S'\] is a float"),
                (replaced(0, "S", make((3, 2), torch.float32)),
                 r"is torch.float32 \[3, 2\], expected"),
                (replaced(0, "S", make((2, 3), torch.int32)),
                 r"is torch.int32 \[2, 3\], expected torch.float32"),
                (replaced(1, "kv", make((3, 8), torch.bfloat16)),
                 r"state\[1\]\['rope'\] has 2 rows, expected 3 as "
                 r"state\[1\]\['kv'\] has")):
            with self.subTest(text), self.assertRaisesRegex(
                    megalith.Mismatch, text):
                module.step(hidden, bad)
        if FAKE:
            with self.assertRaisesRegex(megalith.Mismatch,
                                        r"is on cpu, expected cuda:0"):
                module.step(hidden, replaced(0, "S", make(
                    (2, 3), torch.float32, device="cpu")))
        for bad, text in (
                (make((4, 4), torch.bfloat16), r"shape is \[4, 4\]"),
                (make((16,), torch.float32), "dtype is torch.float32")):
            with self.subTest(text), self.assertRaisesRegex(
                    megalith.Mismatch, "hidden: " + text):
                module.step(bad, good)
        with self.assertRaisesRegex(megalith.InvalidArgument,
                                    "position is 7, expected 3"):
            module.step(hidden, good, position=7)
        self.assertEqual(self.kernel.counter("launches").value, launches)
        module.step(hidden, good)
        self.assertEqual(self.kernel.header.position, 3)

    def test_a_failed_launch_changes_nothing(self):
        module = self.loaded()
        hidden, state = self.hidden(), self.foreign(2)
        module.step(hidden, state)
        self.kernel.counter("fail_launch").value = 1
        with self.assertRaises(megalith.DriverError):
            module.step(hidden, state)
        self.kernel.counter("fail_launch").value = 0
        self.assertEqual(tuple(state[1]["kv"].shape), (3, 8))
        address = state[1]["kv"].data_ptr()
        module.step(hidden, state)
        self.assertEqual(self.kernel.header.position, 3)
        self.assertEqual(state[1]["kv"].data_ptr(), address)

    def test_a_failed_first_launch_keeps_no_copy(self):
        module = self.loaded()
        hidden, state = self.hidden(), self.foreign(2)
        cache = state[1]["kv"]
        self.kernel.counter("fail_launch").value = 1
        with self.assertRaises(megalith.DriverError):
            module.step(hidden, state)
        self.kernel.counter("fail_launch").value = 0
        self.assertIs(state[1]["kv"], cache)
        fill(cache, b"\x33" * 32)
        module.step(hidden, state)
        self.assertEqual(contents(state[1]["kv"]), b"\x33" * 32 + b"\2" * 16)

    def test_states_of_another_bundle(self):
        self.Sample.state_table = STATES[:2]
        with self.assertRaisesRegex(
                megalith.Mismatch, r"has states \['0.S', '1.kv'\], expected "
                                   r"\['0.S', '1.kv', '1.rope'\], as block "
                                   "'sample' has"):
            self.Sample()

    def test_a_lot_of_outputs_is_made_behind_the_launch(self):
        module = self.loaded()
        hidden, state = self.hidden(), module.new_state()
        for _ in range(runtime._Outputs._LOT):
            hidden, state = module.step(hidden, state)
        self.assertEqual(len(module._taken.outputs.left),
                         runtime._Outputs._LOT)

    def test_calling_is_stepping(self):
        module = self.loaded()
        out, state = module(self.hidden(), self.foreign(1))
        self.assertEqual(tuple(state[1]["kv"].shape), (2, 8))


    def test_outputs_are_apart(self):
        """Outputs are made by the lot; no two of them share memory."""
        module = self.loaded()
        hidden, state = self.hidden(), module.new_state()
        outs = [module.step(hidden, state)[0] for _ in range(200)]
        addresses = sorted(out.data_ptr() for out in outs)
        self.assertTrue(all(address % 16 == 0 for address in addresses))
        self.assertTrue(all(b - a >= 32
                            for a, b in zip(addresses, addresses[1:])))
        self.assertTrue(all(contents(out) == contents(hidden)
                            for out in outs))
        # A lot belongs to a stream.
        streams = runtime._raw_stream
        try:
            runtime._raw_stream = lambda ordinal: 0x6000
            out, _ = module.step(hidden, state)
        finally:
            runtime._raw_stream = streams
        self.assertEqual(self.kernel.stream, 0x6000)
        self.assertGreaterEqual(abs(out.data_ptr() - outs[-1].data_ptr()), 32)
        self.assertEqual(module._taken.outputs.stream, 0x6000)


class WithoutCachesTest(unittest.TestCase):
    """Blocks of other forms: no cache, f32 out of another shape, states at the
    root and at numbers with gaps."""

    def test(self):
        kernel = support.Kernel()
        kernel.rows = ()
        manifest = copy.deepcopy(support.MANIFEST)
        manifest["states"] = [{"name": "S", "dtype": "f32", "shape": [2, 3]},
                              {"name": "7.T.0", "dtype": "f32", "shape": [4]},
                              {"name": "9", "dtype": "f32", "shape": [4]}]
        manifest["output"] = {"dtype": "f32", "shape": [3, 3]}
        manifest["in_place"] = False

        class Sample(runtime.BlockModule):
            bundle_path = support.temporary_bundle(self, manifest)
            weight_table = WEIGHTS[:4]
            state_table = tuple(runtime.State(*row) for row in (
                ("S", ("S",), torch.float32, (2, 3)),
                ("7.T.0", (7, "T", 0), torch.float32, (4,)),
                ("9", (9,), torch.float32, (4,))))
        module = Sample(device=DEVICE)
        module.load_state_dict({
            weight.name: make(weight.shape, weight.dtype,
                              support.weight_bytes()[weight.name], "cpu")
            for weight in WEIGHTS[:4]})
        state = module.new_state()
        self.assertEqual(sorted(map(str, state)), ["7", "9", "S"])
        self.assertIsInstance(state[7]["T"], list)
        hidden = make((16,), torch.bfloat16, support.bf16(range(16)))
        for step in range(3):
            out, state = module.step(hidden, state)
            self.assertEqual(kernel.header.position, step)
            self.assertEqual(out.data_ptr() % 16, 0)
            self.assertEqual((tuple(out.shape), out.dtype),
                             ((3, 3), torch.float32))
        module.step(hidden, state, position=40)
        self.assertEqual(kernel.header.position, 40)
        module.step(hidden, state)
        self.assertEqual(kernel.header.position, 41)
        self.assertEqual(kernel.states[2], state[9].data_ptr())


if __name__ == "__main__":
    unittest.main()

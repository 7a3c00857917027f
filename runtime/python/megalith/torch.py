# SPDX-License-Identifier: Apache-2.0
"""The torch.nn.Module behind what `megalithc --emit=torch` writes.

A written module is a subclass of BlockModule with three tables: its bundle,
its weights and its states. Everything else is here.

Weights. Parameters and buffers have the description's names, shapes and dtypes,
so load_state_dict(strict=True) works, and they stay in host memory: the device
holds the weights once, in the kernel's own layout. `.to("cuda:1")` chooses
where the kernel runs and moves no parameter. The packed copy is made by
load_state_dict, if a device was chosen before, or else by the first step. A
parameter that is changed in place later is noticed, and packed again, when a
step gets a state that is not the last step's; `prepare()` does so at once.
(Changes that torch does not count, such as through `.data`, are not seen.)

State. A state is nested as the names say: "3.c_kv" is state[3]["c_kv"]. Any
tensors of the right dtype and shape will do. Fixed ones are used where they
lie and changed in place. A cache of n rows is copied once, into a buffer with
room to grow; from then on the entry is a view of that buffer with one row more
after each step. Taking up a state that is not the last step's costs some
microseconds and that copy; otherwise a step is checks, one allocation for its
output, and one launch. Clone what you want to keep.
"""

from __future__ import annotations

import contextlib
import ctypes
import operator
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

import torch

from ._library import check, library
from .bundle import Bundle
from .errors import InvalidArgument, Mismatch, NotReady
from .instance import Instance

__all__ = ["BlockModule", "State", "Weight"]

#: Fresh rows of a cache that has to grow: at least these, or half of what it
#: holds.
_SPARE_ROWS = 1024

_NAMES = {"u8": torch.uint8, "i32": torch.int32, "bf16": torch.bfloat16,
          "f32": torch.float32}


class Weight(NamedTuple):
    """A tensor of the checkpoint."""

    name: str
    dtype: torch.dtype
    shape: Tuple[int, ...]
    #: A Parameter; else a buffer, as quantised weights are.
    is_parameter: bool


class State(NamedTuple):
    """A tensor that a step reads and changes."""

    name: str
    #: Where it is in a state: (3, "c_kv") is state[3]["c_kv"].
    path: Tuple[Any, ...]
    dtype: torch.dtype
    #: The first entry of a cache is -1: it grows by one row a step.
    shape: Tuple[int, ...]

    @property
    def is_cache(self) -> bool:
        """Whether it grows by one row a step."""
        return bool(self.shape) and self.shape[0] == -1

    @property
    def label(self) -> str:
        """As it is written in Python."""
        return "state" + "".join(f"[{key!r}]" for key in self.path)


class _Cache:
    """A cache of the state in use: where its view is, and its buffer."""

    __slots__ = ("index", "holder", "key", "buffer", "row", "strides")

    def __init__(self, index: int, holder: Any, key: Any,
                 buffer: torch.Tensor) -> None:
        #: Of the view, among _Taken.values.
        self.index = index
        self.holder = holder
        self.key = key
        self.buffer = buffer
        self.row = tuple(buffer.shape[1:])
        self.strides = buffer.stride()


class _Outputs:
    """Fresh output vectors, made by the lot: that is far cheaper than one by
    one. Each is the caller's; a lot's memory goes with its last vector."""

    __slots__ = ("shape", "dtype", "device", "left", "stream")
    _LOT = 16

    def __init__(self, shape: Tuple[int, ...], dtype: torch.dtype,
                 device: torch.device) -> None:
        self.shape = tuple(shape)
        self.dtype = dtype
        self.device = device
        self.left: List[torch.Tensor] = []
        self.stream = 0

    def make(self, stream: int) -> None:
        """A lot, for steps on the current stream, `stream`: memory of torch's
        belongs to one. Vectors start at multiples of 16 bytes, as the kernel
        wants."""
        self.stream = stream
        count = 1
        unit = 16 // torch.empty(0, dtype=self.dtype).element_size()
        for dim in self.shape:
            count *= dim
        with torch.inference_mode(False), torch.no_grad():
            lot = torch.empty((self._LOT, -(-count // unit) * unit),
                              dtype=self.dtype, device=self.device)
            if count % unit:
                self.left = [row[:count].view(self.shape)
                             for row in lot.unbind(0)]
            else:
                self.left = list(lot.view((self._LOT,) + self.shape).unbind(0))


class _Taken:
    """The state that the next step uses if it gets it again. A plain object:
    setting attributes of a Module is slow."""

    __slots__ = ("state", "holders", "keys", "values", "caches", "rows", "room",
                 "last", "outputs", "handle")

    def __init__(self) -> None:
        self.state: Any = None
        #: What must not have been replaced: holders[i][keys[i]] is values[i].
        #: The nested parts first, then the tensors.
        self.holders: List[Any] = []
        self.keys: List[Any] = []
        self.values: List[Any] = []
        self.caches: List[_Cache] = []
        #: Valid rows, which is the position; and how many there is room for.
        self.rows = 0
        self.room = 0
        #: The last step's output, if it may be the next one's input.
        self.last: Optional[torch.Tensor] = None
        self.outputs: Optional[_Outputs] = None
        #: The megalith_instance.
        self.handle = 0

    def is_(self, state: Any) -> bool:
        """Whether `state` is as the last step left it, with room for a row."""
        if state is not self.state or self.rows >= self.room:
            return False
        try:
            # Every step asks: at C's speed.
            return all(map(_is, map(_get, self.holders, self.keys),
                           self.values))
        except (LookupError, TypeError):
            return False

    def advance(self) -> None:
        """Counts a step, and shows its row."""
        self.rows = rows = self.rows + 1
        values = self.values
        for cache in self.caches:
            cache.holder[cache.key] = values[cache.index] = (
                cache.buffer.as_strided((rows,) + cache.row, cache.strides))

    def retire(self) -> None:
        """Another state comes: lets this one be taken up again without a
        copy, by an attribute of its views that no other tensor has."""
        for cache in self.caches:
            self.values[cache.index]._megalith_buffer = cache.buffer


_is = operator.is_
_get = operator.getitem
# A Module's own __setattr__ looks for parameters.
_set = object.__setattr__
_version_of = operator.attrgetter("_version")
_facts_of = operator.attrgetter("dtype", "device", "shape")
_pointer_of = operator.methodcaller("data_ptr")
_is_contiguous = operator.methodcaller("is_contiguous")


def _current_stream(device: int) -> int:
    return torch.cuda.current_stream(device).cuda_stream


# What torch's own code generators call: it makes no Stream object.
_raw_stream = getattr(torch._C, "_cuda_getCurrentRawStream", _current_stream)

#: The type of device that blocks run on; tests without one replace it.
_KIND = "cuda"


class BlockModule(torch.nn.Module):
    """A decode block: `step(hidden, state) -> (hidden, state)`, one launch.

    `device` is where the kernel runs; without one, the first `.to(device)`, or
    else the first step's hidden vector, chooses. It does not compute
    gradients.
    """

    #: The bundle's directory.
    bundle_path: Any = None
    #: The description's weights and states.
    weight_table: Sequence[Weight] = ()
    state_table: Sequence[State] = ()

    def __init__(self, device: Any = None) -> None:
        super().__init__()
        self._bundle = Bundle(self.bundle_path)
        self._input = self._bundle.input
        self._hidden_dtype = _NAMES[self._input.dtype]
        self._hidden_shape = torch.Size(self._input.shape)
        output = self._bundle.output
        self._like_input = output[1:] == self._input[1:]
        self._output_dtype = _NAMES[output.dtype]
        self._launch = library().megalith_step
        self._bind = library().megalith_bind_states
        self._plan = _Plan(self._bundle, self.state_table)
        self._device: Optional[torch.device] = None
        self._ordinal = 0
        self._instance: Optional[Instance] = None
        # Holders, keys, tensors and versions of the weights when last packed.
        self._packed: Optional[Tuple[List[Any], ...]] = None
        self._taken = _Taken()
        self._outputs: Optional[_Outputs] = None
        # Tensors of inference mode have no version counter.
        with torch.inference_mode(False):
            self._places = [self._register(w) for w in self.weight_table]
        self._fresh = [(holder[key], holder[key]._version)
                       for _, holder, key in self._places]
        if device is not None:
            self._choose(torch.device(device))

    # Weights ---------------------------------------------------------------

    def _register(self, weight: Weight) -> Tuple[str, Any, str]:
        """Makes a weight, under modules named as its name says. Straight into
        torch's tables, which take names that attributes cannot have."""
        module: torch.nn.Module = self
        *path, leaf = weight.name.split(".")
        for part in path:
            child = module._modules.get(part)
            if child is None:
                child = module._modules[part] = torch.nn.Module()
            module = child
        # Touches no memory before something is loaded.
        tensor = torch.empty(weight.shape, dtype=weight.dtype)
        if weight.is_parameter:
            tensor = torch.nn.Parameter(tensor, requires_grad=False)
            module._parameters[leaf] = tensor
            return weight.name, module._parameters, leaf
        module._buffers[leaf] = tensor
        return weight.name, module._buffers, leaf

    def load_state_dict(self, state_dict: Any, *args: Any,
                        **kwargs: Any) -> Any:
        """torch's, and then `prepare()` if a device was chosen and every
        weight was given."""
        result = super().load_state_dict(state_dict, *args, **kwargs)
        if self._device is not None and not self._unwritten():
            self.prepare()
        return result

    def _unwritten(self) -> List[str]:
        return [name for (name, holder, key), (tensor, version)
                in zip(self._places, self._fresh)
                if holder[key] is tensor and tensor._version == version]

    def _is_packed(self) -> bool:
        if self._instance is None or self._packed is None:
            return False
        # Once a sequence, and in its first token's way: at C's speed.
        holders, keys, tensors, versions = self._packed
        return (all(map(_is, map(_get, holders, keys), tensors))
                and list(map(_version_of, tensors)) == versions)

    def prepare(self) -> "BlockModule":
        """Packs the weights onto the device, unless what lies there is what
        the parameters hold. Raises NotReady if some were never loaded."""
        if self._is_packed():
            return self
        device = self._chosen()
        unwritten = self._unwritten()
        if unwritten:
            listed = ", ".join(map(repr, unwritten[:16]))
            more = len(unwritten) - 16
            raise NotReady(
                f"{len(unwritten)} of {len(self._places)} weight tensors were "
                f"never loaded: {listed}"
                + (f" and {more} more" if more > 0 else ""))
        self.release()
        current = {name: holder[key].detach()
                   for name, holder, key in self._places}
        instance = Instance(self._bundle, self._ordinal, 0)
        instance.bind({name: current[name].contiguous()
                       for name in self._bundle.tensors})
        instance.check_ready()
        self._instance = instance
        holders = [holder for _, holder, _ in self._places]
        keys = [key for _, _, key in self._places]
        tensors = list(map(_get, holders, keys))
        self._packed = (holders, keys, tensors,
                        list(map(_version_of, tensors)))
        return self

    def release(self) -> None:
        """Gives the device memory back; the next step packs the weights
        again."""
        self._taken = _Taken()
        self._packed = None
        if self._instance is not None:
            self._instance.close()
            self._instance = None

    def _choose(self, device: torch.device) -> None:
        if device.type != _KIND:
            raise InvalidArgument(
                f"block {self._bundle.block!r} runs on no device "
                f"{str(device)!r}, expected {_KIND}")
        if device.type == "cuda" and device.index is None:
            device = torch.device("cuda", torch.cuda.current_device())
        if device != self._device:
            self.release()
            self._device = device
            self._ordinal = device.index or 0

    def _chosen(self) -> torch.device:
        if self._device is None:
            raise NotReady(
                f"block {self._bundle.block!r} has no device, expected "
                ".to(\"cuda\") or the argument device before")
        return self._device

    def _apply(self, fn: Any, recurse: bool = True) -> "BlockModule":
        """What .to, .cuda, .half and such call: a CUDA device is where the
        kernel will run; the weights stay where and what they are."""
        probe = fn(torch.empty(1, dtype=torch.bfloat16))
        if probe.dtype != torch.bfloat16:
            raise TypeError(
                f"block {self._bundle.block!r} cannot become {probe.dtype}: "
                "the dtypes are the description's")
        if probe.device.type == _KIND:
            self._choose(probe.device)
            return self
        # Such as .cpu() and .share_memory().
        return super()._apply(fn)

    # State -----------------------------------------------------------------

    def new_state(self, capacity: int = _SPARE_ROWS) -> Any:
        """A zero state at position 0; caches have room for `capacity` tokens
        before they are copied into a larger buffer."""
        if capacity < 1:
            raise InvalidArgument(
                f"capacity is {capacity} rows, expected 1 or more")
        device = self._chosen()
        root: Dict[Any, Any] = {}
        for entry in self.state_table:
            holder = root
            for key in entry.path[:-1]:
                holder = holder.setdefault(key, {})
            shape = entry.shape
            if entry.is_cache:
                holder[entry.path[-1]] = self._new_cache(entry, 0, capacity,
                                                         device)
            else:
                holder[entry.path[-1]] = torch.zeros(shape, dtype=entry.dtype,
                                                     device=device)
        return _as_lists(root)

    @staticmethod
    def _new_cache(entry: State, rows: int, room: int,
                   device: torch.device) -> torch.Tensor:
        """The first rows of a buffer with room; `_megalith_buffer`, which no
        other tensor has, is the whole."""
        buffer = torch.empty((room,) + entry.shape[1:], dtype=entry.dtype,
                             device=device)
        view = buffer.as_strided((rows,) + entry.shape[1:], buffer.stride())
        view._megalith_buffer = buffer
        return view

    def _take(self, state: Any, position: Optional[int]) -> Any:
        """Makes `state` the one that the next step uses: checks all of it,
        copies caches that are not ours, and hands the addresses over. The
        device waits for this once a sequence, so what can runs at C's speed.
        What is returned is to be let go once the device has work again."""
        device = self._chosen()
        self.prepare()
        instance = self._instance
        assert instance is not None
        plan = self._plan
        taken = _Taken()
        try:
            holders, values = plan.walk(state)
            fixed = values[plan.first_fixed:plan.first_cache]
            caches = values[plan.first_cache:]
            if (list(map(_facts_of, fixed)) != plan.fixed_facts(device)
                    or [(t.dtype, t.device, t.shape[1:], t.ndim)
                        for t in caches] != plan.cache_facts(device)):
                plan.refuse(state, device)
            pointers = list(map(_pointer_of, fixed))
            whole = all(map(_is_contiguous, fixed))
        except (AttributeError, LookupError, TypeError):
            plan.refuse(state, device)
            raise
        if not caches:
            rows = position or 0
        else:
            rows = caches[0].shape[0]
            for tensor, entry in zip(caches, plan.caches):
                if tensor.shape[0] != rows:
                    raise Mismatch(
                        f"{entry.label} has {tensor.shape[0]} rows, expected "
                        f"{rows} as {plan.caches[0].label} has")
            if position not in (None, rows):
                raise InvalidArgument(
                    f"position is {position}, expected {rows}, the rows of "
                    f"{plan.caches[0].label}")

        # From here on the instance changes, so until the end no state is ours.
        # The old one's caches make room for new ones; its other tensors can
        # wait.
        late = self._taken.values[plan.first_fixed:plan.first_cache]
        self._taken.retire()
        _set(self, "_taken", _Taken())
        keys = plan.keys
        taken.room = 2**62
        with _plain_mode():
            for index, pointer in enumerate(pointers, plan.first_fixed):
                if pointer % 16 or not (whole or values[index].is_contiguous()):
                    values[index] = holders[index][keys[index]] = (
                        values[index].clone(
                            memory_format=torch.contiguous_format))
                    pointers[index - plan.first_fixed] = (
                        values[index].data_ptr())
            for index, entry in enumerate(plan.caches, plan.first_cache):
                buffer = self._buffer_of(values[index], entry, rows, device)
                pointers.append(buffer.data_ptr())
                plan.sizes[plan.slots[index - plan.first_fixed]] = buffer.nbytes
                taken.caches.append(
                    _Cache(index, holders[index], keys[index], buffer))
                taken.room = min(taken.room, buffer.shape[0])
        for slot, pointer in zip(plan.slots, pointers):
            plan.pointers[slot] = pointer
        handle = instance._live()
        check(self._bind(handle, plan.pointers_at, plan.sizes_at, len(pointers),
                         rows))
        taken.holders, taken.keys, taken.values = holders, keys, values
        taken.rows = rows
        taken.state = state
        taken.handle = handle
        if self._outputs is None or self._outputs.device != device:
            self._outputs = _Outputs(self._bundle.output.shape,
                                     self._output_dtype, device)
        taken.outputs = self._outputs
        _set(self, "_taken", taken)
        return late

    @staticmethod
    def _buffer_of(tensor: torch.Tensor, entry: State, rows: int,
                   device: torch.device) -> torch.Tensor:
        """The buffer that a cache of `rows` rows is in the front of, with room
        for more: its own if it is ours, else a copy."""
        buffer = getattr(tensor, "_megalith_buffer", None)
        # A tensor without elements has no address.
        if buffer is None or buffer.shape[0] <= rows or (
                rows and buffer.data_ptr() != tensor.data_ptr()):
            buffer = torch.empty(
                (rows + max(rows // 2, _SPARE_ROWS),) + entry.shape[1:],
                dtype=entry.dtype, device=device)
            if rows:
                buffer.as_strided(tensor.shape, buffer.stride()).copy_(tensor)
        return buffer

    # Steps -----------------------------------------------------------------

    def _expect_hidden(self, hidden: torch.Tensor) -> None:
        if hidden.dtype != self._hidden_dtype:
            raise Mismatch(f"hidden: dtype is {hidden.dtype}, expected "
                           f"{self._hidden_dtype}")
        if hidden.shape != self._hidden_shape:
            raise Mismatch(f"hidden: shape is {list(hidden.shape)}, expected "
                           f"{list(self._hidden_shape)}")
        if self._device is None and hidden.device.type == _KIND:
            self._choose(hidden.device)
        if hidden.device != self._device:
            raise Mismatch(f"hidden is on {hidden.device}, expected "
                           f"{self._device or _KIND}")
        if not hidden.is_contiguous():
            raise Mismatch("hidden is not contiguous")

    def step(self, hidden: torch.Tensor, state: Any,
             position: Optional[int] = None) -> Tuple[torch.Tensor, Any]:
        """One token on the current stream: the new hidden vector, and `state`
        itself, whose entries are changed in place or replaced.

        `position`, the number of tokens before this one, is the rows of the
        caches. A block without any counts steps; give it to start elsewhere
        than at 0.
        """
        taken, late = self._taken, None
        if hidden is not taken.last:
            self._expect_hidden(hidden)
        if position is not None or not taken.is_(state):
            late = self._take(state, position)
            taken = self._taken
        outputs, stream = taken.outputs, _raw_stream(self._ordinal)
        if not outputs.left or outputs.stream != stream:
            outputs.make(stream)
        out = outputs.left.pop()
        status = self._launch(taken.handle, hidden.data_ptr(), out.data_ptr(),
                              stream)
        if status:
            # Not ours: a cache may be a copy that the state does not show.
            taken.retire()
            _set(self, "_taken", _Taken())
            check(status)
        # The device has work; what need not be before it is done now.
        if self._like_input:
            taken.last = out
        taken.advance()
        if not outputs.left:
            outputs.make(stream)
        del late
        return out, state

    def forward(self, hidden: torch.Tensor,
                state: Any) -> Tuple[torch.Tensor, Any]:
        """`step`."""
        return self.step(hidden, state)


class _Plan:
    """How states are walked: made once, since a sequence's first step waits
    for the walk."""

    def __init__(self, bundle: Bundle, table: Sequence[State]) -> None:
        slots = {name: slot for slot, name in enumerate(bundle.states)}
        if sorted(entry.name for entry in table) != sorted(slots):
            raise Mismatch(
                f"the module has states {sorted(e.name for e in table)}, "
                f"expected {sorted(slots)}, as block {bundle.block!r} has")
        self.table = table
        fixed = [entry for entry in table if not entry.is_cache]
        self.caches = [entry for entry in table if entry.is_cache]
        #: A state's nested parts, then its fixed tensors, then its caches: the
        #: index of what holds each (0 is the state itself, then the parts) ...
        self.owners: List[int] = []
        #: ... and under which key.
        self.keys: List[Any] = []
        found: Dict[Tuple[Any, ...], int] = {(): 0}
        for entry in table:
            for depth in range(1, len(entry.path)):
                part = entry.path[:depth]
                if part not in found:
                    self.owners.append(found[part[:-1]])
                    self.keys.append(part[-1])
                    found[part] = len(found)
        self.first_fixed = len(self.keys)
        self.first_cache = self.first_fixed + len(fixed)
        for entry in fixed + self.caches:
            self.owners.append(found[entry.path[:-1]])
            self.keys.append(entry.path[-1])
        #: Which state of the bundle each tensor is.
        self.slots = [slots[entry.name] for entry in fixed + self.caches]
        self._device: Optional[torch.device] = None
        self._facts: Tuple[List[Any], List[Any]] = ([], [])
        #: megalith_bind_states' arrays, and their addresses.
        self.pointers = (ctypes.c_void_p * len(table))()
        self.sizes = (ctypes.c_size_t * len(table))()
        for slot, state in enumerate(bundle.states.values()):
            self.sizes[slot] = 0 if state.is_cache else state.nbytes
        self.pointers_at = ctypes.addressof(self.pointers)
        self.sizes_at = ctypes.addressof(self.sizes)

    def walk(self, state: Any) -> Tuple[List[Any], List[Any]]:
        """What holds each part and tensor of a state, and what it holds."""
        nodes = [state]
        for owner, key in zip(self.owners, self.keys[:self.first_fixed]):
            nodes.append(nodes[owner][key])
        holders = list(map(nodes.__getitem__, self.owners))
        return holders, list(map(_get, holders, self.keys))

    def fixed_facts(self, device: torch.device) -> List[Any]:
        """What `_facts_of` the fixed tensors is to be."""
        if device != self._device:
            self._device = device
            self._facts = (
                [(e.dtype, device, e.shape) for e in self.table
                 if not e.is_cache],
                [(e.dtype, device, e.shape[1:], len(e.shape))
                 for e in self.caches])
        return self._facts[0]

    def cache_facts(self, device: torch.device) -> List[Any]:
        """The same of caches: dtype, device, shape of a row, rank."""
        self.fixed_facts(device)
        return self._facts[1]

    def refuse(self, state: Any, device: torch.device) -> None:
        """Raises what is wrong with a state, the table's first entry first."""
        for entry in self.table:
            holder = state
            for key in entry.path[:-1]:
                holder = _entry(holder, key, entry)
            tensor = _entry(holder, entry.path[-1], entry)
            shape = getattr(tensor, "shape", ())
            if (not isinstance(tensor, torch.Tensor)
                    or tensor.dtype is not entry.dtype
                    or tensor.device != device
                    or len(shape) != len(entry.shape)
                    or tuple(shape[entry.is_cache:])
                    != entry.shape[entry.is_cache:]):
                _refuse(tensor, entry, device)


_NO_MODE = contextlib.nullcontext()


def _plain_mode() -> Any:
    """Within it new tensors are plain ones, whatever mode the caller is in."""
    inference, grad = torch.is_inference_mode_enabled(), torch.is_grad_enabled()
    if not inference and not grad:
        return _NO_MODE
    modes = contextlib.ExitStack()
    if inference:
        modes.enter_context(torch.inference_mode(False))
    modes.enter_context(torch.no_grad())
    return modes


def _as_lists(node: Any) -> Any:
    """Dicts with keys 0, 1, .. n - 1 become lists."""
    if not isinstance(node, dict):
        return node
    inner = {key: _as_lists(value) for key, value in node.items()}
    if inner and all(index in inner for index in range(len(inner))):
        return [inner[index] for index in range(len(inner))]
    return inner


def _entry(holder: Any, key: Any, entry: State) -> Any:
    try:
        return holder[key]
    except (KeyError, IndexError, TypeError):
        raise Mismatch(f"the state has no {entry.label}, expected "
                       f"{_describe(entry)}") from None


def _describe(entry: State) -> str:
    shape = ["rows" if dim == -1 else dim for dim in entry.shape]
    return f"{entry.dtype} [{', '.join(map(str, shape))}]"


def _refuse(tensor: Any, entry: State, device: torch.device) -> None:
    """Raises what is wrong with an entry of a state."""
    if not isinstance(tensor, torch.Tensor):
        raise Mismatch(f"{entry.label} is a {type(tensor).__name__}, expected "
                       f"{_describe(entry)}")
    shape = tuple(tensor.shape)
    same = (shape[1:] == entry.shape[1:] and len(shape) == len(entry.shape)
            if entry.is_cache else shape == entry.shape)
    if tensor.dtype != entry.dtype or not same:
        raise Mismatch(f"{entry.label} is {tensor.dtype} {list(shape)}, "
                       f"expected {_describe(entry)}")
    raise Mismatch(f"{entry.label} is on {tensor.device}, expected {device}")

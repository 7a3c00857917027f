# SPDX-License-Identifier: Apache-2.0
"""What a step of a written torch module costs the host, without a GPU.

    build/bin/megalithc examples/kimi_linear_motif_small.mlir --emit=torch \\
        --arch=sm_90a -o FOLDER
    LD_LIBRARY_PATH=build/test/Python python3 test/Python/host_time.py FOLDER

Needs torch. Its CPU stands for the device and FakeCuda.c for the driver, so this
is the part of Python and of the library; a real launch comes on top, some 4 us.
Prints the least of many runs, in microseconds: a step, and the first step of a
state that the caller made, which copies its caches. test/gpu/kernelbench.py
measures the whole on a GPU.
"""

import importlib
import os
import sys
import time

import torch


def main():
    folder = os.path.abspath(sys.argv[1])
    sys.path.insert(0, os.path.dirname(folder))
    package = importlib.import_module(os.path.basename(folder))
    runtime = importlib.import_module(package.__name__ + ".megalith.torch")
    runtime._KIND = "cpu"
    runtime._raw_stream = lambda ordinal: 0
    torch.set_num_threads(1)

    model = getattr(package, package.__all__[0])(torch.device("cpu"))
    model.load_state_dict({w.name: torch.zeros(w.shape, dtype=w.dtype)
                           for w in model.weight_table})
    hidden = torch.zeros(model._hidden_shape, dtype=model._hidden_dtype)
    made = {entry.name: torch.zeros(
        [64 if dim == -1 else dim for dim in entry.shape], dtype=entry.dtype)
        for entry in model.state_table}

    def fresh():
        root = {}
        for entry in model.state_table:
            holder = root
            for key in entry.path[:-1]:
                holder = holder.setdefault(key, {})
            holder[entry.path[-1]] = made[entry.name]
        return root

    def microseconds(call, count):
        begin = time.perf_counter()
        for _ in range(count):
            call()
        return (time.perf_counter() - begin) / count * 1e6

    with torch.no_grad():
        first, step = [], []
        for _ in range(200):
            state = fresh()
            first.append(microseconds(lambda: model.step(hidden, state), 1))
            step.append(microseconds(lambda: model.step(hidden, state), 50))
    print(f"a step: {min(step):.2f} us; the first of a state: "
          f"{min(first):.1f} us")


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""Imports a folder that --emit=torch wrote, and decodes three tokens.

    decode.py PARENT FOLDER CLASS

The driver is FakeCuda.c; torch is the fake one, or the real one's CPU.
"""

import ctypes
import importlib
import sys

import torch

parent, folder, name = sys.argv[1:]
sys.path.insert(0, parent)
package = importlib.import_module(folder)
runtime = importlib.import_module(folder + ".megalith.torch")
device = torch.device("cuda:0")
if hasattr(torch, "__version__"):
    device = torch.device("cpu")
    runtime._KIND, runtime._raw_stream = "cpu", lambda ordinal: 0

model = getattr(package, name)().to(device)
weights = {entry.name: torch.zeros(entry.shape, dtype=entry.dtype)
           for entry in model.weight_table}
model.load_state_dict(weights, strict=True)
print(f"{len(weights)} weights, loaded strictly")

state = model.new_state()
hidden = torch.zeros(model._bundle.input.shape, dtype=torch.bfloat16,
                     device=device)
for _ in range(3):
    out, state = model.step(hidden, state)
launches = ctypes.c_long.in_dll(ctypes.CDLL("libcuda.so.1"), "fake_launches")
caches = []
for entry in model.state_table:
    holder = state
    for key in entry.path:
        holder = holder[key]
    if entry.is_cache:
        assert tuple(holder.shape) == (3,) + entry.shape[1:], holder.shape
        caches.append(entry.label.replace("'", '"'))
print(f"3 tokens, {launches.value} launches, 3 rows of {', '.join(caches)}")

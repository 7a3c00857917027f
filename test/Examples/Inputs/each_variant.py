# SPDX-License-Identifier: Apache-2.0
"""Compiles variants of the example to CUDA text.

    each_variant.py MEGALITHC MAKE_BLOCK FOLDER
"""

import os
import subprocess
import sys

compiler, make_block, folder = sys.argv[1:]
os.makedirs(folder, exist_ok=True)
variants = [
    "--hidden 1024", "--hidden 2048", "--hidden 4096", "--experts 8",
    "--experts 128", "--top-k 4", "--top-k 1", "--experts 8 --top-k 8",
    "--pattern KM", "--pattern M", "--pattern K", "--pattern MM",
    "--pattern MKKKMK", "--kda-heads 6 --mla-heads 6",
    "--kda-heads 3 --mla-heads 3", "--kda-dim 64", "--kda-dim 96",
    "--taps 2", "--group 64", "--group 32", "--shared 0", "--shared 2",
    "--kv-lora 256", "--qk-rope 32 --qk-nope 64 --v-head 64",
    # No multiple of 128 inputs, no multiple of 16 outputs.
    "--hidden 1056 --group 32", "--inter 480 --group 32",
    "--hidden 2080 --inter 544 --group 32 --experts 7 --top-k 3",
]
for number, variant in enumerate(variants):
    path = os.path.join(folder, f"{number}.mlir")
    with open(path, "w") as file:
        subprocess.run([sys.executable, make_block] + variant.split(),
                       stdout=file, check=True)
    for arch in ("sm_80", "sm_100a"):
        run = subprocess.run(
            [compiler, path, f"--arch={arch}", "--emit=cuda", "-o", "-"],
            text=True, capture_output=True)
        kernels = run.stdout.count("__global__")
        if run.returncode != 0 or kernels != 1:
            print(f"{variant} for {arch} failed: {kernels} kernels",
                  run.stderr)
print(f"{len(variants)} variants")

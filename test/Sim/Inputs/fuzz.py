#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random small blocks: the simulator, under a random schedule, must agree with
the reference and find nothing.

    fuzz.py --source DIR --bin DIR --work DIR --first SEED --count N

Each seed gives one block, written by examples/make_block.py, one number of CTAs,
one policy and one context. The reference uses the relaxations that the kernel
uses, so both compute the same sums: they are off by a few roundings, or by
another choice where the router's logits tie. --generate writes the block and
stops.
"""

import argparse
import os
import random
import subprocess
import sys

POLICIES = ["round-robin", "reverse", "random", "starve", "last-arriver"]


def block_flags(rng):
    """Sizes that every lowering rule accepts, the odd ones included."""
    group = rng.choice([32, 64, 128])
    inter = rng.choice([128, 256, 384])
    experts = rng.randint(2, 11)
    return {
        "pattern": rng.choice(["K", "M", "KM", "MK", "KK"]),
        "hidden": rng.choice([128, 256, 384, 640, 1024]),
        "kda-heads": rng.choice([2, 4, 6]),
        "kda-dim": 64,
        "taps": rng.choice([2, 4]),
        "mla-heads": rng.choice([2, 3, 4, 6]),
        "kv-lora": rng.choice([128, 256]),
        "qk-nope": 64,
        "qk-rope": rng.choice([32, 64]),
        "v-head": rng.choice([64, 128]),
        "experts": experts,
        "top-k": rng.randint(1, min(3, experts)),
        "shared": rng.choice([1, 2]),
        "inter": inter,
        "group": group,
        "name": "fuzz",
    }


def repair(flags):
    """The inputs of every projection are whole groups and whole steps."""
    heads = flags["mla-heads"]
    if heads * flags["v-head"] % 128:
        flags["mla-heads"] = heads + 1
    return flags


def run(command, **kwargs):
    print("+", " ".join(command), flush=True)
    subprocess.run(command, check=True, **kwargs)


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--source", required=True)
    p.add_argument("--bin", required=True)
    p.add_argument("--work", required=True)
    p.add_argument("--first", type=int, default=0)
    p.add_argument("--count", type=int, default=1)
    p.add_argument("--generate", action="store_true")
    args = p.parse_args()
    os.makedirs(args.work, exist_ok=True)
    for seed in range(args.first, args.first + args.count):
        rng = random.Random(seed)
        flags = repair(block_flags(rng))
        block = os.path.join(args.work, f"fuzz{seed}.mlir")
        command = [sys.executable,
                   os.path.join(args.source, "examples/make_block.py")]
        for name, value in flags.items():
            command += [f"--{name}", str(value)]
        with open(block, "w") as file:
            run(command, stdout=file)
        if args.generate:
            continue
        # The description itself runs in the newest form; a bundle for sm_80 in
        # the one with cp.async.
        kernel = [block]
        if rng.randrange(4) == 0:
            bundle = os.path.join(args.work, f"fuzz{seed}.bundle")
            run([os.path.join(args.bin, "megalithc"), block, "--emit=bundle",
                 "--arch=sm_80", "-o", bundle])
            kernel = [bundle, f"--block={block}"]
        run([os.path.join(args.bin, "megalith-run"), *kernel, "--target=sim",
             "--check=reference", "--relaxed", "--max-error=1e-3",
             "--weights=random:1", "--state=random:1", "--input=random:1",
             f"--context={rng.randint(0, 70)}", "--steps=2",
             f"--sim-policy={rng.choice(POLICIES)}", f"--sim-seed={seed}",
             f"--sim-sms={rng.randint(1, 13)}"])


if __name__ == "__main__":
    main()

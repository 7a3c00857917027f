#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random small blocks under random schedules: the simulator must agree with the
reference and find nothing.

    fuzz.py --source DIR --bin DIR --work DIR --first SEED --count N
            [--plain] [--cpu-seconds S]

Each seed gives one block, written by examples/make_block.py; how it is compiled:
an options file as megalith-explore writes it, barriers or counters with a limit
among them, and for some a schedule file, which is the compiler's own after random
edits that the checker accepts; and how it runs: one number of CTAs, one policy,
one seed and one context. The reference uses the relaxations that the kernel
uses, so both compute the same sums: they are off by a few roundings, or by
another choice where the router's logits tie. --generate writes the block and
stops; --plain compiles with the default choices; --cpu-seconds starts no further
seed once that much was used.
"""

import argparse
import json
import os
import random
import resource
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


def options(rng):
    """Choices of the compiler, by the names of an options file."""
    return {
        "join-linears": rng.choice(["on", "on", "off"]),
        "publish-reused": rng.choice(["on", "off"]),
        "split-below": rng.choice(["0.9", "0", "0.6", "0.98"]),
        "sync": rng.choice(["barriers", "counters", "counters"]),
        "wait-limit": rng.choice(["1", "4", "16", "64", "256"]),
        "ring": rng.choice(["auto", "2x2", "4x1", "3x1", "4x2"]),
        "prefetch": rng.choice(["on", "off"]),
    }


def write_json(path, value):
    with open(path, "w") as file:
        json.dump(value, file)


def write_options(path, chosen):
    print("  options:", *chosen.values(), flush=True)
    write_json(path, {"format": "megalith-options", "version": 1,
                      "options": chosen})


def fits(compiler):
    """Whether shared memory has room for the ring that was chosen."""
    result = subprocess.run([*compiler, "--emit=cuda", "-o", os.devnull],
                            stderr=subprocess.PIPE, text=True)
    return "bytes of shared memory, expected at most" not in result.stderr


def tidy(schedule):
    """Without empty phases, and counters only between stages of one phase, the
    earlier first."""
    phases = [phase for phase in schedule["phases"] if phase]
    place = {stage: (i, j) for i, phase in enumerate(phases)
             for j, stage in enumerate(phase)}
    counters = [[a, b] for a, b in schedule["counters"]
                if place[a][0] == place[b][0] and place[a][1] < place[b][1]]
    return dict(schedule, phases=phases, counters=counters)


def edit(rng, schedule):
    """One change of a schedule, legal or not."""
    phases = [list(phase) for phase in schedule["phases"]]
    counters = [list(pair) for pair in schedule["counters"]]
    kind = rng.choice(["cut", "cut", "join", "drop", "move", "swap"])
    at = rng.randrange(len(phases))
    if kind == "cut":
        middle = rng.randrange(len(phases[at]))
        phases[at:at + 1] = [phases[at][:middle], phases[at][middle:]]
    elif kind == "join" and at + 1 < len(phases):
        counters += [[a, b] for a in phases[at] for b in phases[at + 1]
                     if rng.randrange(2)]
        phases[at:at + 2] = [phases[at] + phases[at + 1]]
    elif kind == "drop" and counters:
        counters.pop(rng.randrange(len(counters)))
    elif kind == "move" and at + 1 < len(phases):
        if rng.randrange(2):
            phases[at + 1].insert(0, phases[at].pop())
        else:
            phases[at].append(phases[at + 1].pop(0))
    elif kind == "swap" and len(phases[at]) > 1:
        i = rng.randrange(len(phases[at]) - 1)
        phases[at][i:i + 2] = reversed(phases[at][i:i + 2])
    return kind, tidy(dict(schedule, phases=phases, counters=counters))


def edited_schedule(rng, compiler, path):
    """Writes the compiler's own schedule after up to eight edits to `path`."""
    run([*compiler, "--emit=schedule", "-o", path])
    with open(path) as file:
        schedule = json.load(file)
    for _ in range(rng.randint(1, 8)):
        kind, candidate = edit(rng, schedule)
        if candidate == schedule:
            continue
        write_json(path, candidate)
        result = subprocess.run(
            [*compiler, f"--schedule={path}", "--emit=cuda", "-o", os.devnull],
            stderr=subprocess.PIPE, text=True)
        print(f"  {kind}:", "accepted" if result.returncode == 0 else
              "rejected: " + result.stderr.splitlines()[0], flush=True)
        # The checker, or the reader of the file, says what is wrong.
        if result.returncode not in (0, 1) or (
                result.returncode == 1 and ": error: " not in result.stderr):
            raise SystemExit(f"fuzz: megalithc failed: {result.stderr}")
        if result.returncode == 0:
            schedule = candidate
    write_json(path, schedule)


def choose(rng, compiler, stem):
    """Writes how to compile; returns the flags."""
    path = stem + ".options.json"
    flags = [f"--options={path}"]
    chosen = options(rng)
    write_options(path, chosen)
    if chosen["ring"] != "auto" and not fits([*compiler, *flags]):
        write_options(path, dict(chosen, ring="auto"))
    if rng.randrange(2):
        path = stem + ".schedule.json"
        edited_schedule(rng, [*compiler, *flags], path)
        flags.append(f"--schedule={path}")
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
    p.add_argument("--cpu-seconds", type=float, default=float("inf"))
    p.add_argument("--plain", action="store_true")
    p.add_argument("--generate", action="store_true")
    args = p.parse_args()
    os.makedirs(args.work, exist_ok=True)
    for seed in range(args.first, args.first + args.count):
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        if usage.ru_utime + usage.ru_stime > args.cpu_seconds:
            print(f"fuzz: {seed - args.first} seeds in "
                  f"{usage.ru_utime + usage.ru_stime:.0f} s of the processor")
            return
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
        # the one with cp.async. How to compile is drawn on its own, lest it
        # change what the seed stands for without.
        kernel = [block]
        arch = "sm_80" if rng.randrange(4) == 0 else "sm_90a"
        stem = os.path.join(args.work, f"fuzz{seed}")
        compiler = [os.path.join(args.bin, "megalithc"), block,
                    f"--arch={arch}"]
        if not args.plain:
            compiler += choose(random.Random(f"compile {seed}"), compiler, stem)
        if arch != "sm_90a" or not args.plain:
            run([*compiler, "--emit=bundle", "-o", stem + ".bundle"])
            kernel = [stem + ".bundle", f"--block={block}"]
        run([os.path.join(args.bin, "megalith-run"), *kernel, "--target=sim",
             "--check=reference", "--relaxed", "--max-error=1e-3",
             "--weights=random:1", "--state=random:1", "--input=random:1",
             f"--context={rng.randint(0, 70)}", "--steps=2",
             f"--sim-policy={rng.choice(POLICIES)}", f"--sim-seed={seed}",
             f"--sim-sms={rng.randint(1, 13)}"])


if __name__ == "__main__":
    main()

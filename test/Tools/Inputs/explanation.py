#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks what megalith-explain --format=json says of itself, and makes
measurements of it.

    explanation.py keys FILE          the keys, sorted, one path a line
    explanation.py check FILE         sums and references agree
    explanation.py bench FILE SCALE   a megalith-bench result in which each
                                      phase works SCALE times as long as
                                      predicted, to standard output
"""

import json
import sys


def paths(value, prefix=""):
    if isinstance(value, dict):
        for key, inner in value.items():
            # Terms come and go with what a phase does.
            yield prefix + key
            if key != "terms_us":
                yield from paths(inner, prefix + key + ".")
    elif isinstance(value, list) and value:
        yield from paths(value[0], prefix[:-1] + "[].")


def check(x):
    phases, edges = x["phases"], x["edges"]
    total = x["launch_us"] + sum(p["predicted_us"] for p in phases)
    assert abs(total - x["predicted_us"]) < 0.02 * len(phases), total
    assert sum(p["bytes"] for p in phases) == x["bytes_per_step"]["weights"]
    parts = x["bytes_per_step"]
    assert parts["total"] == (parts["weights"] + parts["state"]
                              + parts["cache"])
    kinds = [s["kind"] for s in x["syncs"]]
    assert x["barriers"] == kinds.count("barrier")
    assert x["counter_waits"] == kinds.count("counter")
    assert x["lower_bound"] <= x["barriers"]
    assert len(x["lower_bound_chain"]) == x["lower_bound"]
    names = {s["name"]: p["index"] for p in phases for s in p["stages"]}
    for edge in edges:
        assert names[edge["from"]] == edge["from_phase"]
        assert names[edge["to"]] == edge["to_phase"]
        assert (edge["from_phase"] < edge["to_phase"]
                or edge["covered_by"] == "counter")
        assert ".mlir:" in edge["consumer_location"], edge
    for sync in x["syncs"]:
        assert sync["edges"] and sync["why"], sync
        if sync["kind"] == "counter":
            continue
        for index in sync["edges"]:
            edge = edges[index]
            assert (edge["from_phase"] <= sync["after_phase"]
                    < edge["to_phase"]), (sync, edge)
    for phase in phases:
        assert abs(sum(phase["terms_us"].values())
                   - phase["work_us"]) < 0.06, phase
        assert 0 < phase["wave_efficiency"] <= 1
    print("consistent")


def bench(x, scale):
    spread = lambda us: {"min": us, "median": us, "max": us, "mean": us}
    table, clocks, start = [], [], 0
    for i, phase in enumerate(x["phases"]):
        work = phase["work_us"] * scale
        last = i + 1 == len(x["phases"])
        table.append({"index": i, "stages": [s["name"] for s in
                                             phase["stages"]],
                      "bytes": phase["bytes"], "work_us": spread(work),
                      "wait_us": None if last else spread(2.0)})
        # CTA 1's clock is 1000 ahead.
        clocks.append([[start, start + int(work * 1000)],
                       [start + 1000, start + 1000 + int(work * 1000)]])
        start += int((work + 2) * 1000)
    common = {"block": x["block"], "barriers": x["barriers"]}
    context = x["context"]
    json.dump({
        "format": "megalith-bench", "version": 1,
        "device": {"name": "A GPU", "clock_ghz": 1.0},
        "bundles": [
            {**common, "instrumented": False,
             "contexts": [{"context": context, "us": start / 1000}]},
            {**common, "instrumented": True, "contexts": [],
             "phase_table": {"context": context, "ctas": 2, "phases": table,
                             "clocks": clocks}}]}, sys.stdout)


def main():
    with open(sys.argv[2]) as file:
        explanation = json.load(file)
    if sys.argv[1] == "keys":
        print("\n".join(sorted(set(paths(explanation)))))
    elif sys.argv[1] == "check":
        check(explanation)
    else:
        bench(explanation, float(sys.argv[3]))


if __name__ == "__main__":
    main()

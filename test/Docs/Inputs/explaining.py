# SPDX-License-Identifier: Apache-2.0
"""Compares the samples of docs/explaining.md with what megalith-explain says.

    python3 explaining.py PAGE BARRIERS COUNTERS

The first sample is of BARRIERS; the second is the first counter in COUNTERS.
A list in a sample stands for the beginning of the real one.
"""

import json
import re
import sys


def compare(sample, real, where):
    """Every difference, a line each."""
    if isinstance(sample, dict) and isinstance(real, dict):
        for key, value in sample.items():
            if key == "measured":
                continue
            if key not in real:
                yield f"{where}.{key} is in the page only"
            else:
                yield from compare(value, real[key], f"{where}.{key}")
    elif isinstance(sample, list) and isinstance(real, list):
        if len(sample) > len(real):
            yield f"{where} has {len(sample)} in the page, {len(real)} in truth"
        for index, (a, b) in enumerate(zip(sample, real)):
            yield from compare(a, b, f"{where}[{index}]")
    elif sample != real:
        yield f"{where} is {sample!r} in the page, {real!r} in truth"


page = open(sys.argv[1]).read()
samples = [
    json.loads(re.sub(r"\s//.*", "", text))
    for text in re.findall(r"```jsonc\n(.*?)```", page, re.DOTALL)
]
barriers, counters = (json.load(open(path)) for path in sys.argv[2:])
counter = next(s for s in counters["syncs"] if s["kind"] == "counter")
differences = list(compare(samples[0], barriers, ""))
differences += compare(samples[1], counter, "counter")
sys.exit("\n".join(differences) or 0)

# SPDX-License-Identifier: Apache-2.0
"""Makes a bundle's kernel.cu use a constant in place of a norm's gain:
mutate.py BUNDLE CONSTANT. With 1.0f, the gain of random weights, all results stay
right."""

import sys

path, constant = sys.argv[1] + "/kernel.cu", sys.argv[2]
text = open(path).read()
gain = "(offset + w[j])"
assert text.count(gain) == 1, f"{text.count(gain)} places use the gain, expected 1"
open(path, "w").write(text.replace(gain, constant))

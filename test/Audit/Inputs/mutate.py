# SPDX-License-Identifier: Apache-2.0
"""Makes a bundle's kernel.cu read a constant in place of a norm's gain:
mutate.py BUNDLE CONSTANT. With 1.0f, the gain of random weights, all results stay
right."""

import re
import sys

path, constant = sys.argv[1] + "/kernel.cu", sys.argv[2]
text, count = re.subn(
    r"mega::bf16ToFloat\(mega::loadConstantBf16\(weight\d+ \+ i\)\)",
    constant, open(path).read())
assert count == 1, f"{count} places read the gain, expected 1"
open(path, "w").write(text)

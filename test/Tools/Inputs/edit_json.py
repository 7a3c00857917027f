#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""edit_json.py FILE STATEMENT: FILE after STATEMENT on its value, `x`."""

import json
import sys

with open(sys.argv[1]) as file:
    x = json.load(file)
exec(sys.argv[2])
json.dump(x, sys.stdout, indent=1)

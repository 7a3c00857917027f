# SPDX-License-Identifier: Apache-2.0
"""Prints what a machine reads of an audit: verdict.py FILE"""

import json
import sys

audit = json.load(open(sys.argv[1]))
assert all(set(check) == {"check", "outcome", "detail"}
           and check["outcome"] in ("pass", "fail", "partial", "skipped")
           for check in audit["checks"])
print(audit["passed"], len(audit["checks"]), audit["verdict"])

# SPDX-License-Identifier: Apache-2.0
"""Checks a bundle's digests, and prints what else is new: digests.py BUNDLE"""

import hashlib
import json
import os
import sys

folder = sys.argv[1]
manifest = json.load(open(os.path.join(folder, "manifest.json")))
for name, digest in manifest["files"].items():
    data = open(os.path.join(folder, name), "rb").read()
    assert hashlib.sha256(data).hexdigest() == digest, name
assert set(manifest["files"]) | {"manifest.json"} == set(os.listdir(folder))
print(*sorted(manifest["files"]))
print("ptx", manifest["ptx"])
print("persistent", manifest["workspace"]["persistent"])

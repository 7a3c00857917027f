# SPDX-License-Identifier: Apache-2.0
"""Runs a command once for each line of a file that holds a word, on the file
without that line, and says how often the command failed.

    without_each.py FILE WORD COMMAND...
"""

import subprocess
import sys

path, word, command = sys.argv[1], sys.argv[2], sys.argv[3:]
lines = open(path).read().splitlines()
places = [i for i, line in enumerate(lines) if word in line]
rejected = 0
for place in places:
    text = "\n".join(lines[:place] + lines[place + 1:])
    run = subprocess.run(command, input=text, text=True, capture_output=True)
    rejected += run.returncode == 1
print(f"{rejected} of {len(places)} rejected")

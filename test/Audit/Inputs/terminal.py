# SPDX-License-Identifier: Apache-2.0
"""Runs a command with a terminal as its standard error; prints what that shows.

    python3 terminal.py PROGRAM ARGUMENTS...
"""

import os
import pty
import subprocess
import sys

master, slave = pty.openpty()
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=slave)
os.close(slave)
shown = b""
while True:
    try:
        part = os.read(master, 4096)
    except OSError:  # the other end is closed
        break
    if not part:
        break
    shown += part
print(shown.decode().replace("\r\033[K", "\n"))
sys.exit(process.wait())

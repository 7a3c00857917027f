# SPDX-License-Identifier: Apache-2.0
"""Runs a command that may take so many seconds of CPU time and so many MiB.

    limits.py SECONDS MIB COMMAND...

CPU time, since wall time tells what else the machine does.
"""

import resource
import subprocess
import sys

seconds, mib, command = float(sys.argv[1]), float(sys.argv[2]), sys.argv[3:]
status = subprocess.run(command).returncode
usage = resource.getrusage(resource.RUSAGE_CHILDREN)
time = usage.ru_utime + usage.ru_stime
memory = usage.ru_maxrss / 1024
print(f"{time:.1f} s of {seconds:.0f}, {memory:.0f} MiB of {mib:.0f}")
sys.exit(status or time > seconds or memory > mib)

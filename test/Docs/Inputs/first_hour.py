# SPDX-License-Identifier: Apache-2.0
"""Runs what docs/first-hour.md tells: its shell blocks, then its scripts.

    first_hour.py PAGE FOLDER [DRIVER]

FOLDER has the tree's build, examples, runtime and test. The page's build and
installation are taken as done. Every script is its own process; the environment
says which torch it finds. DRIVER is a folder with a libcuda.so.1 for the scripts
alone: NVRTC, which the compiler uses, takes no fake.
"""

import os
import re
import subprocess
import sys

#: What a user has to write, at most.
MOST_LINES = 15


def main():
    page, folder, *driver = sys.argv[1:]
    environment = dict(os.environ)
    if driver:
        environment["LD_LIBRARY_PATH"] = driver[0]
    with open(page) as file:
        blocks = re.findall(r"^```(sh|python)\n(.*?)^```$", file.read(),
                            re.DOTALL | re.MULTILINE)
    shell = "".join(text for kind, text in blocks if kind == "sh")
    done = "bash() { :; }; pip() { :; }; set -e\n"
    subprocess.run(["bash", "-c", done + shell], cwd=folder, check=True)
    scripts = [text for kind, text in blocks if kind == "python"]
    for script in scripts:
        lines = [line for line in script.splitlines() if line.strip()]
        assert len(lines) <= MOST_LINES, f"{len(lines)} lines"
        assert "range(100)" in script
        subprocess.run([sys.executable, "-c", script], cwd=folder, check=True,
                       env=environment)
    print(f"{len(scripts)} scripts ran")


if __name__ == "__main__":
    main()

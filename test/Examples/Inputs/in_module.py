# SPDX-License-Identifier: Apache-2.0
"""Wraps standard input in a module with the attributes given."""

import sys

print(f"module attributes {{{sys.argv[1]}}} {{\n{sys.stdin.read()}}}")

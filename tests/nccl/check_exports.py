#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The library exports NCCL's names and nothing else, all that a header of NCCL declares, each as pncclX, too,
and calls its own where another library of the process has the same names.

check_exports.py LIBRARY HEADER...
A header is nccl.h, or NAMES: a file with a name a line, for machines without one.
"""
import re
import subprocess
import sys

library, headers = sys.argv[1], sys.argv[2:]
errors = []
symbols = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout
exported = {line.split()[-1] for line in symbols.splitlines()}
for name in sorted(exported):
    if not re.fullmatch(r"p?nccl[A-Z]\w*", name):
        errors.append(f"exports {name}, which is no name of NCCL's")
    elif "p" + name not in exported and name.removeprefix("p") not in exported - {name}:
        errors.append(f"exports {name} without its other name")
for header in headers:
    with open(header) as file:
        text = re.sub(r"/\*.*?\*/|//[^\n]*|#[^\n]*", "", file.read(), flags=re.S)
    declared = set(re.findall(r"\b(p?nccl[A-Z]\w*)\s*\(", text)) if header.endswith(".h") else set(text.split())
    if len(declared) < 50:
        errors.append(f"{header}: {len(declared)} functions: is it a header of NCCL?")
    errors += [f"{name} of {header} is not exported" for name in sorted(declared - exported)]
relocations = subprocess.run(["readelf", "-rW", library], capture_output=True, text=True, check=True).stdout
for name in re.findall(r"JUMP_SLO\w*\s+\w+\s+(p?nccl\w+)", relocations):
    errors.append(f"calls {name} by its name: beside NCCL itself that would be NCCL's")
room = re.search(r"^\s+TLS\s+(?:\S+\s+){4}(0x[0-9a-f]+)", subprocess.run(
    ["readelf", "-lW", library], capture_output=True, text=True, check=True).stdout, re.M)
if room and int(room[1], 16) > 160:
    errors.append(f"needs {int(room[1], 16)} bytes of every thread from its beginning: what is loaded late finds little room")
print("\n".join(errors) or f"{len(exported)} names")
sys.exit(1 if errors else 0)

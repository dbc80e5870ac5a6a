#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""matrices.py FOLDER: what gdrx perf --matrix may say of three clusters, made up: eight hosts with one slow cable; eight on two leaf
switches whose uplinks give a quarter, listed in turn; three of which one is slow as a whole."""
import json, pathlib, sys


def write(name, hosts, rate):
    pairs = [{"from": a, "to": b, "nic": "", "gigabits": rate(i, j), "typical_us": 2.0}
             for i, a in enumerate(hosts) for j, b in enumerate(hosts) if i != j]
    text = json.dumps({"schema": 1, "matrix": "write_bw", "bytes": 1048576, "hosts": hosts, "nics": [""], "pairs": pairs})
    (pathlib.Path(sys.argv[1]) / f"{name}.json").write_text(text)


eight = [f"n{i}" for i in range(8)]
write("cable", eight, lambda a, b: 41 if {a, b} == {3, 4} else 380 + (7 * a + b) % 5)
write("leaves", eight, lambda a, b: 380 if a % 2 == b % 2 else 90)
write("slow-host", ["a", "b", "c"], lambda a, b: 9 if 2 in (a, b) else 97)

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""softroce_runs.py ROOT: softroce-repeat tells where a run's time went, and adds up only runs that are alike."""
import pathlib, sys

sys.path.insert(0, str(pathlib.Path(sys.argv[1]) / "scripts"))

from softroce.runs import runs_before, shares, spent


def row(size, algorithm, place="out"):
    return f"  {size:>11} {size // 4:>11}     float   sum {algorithm:>17} verbs {place:>6}   no     2031.44    44210.10     0.00     0.00       0"


def check(got, wanted):
    if got != wanted:
        sys.exit(f"FAILED: {got}\nnot     {wanted}")


OUT = [(2.0, "# gdrx allreduce_test, 4 ranks on 2 host(s): a machine"), (2.5, "#       size       count"),
       (4.0, "# communicator made in 1500 ms: two rails"), (5.0, row(4, "ring")), (6.5, row(4, "ring", "in")),
       (7.0, "# communicator made in 500 ms: two rails"), (8.0, row(4, "tree")), (20.0, row(1024, "tree", "in")), (21.5, "# OK: 4 ranks")]
check(spent(OUT), {"start": 2.5, "communicators": 2.0, "end": 1.5, "sizes": {"4": 3.5, "1024": 12.0},
                   "algorithms": {"ring": 2.5, "tree": 13.0}})
check(spent([]), {"start": 0.0, "communicators": 0.0, "end": 0.0, "sizes": {}, "algorithms": {}})
check(shares([{"spent": spent(OUT)}, {"seconds": 1}])[3].split(), ["sizes", "4", "3.5", "s"])

record = {"commit": "a", "machine": "m", "env": ["GDRX_HEARTBEAT=10000"], "rows": [{"ranks": 4}], "runs_failed": 2}
check(runs_before(record, []), ([], 0))
check(runs_before(record, ["GDRX_HEARTBEAT=10000"]), ([{"commit": "a", "machine": "m", "ranks": 4}], 2))
check(runs_before(None, []), ([], 0))
print("PASSED")

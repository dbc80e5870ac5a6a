#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""softroce_runs.py ROOT: softroce-repeat tells a right run from a failed one, where its time went, and counts only runs that are alike."""
import pathlib, sys

sys.path.insert(0, str(pathlib.Path(sys.argv[1]) / "scripts"))

from softroce.runs import next_ranks, outcome, shares, spent


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

RIGHT = "\n".join(line for _, line in OUT)
LATE = "[rank 1 pid 7] gdrx: rank 3 waited in vain for rank 0 (pid 9 on g0) while the communicator was made\nmpirun says much\n"
DEAD = "[rank 1 pid 7] gdrx: rank 3 is lost: silent\n[rank 2 pid 7] gdrx: rank 3 is lost: silent\n"
check(outcome(0, RIGHT), {"failed": "", "lost": 0, "wrong": 0, "rows": 4, "resent": 0, "rails_down": 0, "small_p50_ms": 2.03})
check(outcome(0, RIGHT.replace("0.00       0", "0.00       7"))["failed"], "28 wrong elements")
check(outcome(1, RIGHT + DEAD)["failed"], "1 ranks were lost")
check(outcome(0, RIGHT + DEAD)["lost"], 1)
check(outcome(3, LATE)["failed"], f"status 3: {LATE.splitlines()[0]}")
check(outcome(124, "")["failed"], "status 124: it said nothing")
check(outcome(0, "# OK: 4 ranks")["failed"], "no row")
check(outcome(0, RIGHT.replace("on 2 host", "on 1 host"))["failed"], "its ranks were on 1 host(s), not on 2")
check(outcome(0, RIGHT + "reconciled: 3 sent again")["resent"], 3)


def run(ranks, failed="", setting="alone", env=()):
    return {"ranks": ranks, "failed": failed, "setting": setting, "env": list(env)}


check(next_ranks([], "alone", [], 30), 4)
check(next_ranks([run(4)], "alone", [], 30), 8)
check(next_ranks([run(4), run(8, "lost")], "alone", [], 30), 8)
check(next_ranks([run(4), run(8, setting="beside a build")], "alone", [], 30), 8)
check(next_ranks([run(4), run(8, env=["GDRX_HEARTBEAT=10000"])], "alone", [], 30), 8)
check(next_ranks([run(4), run(8)], "alone", [], 1), None)
check(next_ranks([], "alone", [], 30, begun=[4]), 8)
check(next_ranks([run(8)], "alone", [], 1, begun=[4]), None)
print("PASSED")

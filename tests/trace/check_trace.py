#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_trace.py FOLDER RANKS: t0.json ... are valid, nested, and the ranks' calls lie at the same time."""
import collections, json, pathlib, sys

folder, ranks = pathlib.Path(sys.argv[1]), int(sys.argv[2])
assert sorted(p.name for p in folder.iterdir()) == [f"t{r}.json" for r in range(ranks)], list(folder.iterdir())
calls = []
for rank in range(ranks):
    trace = json.loads((folder / f"t{rank}.json").read_text())
    spans = [e for e in trace["traceEvents"] if e["ph"] == "X"]
    names = {e["tid"]: e["args"]["name"] for e in trace["traceEvents"] if e["name"] == "thread_name"}
    assert trace["otherData"]["dropped"] == 0 and trace["otherData"]["events"] == len(spans) > 50
    rows = collections.defaultdict(list)
    for span in spans:
        assert span["pid"] == rank and span["tid"] in names and "open" not in span["args"], span
        assert span["dur"] >= 0 and span["args"].get("peer", 0) in range(ranks), span
        rows[span["tid"]].append(span)
    for row, inside in rows.items():  # spans of a row lie in each other or apart
        stack = []
        for span in sorted(inside, key=lambda s: (s["ts"], -s["dur"])):
            while stack and stack[-1]["ts"] + stack[-1]["dur"] <= span["ts"] + 0.0005:
                stack.pop()
            if stack:
                outer = stack[-1]
                assert span["ts"] + span["dur"] <= outer["ts"] + outer["dur"] + 0.0015, (names[row], outer, span)
            stack.append(span)
    kinds = collections.Counter(s["cat"] for s in spans)
    assert set(kinds) == {"call", "plan", "chunk", "step", "wait"}, kinds
    plans = collections.Counter(s["args"]["algorithm"] for s in spans if s["cat"] == "plan")
    assert plans == {"ring": 6, "two-shot": 6}, plans
    assert {s["args"]["bytes"] for s in spans if s["cat"] == "plan"} == {1 << 20}
    # Two communicators, one an algorithm, in one file.
    assert {n.split()[1] for n in names.values()} == {"0", "1"}, names
    calls.append([s for s in spans if s["name"] == "gdrxAllReduce"])
    assert len(calls[-1]) == 12
for same in zip(*calls):  # one clock: an allReduce ends nowhere before it has begun everywhere
    assert max(s["ts"] for s in same) <= min(s["ts"] + s["dur"] for s in same), same
print(f"{ranks} traces hold: {len(spans)} spans in the last")

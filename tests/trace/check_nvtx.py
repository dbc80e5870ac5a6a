#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_nvtx.py LOG...: what the injection library heard is whole, and nested as docs/concepts/watching-a-call.md says."""
import collections, sys

INSIDE = {"plan": ["call"], "chunk": ["plan"], "step": ["chunk"], "wait": ["chunk"]}


def check(path):
    categories, stacks, ranges = {}, collections.defaultdict(list), {}
    open_of, seen, domains = collections.Counter(), collections.Counter(), []
    for number, line in enumerate(open(path), 1):
        verb, rest = line.rstrip("\n").split(" ", 1)
        where = f"{path}:{number}: {line.strip()}"
        if verb == "domain":
            domains.append(rest)
        elif verb == "category":
            category, name = rest.split(" ", 1)
            categories[category] = name
        elif verb in ("push", "start"):
            who, category, bytes_, text = rest.split(" ", 3)
            kind = categories[category]
            for outer in INSIDE.get(kind, []):
                assert open_of[outer] > 0, f"{where}: outside of any {outer}"
            assert (verb == "push") == (kind == "call"), where
            open_of[kind] += 1
            seen[text] += 1
            if kind in ("plan", "chunk"):
                assert int(bytes_) > 0, f"{where}: no bytes"
            if verb == "push":
                stacks[who].append(kind)
            else:
                ranges[who] = kind
        elif verb == "pop":
            open_of[stacks[rest].pop()] -= 1
        elif verb == "end":
            open_of[ranges.pop(rest)] -= 1
        else:
            raise AssertionError(where)
    assert domains == ["gdrx"], domains
    assert not ranges and not any(stacks.values()), f"{path}: never ended: {ranges} {stacks}"
    return seen


logs = sys.argv[1:]
assert len(logs) == 2, logs
for log in logs:
    seen = check(log)
    for name in ("gdrxCommInitMPI", "gdrxAllReduce", "plan ring", "plan two-shot", "chunk 0", "stage 1",
                 "reduce", "copy in", "copy out", "gdrxCommDestroy"):
        assert seen[name] > 0, f"{log}: no '{name}' among {sorted(seen)}"
    for start in ("send to rank ", "wait for rank "):
        assert any(name.startswith(start) for name in seen), f"{log}: no '{start}' among {sorted(seen)}"
    # A call has one plan: the checked and the timed one of each algorithm, in place and out of place.
    assert seen["gdrxAllReduce"] == seen["plan ring"] + seen["plan two-shot"] == 8, seen
print(f"{len(logs)} ranks, {sum(seen.values())} ranges of the last, all nested and ended")

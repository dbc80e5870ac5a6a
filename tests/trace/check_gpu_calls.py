#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_gpu_calls.py MODE KERNEL SIZES FILE...: the spans of one host's GPUs, a file a rank, belong to its launches."""
import collections, json, sys

mode, kernel, sizes, files = sys.argv[1], sys.argv[2], {int(s) for s in sys.argv[3].split(",")}, sys.argv[4:]
OF_SAMPLE = 40  # calls of a graph in allreduce_test, captured once a row
APART = 5000  # us: the clocks of emulated GPUs on a busy machine
ROWS = 2 * len(sizes)  # out of place and in place
assert len(files) == 2, files
by_rank = []
for name in files:
    trace = json.load(open(name))
    assert trace["otherData"]["dropped"] == 0 and trace["otherData"]["gpuCallsUntimed"] == 0, trace["otherData"]
    rows = {e["tid"]: e["args"]["name"] for e in trace["traceEvents"] if e["name"] == "thread_name"}
    spans = [e for e in trace["traceEvents"] if e["ph"] == "X"]
    launches = {e["args"]["index"]: e for e in spans if e["name"].startswith("launch")}
    gpus = sorted((e for e in spans if e["cat"] == "kernel"), key=lambda e: e["args"]["index"])
    assert {rows[e["tid"]] for e in gpus} == {"communicator 0 GPUs"}, rows
    assert [e for e in spans if rows[e["tid"]].endswith("GPUs")] and not any("open" in e["args"] for e in spans)
    assert sorted(launches) == list(range(len(launches))), "launches are numbered"
    captured = OF_SAMPLE * ROWS if mode == "graph" else 0
    assert len(gpus) == len({e["args"]["index"] for e in gpus}) == len(launches) - captured > 0, (len(gpus), len(launches))
    assert {e["args"]["bytes"] for e in gpus} == sizes, "sizes"
    for span in gpus:
        launch = launches[span["args"]["index"]]
        assert span["name"] == kernel and launch["args"]["algorithm"] == kernel, (launch, span)
        assert span["args"]["bytes"] == launch["args"]["bytes"], (launch, span)
        assert span["ts"] >= launch["ts"] and span["dur"] > 0, (launch, span)
    for before, after in zip(gpus, gpus[1:]):  # the order of calls is the GPU's
        assert before["ts"] + before["dur"] <= after["ts"] + 0.0015, (before, after)
    if mode == "blocking":  # the call returns when the GPU has ended
        calls = [e for e in spans if e["name"] == "gdrxAllReduce"]
        assert len(calls) == len(gpus)
        for call, span in zip(sorted(calls, key=lambda e: e["ts"]), gpus):
            assert span["ts"] + span["dur"] <= call["ts"] + call["dur"] + APART, (call, span)
    by_rank.append(gpus)
# One clock, and every rank needs every other: a kernel ends nowhere before it has begun everywhere.
for same in zip(*by_rank):
    assert len({e["args"]["index"] for e in same}) == 1, same
    assert max(e["ts"] for e in same) <= min(e["ts"] + e["dur"] for e in same) + APART, same
print(f"{mode}, {kernel}: {len(gpus)} spans a rank hold")

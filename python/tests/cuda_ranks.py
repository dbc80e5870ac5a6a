#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The tests of CUDA tensors, for a host with a GPU: ranks share it if there are more of them.

  cuda_ranks.py [--ranks 2,4] [--only PART...] [-o FILE.json]

Needs gdrx with its kernels, and torch with CUDA; under CUDA's multi-process service the ranks of a GPU run side by side.
Prints "ok NAME" or "FAILED NAME" for each; the exit status is 1 if any failed.
"""
import argparse
import json
import os
import re
import subprocess
import sys

import ranks
from counted import count

PARTS = ("collectives", "elements", "cuda_streams", "cuda_graphs", "cuda_messages", "cuda_groups")
WAYS = ("data_parallel", "sharded", "whole_step_in_a_graph", "tensor_parallel", "pipeline", "expert_parallel", "compiled", "bits_of_bucket_sizes")
FAULTS = {  # name: the words of rank 0's exception; how long after rank 1's fault it may come, in seconds
    "another_count": ((r"rank 1", r"4 float|16 bytes", r"6 float|24 bytes"), 2.0),
    "another_call": ((r"rank 1", r"allReduce", r"broadcast"), 2.0),
    "late": ((r"rank\(?s?\)? 1", r"(?i)timeout"), 5.0),
    "late_in_a_wait": ((r"timed out",), 2.0),
    "aborted": ((r"abort",), 2.0),
    "killed": ((r"rank 1",), 3.0),
    "shrunk": ((r"rank 1",), 6.0),
}
COSTS = {"shim": 3.0, "device_id": 300e3}  # most microseconds of the host
ALL = [*PARTS, "faults", "training", "costs"]
TOLD = {}  # test: what rank 0 said, where that is worth keeping


def tests_of_parts(sizes, parts):
    """(name, what is wrong) of the modules whose tests run in one group after another."""
    for part in parts:
        for size in sizes:
            results = ranks.finish(ranks.start(size, "cuda_all", "run", env={"TEST_PART": part}), 150)
            text = "\n".join(f"[rank {rank}, ended with {status}]\n{said}" for rank, (status, said) in enumerate(results))
            names = re.findall(r"^(ok|FAILED) (\w+)", results[0][1], re.M)
            for outcome, name in names:
                yield f"{part}.{name} with {size} ranks", "" if outcome == "ok" else "see below"
            if any(status != 0 for status, _ in results) or not names:
                yield f"{part} with {size} ranks", text


def faults(sizes):
    for name, (words, soon) in FAULTS.items():
        for size in sizes:
            results = ranks.finish(ranks.start(size, "cuda_faults", name), 60)
            said = results[0][1]
            raised = re.search(r"^RAISED (-?[0-9.]+) (.*)$", said, re.M)
            wrong = ""
            if not raised or "FINALLY" not in said:
                wrong = "\n".join(text for _, text in results)
            elif not all(re.search(word, raised[2]) for word in words) or float(raised[1]) > soon:
                wrong = f"{raised[1]} s, not {soon} s, or not {words}: {raised[2]}"
            elif name == "late" and not re.search(r"LATE \[1\].*LOG .* waits for rank 1 since [01]\.", said, re.S):
                wrong = f"nobody was named before the deadline: {said}"
            test = f"faults.{name} with {size} ranks"
            TOLD[test] = raised[0] if raised else ""
            yield test, wrong


def training(sizes):
    for size in sizes:
        results = ranks.finish(ranks.start(size, "cuda_training", "all_ways"), 240)
        said = results[0][1]
        for way in WAYS:
            found = re.search(rf"^WAY {way} (.*)$", said, re.M)
            good = found and found[1].startswith("as one process")
            test = f"training.{way} with {size} ranks"
            TOLD[test] = found[1] if found else ""
            yield test, "" if good else (TOLD[test] or "\n".join(text for _, text in results))


def costs(sizes):
    for size in sizes:
        results = ranks.finish(ranks.start(size, "cuda_costs", "run"), 90)
        found = dict(re.findall(r"^COST (\w+) ([0-9.-]+)$", results[0][1], re.M))
        for name, most in COSTS.items():
            test = f"costs.{name} with {size} ranks"
            TOLD[test] = f"{found.get(name)} us; " + ", ".join(f"{other} {cost}" for other, cost in found.items())
            good = name in found and float(found[name]) <= most
            yield test, "" if good else f"{TOLD[test]}, at most {most:.0f}" if found else results[0][1]


def machine():
    import torch

    def told(*command):
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()

    return {"gpus": told("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader").splitlines(),
            "torch": torch.__version__, "machine": f"{os.cpu_count()} CPUs, Linux {os.uname().release}",
            "mps": os.path.exists("/tmp/nvidia-mps/nvidia-cuda-mps-control.pid")}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", default="2,4")
    parser.add_argument("--only", nargs="+", default=ALL, help="parts, of: " + " ".join(ALL))
    parser.add_argument("-o", "--output", help="a file of JSON for the outcomes")
    args = parser.parse_args()
    sizes = [int(size) for size in args.ranks.split(",")]
    outcomes = {}

    def kept(parts):
        for name, wrong in parts:
            outcomes[name] = "FAILED" if wrong else "ok"
            yield name, wrong

    status = count(kept(tests_of_parts(sizes, [part for part in PARTS if part in args.only])),
                   kept(faults(sizes) if "faults" in args.only else ()),
                   kept(training(sizes) if "training" in args.only else ()),
                   kept(costs([size for size in sizes if size == 2]) if "costs" in args.only else ()))
    if args.output:
        about = {"command": f"python/tests/cuda_ranks.py --ranks {args.ranks} --only {' '.join(args.only)}", "commit": os.environ.get("TEST_COMMIT", ""), **machine()}
        with open(args.output, "w", encoding="utf-8") as file:
            rows = [{"test": test, "outcome": outcome, **({"told": TOLD[test]} if test in TOLD else {})} for test, outcome in outcomes.items()]
            json.dump({**about, "passed": sum(value == "ok" for value in outcomes.values()), "rows": rows}, file, indent=1)
    return status


if __name__ == "__main__":
    sys.exit(main())

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# gpu_hosts.sh ENV_FILE PROGRAM FOLDERS: the trace of GPU buffers on two hosts, with emulated GPUs.
set -euo pipefail
# shellcheck disable=SC1090
. "$1" > /dev/null
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
GDRX_MODULE_PATH=$3 GDRX_TRACE="$work/t%r.json" mpirun -np 4 "$(dirname "$(readlink -f "$0")")/../mpi/on_hosts.sh" 2 \
  "$2" --memory cuda -b 128K -e 128K -n 1 -w 0
for rank in 0 1 2 3; do
  python3 - "$work/t$rank.json" << 'END'
import json, sys
spans = [e for e in json.load(open(sys.argv[1]))["traceEvents"] if e["ph"] == "X"]
rows = {e["tid"] for e in spans if e["name"].startswith(("scatter", "gather"))}
assert len(rows) == 1, rows  # and nothing else in it
gpus = sorted((e for e in spans if e["tid"] in rows), key=lambda e: e["ts"])
assert {e["name"].split()[0] for e in gpus} == {"scatter", "gather"}, gpus
for before, after in zip(gpus, gpus[1:]):
    assert before["ts"] + before["dur"] <= after["ts"] + 0.0015, (before, after)
plans = [e for e in spans if e["cat"] == "plan" and "hosts" in e["name"]]
assert plans and all(any(p["ts"] <= g["ts"] + 0.0015 and g["ts"] <= p["ts"] + p["dur"] for p in plans) for g in gpus)
END
done
echo "4 traces hold"

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tune.sh ENV_FILE: gdrx tune on this machine, and what its table does to the choice.
set -euo pipefail
# shellcheck disable=SC1090
. "$1" > /dev/null
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

wrong() { echo "FAILED: $1"; [ ! -e out ] || cat out; exit 1; }
says() { grep -qE -- "$1" out || wrong "no line like '$1'"; }

gdrx tune --memory host --ranks 2,4 -b 1K -e 256K -f 16 -n 5 -o measured.json > out
says "^  host     4      262144 .* over shm"
says "written to measured.json"
python3 - <<'PY'
import json
table = json.load(open("measured.json"))
ways = {(c["ranks"], c["transport"], c["algorithm"]) for c in table["allreduce"]}
every = {"ring", "tree", "halving-doubling", "one-shot", "two-shot"}
for ranks in (2, 4):
    assert {(t, a) for r, t, a in ways if r == ranks} == {("shm", a) for a in every}, ways
for curve in table["allreduce"]:
    assert [b for b, us in curve["us"]] == [1024, 16384, 262144], curve
# The slowest of all ways, made the fastest: for the tuner to follow, against its model.
for curve in table["allreduce"]:
    if curve["algorithm"] == "tree": curve["us"] = [[b, 0.5] for b, us in curve["us"]]
json.dump(table, open("tree.json", "w"))
table["allreduce"][0]["us"][0][1] = -1
json.dump(table, open("wrong.json", "w"))
table["platform"]["cpus"] = 4000
table["allreduce"][0]["us"][0][1] = 1
json.dump(table, open("foreign.json", "w"))
PY
gdrx tune --show measured.json > out
says "^  host     2        1024 "

run() { mpirun -np 2 -x GDRX_TUNE_FILE="$1" allreduce_test -b "$2" -e "$2" -n 1 -w 0 --out-of-place --explain; }
run measured.json 64K > out
says "times from GDRX_TUNE_FILE=measured.json"
says "measured [0-9.]+ us, predicted [0-9.]+ us"
run tree.json 64K > out
says "\* tree .* over shm .* 0\.5 us  <- chosen"
says "^ +65536 .* tree +shm"
says "# OK"
run tree.json 512K > out # beyond what was measured
says "times from the model"
mpirun -np 3 -x GDRX_TUNE_FILE=tree.json allreduce_test -e 8 -n 1 -w 0 --explain > out
says "tree.json has no times of host memory for 3 ranks on 1 host\(s\) \(gdrx tune --ranks 3\)"
run foreign.json 64K > out 2>&1
says "times from the model"
[ "$(grep -c "was measured with 4000 CPUs" out)" = 1 ] || wrong "not one warning"

# What is wrong is told in a line, and nothing runs.
if run wrong.json 64K > out 2>&1; then wrong "a corrupt table is taken"; fi
says "GDRX_TUNE_FILE: wrong.json: tuning table: allreduce 0, point 0: -1 us is no time"
if run nothing.json 64K > out 2>&1; then wrong "a table that is not there is taken"; fi
says "GDRX_TUNE_FILE: open nothing.json"
if mpirun -np 1 -x GDRX_TUNE_FILE=tree.json allreduce_test -e 8 : -np 1 -x GDRX_TUNE_FILE=measured.json \
  allreduce_test -e 8 > out 2>&1; then wrong "ranks with different tables agree"; fi
says "set the same on every rank"
if gdrx tune --ranks 2 --mpirun false -o none.json > out 2>&1; then wrong "a failed run makes a table"; fi
says "^gdrx: 'false .*' failed with status 1"
[ ! -e none.json ] || wrong "a failed run leaves a table"
if gdrx tune --ranks 2 -o /nowhere/x.json > out 2>&1; then wrong "a file that cannot be written is taken"; fi
says "^gdrx: write /nowhere/x.json"
[ "$(wc -l < out)" = 1 ] || wrong "it measured before it tried the file"
if gdrx tune --memory host --ranks 2 --transports ucx -b 8 -e 8 -n 1 -o /dev/full > out 2>&1; then
  wrong "a failed write is a success"
fi
says "^  host     2           8 "
if [ ! -e /dev/nvidia0 ]; then
  if gdrx tune --memory cuda -o none.json > out 2>&1; then wrong "GPUs that are not there are measured"; fi
  says "there is no GPU here"
  [ ! -e none.json ] || wrong "no GPU leaves a table"
fi
echo "gdrx tune measured, wrote, and was followed"

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# gdrx plan: usage: plan.sh GDRX
set -u
. "$(dirname "$(readlink -f "$0")")/expect.sh"

ok '^  plan ' --help
ok '^Examples:' plan --help
ok '^allReduce ring, 8 ranks, root 0: 8 chunk' plan
ok '^     0 send in\[0\] to 1$' plan --algo ring -n 3 --rank 0
[ "$(wc -l < out)" = 9 ] || wrong "one rank of three has eight ops in a ring"
ok '^rank 99999 channel 1' plan --algo tree -n 100000 --rank 99999
ok '32 ranks: holds; [0-9]+ messages$' plan --algo halving-doubling -n 32 --verify
[ "$(wc -l < out)" = 1 ] || wrong "--verify alone says more than that it holds"
ok '^simulated, not measured: .*: 64\.700 us$' \
  plan --algo ring -n 8 --simulate --alpha 2us --bandwidth 50 --size 1M
ok ': 48\.700 us$' plan --algo halving-doubling -n 8 --simulate
ok ': 40\.700 us$' plan --algo two-shot -n 8 --simulate
ok '^two-shot +40\.700 ' plan --algo all -n 8 --simulate --size 1M
[ "$(sed -n 3p out | cut -d' ' -f1)" = two-shot ] || wrong "the fastest is not the first"
ok '^  "time_us": 64\.7' plan --algo ring -n 8 --simulate --verify --format json
python3 -m json.tool out > /dev/null || wrong "Python cannot read the prediction"
ok '^digraph plan \{$' plan -n 4 --format dot
ok '^reduceScatter two-shot, 4 ranks' plan --collective reduce-scatter --algo two-shot -n 4

for way in "allreduce ring" "allreduce tree" "allreduce halving-doubling" "allreduce one-shot" \
           "broadcast tree" "reduce ring" "allGather ring" "barrier tree"; do
  set -- $way
  ok '"gdrx_plan": 1' plan --collective "$1" --algo "$2" -n 5 --format json
  cp out plan.json
  python3 -m json.tool plan.json > /dev/null || wrong "$way: Python cannot read the JSON"
  ok ': holds; [0-9]+ messages$' plan --load plan.json --verify
  ok '"gdrx_plan": 1' plan --load plan.json --format json
  cmp -s out plan.json || wrong "$way: the JSON does not come back as it was"
done

refused 2 "a subcommand is required|A subcommand is required"
refused 2 "there is no command 'plam': did you mean plan" plam
refused 2 "does not know 'foo' for allReduce; it takes all, ring, " plan --algo foo
refused 2 "does not know 'tree' for allGather" plan --collective allgather --algo tree
refused 2 "does not know 'foo'; it takes allReduce, " plan --collective foo
refused 2 "at least one rank" plan -n 0
refused 2 "ranks = x|-n.*x" plan -n x
refused 2 "rank 8 is not one of 8" plan --rank 8
refused 2 "root 9 is not one of 8" plan --collective broadcast --root 9
refused 2 "whole plans end at" plan -n 100000
refused 2 "ops for ring grow with the ranks" plan -n 100000000 --rank 5
refused 2 "ops for one-shot grow with" plan --collective allGather --algo one-shot -n 100000000 --rank 5
ok '^rank 5 channel 0' plan --algo halving-doubling -n 100000000 --rank 5
refused 2 "duration such as 2us or 300ns, not '2 parsecs'" plan --simulate --alpha "2 parsecs"
refused 2 "number over 0, not '0'" plan --simulate --bandwidth 0
refused 2 "size such as .*, not '1Q'" plan --simulate --size 1Q
refused 2 "svg not in" plan --format svg
refused 2 "it takes --simulate" plan --algo all
refused 2 "text or json, not dot" plan --simulate --format dot
refused 2 "is of whole plans" plan --rank 0 --format json
refused 2 "rank 7 is not one of 5" plan --load plan.json --rank 7
refused 2 "excludes" plan --load plan.json --algo ring
refused 1 "open nothing.json" plan --load nothing.json
refused 1 "/dev/null: plan JSON: byte 1: this is not JSON" plan --load /dev/null
sed '0,/"peer": 1/s//"peer": 2/' plan.json > wrong.json
refused 1 "wrong.json: .*rank [0-9]+" plan --load wrong.json
for way in "plan" "plan --format json" "plan -n 2 --rank 0" "plan --help"; do
  # shellcheck disable=SC2086
  "$gdrx" $way > /dev/full 2> err && wrong "gdrx $way: nobody says that it could not be written"
  grep -qx "gdrx: cannot write to stdout" err || wrong "gdrx $way: the failed write is not said"
done
echo "$checks checks of gdrx plan passed"

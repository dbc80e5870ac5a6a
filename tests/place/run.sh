#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run.sh GDRX: jobs that `gdrx run` starts end right, each rank bound to CPUs that it may use; bad input is one line.
set -u
here=$(dirname "$(readlink -f "$0")")
. "$here/../tools/expect.sh"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

refused 2 'what is to be run' run
refused 2 '-np 0' run -np 0 true
refused 2 'stand before a --' run --hostfile x true
refused 1 'no launcher says' run --as-rank true
refused 1 'none of the CPUs 9999 may be used here' topo --place --cpus 9999
refused 2 'names no CPU' topo --place --cpus x
refused 2 'not CPUs alone' topo --place --cpus 0-1,x
for option in --predict '--ranks 2' '--cpus 0' '--gpus 0'; do
  # shellcheck disable=SC2086
  refused 2 'needs --place' topo $option
done
refused 2 'predict has no format json' topo --place --predict --format json
refused 2 'is --ranks meant' run --rank 4 -- true
refused 2 'beside --as-rank' run --as-rank -np 2 true
refused 2 'several programs' run -np 2 true : -np 2 true
refused 1 '5 ranks on 3 hosts' topo --cluster '3 hosts x 2 L40S' --ranks 5 --format torchrun
refused 1 '5 ranks on 3 hosts' topo --cluster '3 hosts x 2 L40S' --ranks 5 --format srun
refused 1 '2097152 ranks' topo --cluster '65536 hosts x 32 H200' --place
ok 'as-rank' run -np 2 --help
refused 1 'no format svg' topo --place --format svg
refused 1 'twice' topo --place --cluster '4 H200' --gpus 1,1
ok 'rank +host' topo --place
ok 'rank 0=localhost slot=' topo --format rankfile --ranks 1
ok '--as-rank' run --help

# as_rank NUMBER COUNT: the CPUs that a rank gets by the variables of a launcher.
as_rank() {
  LOCAL_RANK=$1 LOCAL_WORLD_SIZE=$2 "$gdrx" run --as-rank -- sh -c 'grep Cpus_allowed_list /proc/self/status' 2> err |
    sed 's/.*:[[:space:]]*//' > out
  [ -s out ] && [ ! -s err ] || wrong "rank $1 of $2"
}
mine=$(sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status)
as_rank 0 1; [ "$(cat out)" = "$mine" ] || wrong "one rank has less than the mask $mine"
as_rank 5 64; case $(cat out) in *[0-9]*) ;; *) wrong 'a rank of more than there are cores' ;; esac
for status in 127 126; do
  program=./none; [ "$status" = 127 ] || { program=./plain; : > plain; }
  got=0
  LOCAL_RANK=0 LOCAL_WORLD_SIZE=1 "$gdrx" run --as-rank "$program" > out 2> err || got=$?
  [ "$got" = "$status" ] || wrong "$program ends with $got"
done
# A mask that a launcher has set stays; one that all ranks have is shared out.
case $mine in *[,-]*)
  one=${mine%%[,-]*}
  OMPI_COMM_WORLD_LOCAL_RANK=1 OMPI_COMM_WORLD_LOCAL_SIZE=2 taskset -c "$one" "$gdrx" run --as-rank \
    grep Cpus_allowed_list /proc/self/status > out 2> err || wrong 'below a launcher that binds'
  grep -q "[[:space:]]$one\$" out && grep -q 'has bound this rank' err || wrong 'the mask of a launcher' ;;
esac
checks=$((checks + 3))
# A narrower mask than the host's: never anything else.
one=${mine%%[,-]*}
taskset -c "$one" "$gdrx" topo --place --ranks 3 --format rankfile > out 2> err || wrong 'under a mask'
grep '^rank' out | grep -vq "slot=$one\$" && wrong "a CPU beside the mask $one"
checks=$((checks + 3))

if command -v mpirun > /dev/null; then
  for ranks in 1 2 5; do
    timeout 60 "$gdrx" run -np "$ranks" sh -c 'echo "rank $OMPI_COMM_WORLD_RANK$PMI_RANK"' > out 2> err < /dev/null ||
      wrong "mpirun of $ranks ended with $?"
    [ "$(grep -c '^rank' out)" = "$ranks" ] || wrong "mpirun of $ranks ranks"
    checks=$((checks + 1))
  done
  got=0
  timeout 60 "$gdrx" run -np 2 sh -c 'exit 7' > out 2> err < /dev/null || got=$?
  [ "$got" = 7 ] || wrong "a job that fails with 7 ends with $got"
  timeout 60 "$gdrx" run --report -np 2 true > out 2> err < /dev/null || wrong '--report'
  [ "$(grep -c 'gdrx: rank [01] of 2 here: CPUs [0-9]' err)" = 2 ] || wrong 'two ranks report'
  checks=$((checks + 2))
fi
if command -v torchrun > /dev/null; then
  echo 'import os; print("worker", os.environ["LOCAL_RANK"], sorted(os.sched_getaffinity(0)))' > worker.py
  timeout 120 "$gdrx" run --launcher torchrun -np 2 worker.py > out 2> err < /dev/null || wrong 'torchrun'
  [ "$(grep -c '^worker' out)" = 2 ] || wrong 'torchrun of 2 workers'
  checks=$((checks + 1))
fi
echo "$checks jobs and refusals as expected"

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# refused.sh WORDS options...: allreduce_test must refuse the options with one line that has WORDS.
words=$1
shift
out=$(mpirun -np 2 allreduce_test "$@" 2>&1)
status=$?
echo "$out"
[ $status -ne 0 ] || { echo "the status is 0"; exit 1; }
echo "$out" | grep -q -- "$words" || { echo "no line with: $words"; exit 1; }

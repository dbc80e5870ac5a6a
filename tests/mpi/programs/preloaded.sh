#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# preloaded.sh WORDS mpirun's words...: by `gdrx mpirun`. What is printed, stdout before stderr, has to match WORDS, lines
# joined by spaces. EXPECTED_STATUS=fails: the status must not be 0.
words=$1
shift
errors=$(mktemp)
trap 'rm -f "$errors"' EXIT
said=$(gdrx mpirun "$@" 2> "$errors" < /dev/null)
status=$?
said="$said
$(cat "$errors")"
echo "$said"
[ "${EXPECTED_STATUS:-}" = fails ] && status=$((status == 0))
[ $status = 0 ] || { echo "preloaded.sh: the status is not what it should be"; exit 1; }
echo "$said" | tr '\n' ' ' | grep -Eq "$words" || { echo "preloaded.sh: that does not match: $words"; exit 1; }

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# answers.sh PROGRAM STATUS WORDS ARGUMENT...: the status, the words in the answer, and for an error
# from a file or a device exactly one line.
program=$1 status=$2 words=$3
shift 3
answer=$("$program" "$@" 2>&1)
got=$?
printf '%s\n' "$answer"
[ "$got" = "$status" ] || { echo "status $got, not $status"; exit 1; }
case $answer in *"$words"*) ;; *) echo "no '$words' in it"; exit 1 ;; esac
[ "$status" != 1 ] || [ "$(printf '%s\n' "$answer" | wc -l)" = 1 ] || { echo "several lines"; exit 1; }

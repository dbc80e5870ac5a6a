#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# scripts.sh FOLDER: --help helps and ends with 0; what a script does not know is refused with 2, and so is a folder
# of files where torch-env would make an environment.
set -u
cd "$1/scripts" || exit 1
wrong() { echo "FAILED: $1"; exit 1; }
for script in test quickstart performance docs drawings kill-test nccl-vs-socket package torch-matrix distributions; do
  out=$("./$script" --help 2>&1) || wrong "$script --help ends with $?"
  [ -n "$out" ] || wrong "$script --help says nothing"
done
for way in "test sanitisers" "test sanitizers twice" "quickstart fast" "performance --gpus" "docs --open" "kill-test --bin /nowhere" \
  "nccl-vs-socket 2 /nowhere" "package egg" "torch-matrix --only 2.5" "distributions sid"; do
  read -ra words <<< "$way"
  out=$(./"${words[0]}" "${words[@]:1}" 2>&1)
  status=$?
  [ "$status" = 2 ] || wrong "$way ends with $status"
  [ -n "$out" ] || wrong "$way says nothing"
done
folder=$(mktemp -d)
echo kept > "$folder/file"
out=$(TORCH_GDRX_VENV=$folder ./torch-env 2>&1 < /dev/null)
status=$?
[ "$status" = 2 ] && [ "$(cat "$folder/file")" = kept ] || wrong "torch-env in a folder of files ends with $status: $out"
rm -r "$folder"

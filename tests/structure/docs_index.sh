#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# docs_index.sh FOLDER: scripts/docs skips where no package index is reached, and fails where pip refuses what it is asked.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/scripts/site"
cp "$1/scripts/docs" "$work/scripts/"
# ends STATUS WORDS LINE: with this line of requirements.
ends() {
  local said status=0
  echo "$3" > "$work/scripts/site/requirements.txt"
  said=$(PIP_CONFIG_FILE=/dev/null PIP_INDEX_URL=http://127.0.0.1:9/simple PIP_RETRIES=0 "$work/scripts/docs" --check 2>&1 < /dev/null) || status=$?
  [ "$status" = "$1" ] || { echo "FAILED: '$3' ends with $status, not $1: $said"; exit 1; }
  grep -qF "$2" <<< "$said" || { echo "FAILED: '$3' says: $said"; exit 1; }
}
ends 77 "can be fetched from no package index" mkdocs==1.6.1
ends 1 "pip says above why" "mkdocs=1.6.1"

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# deploy.sh ROOT: units that systemd takes, scripts that shells take, and Slurm's prolog against a doctor
# of our own.
set -eu
root=$1
deploy=$root/deploy
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
die() {
  echo "$*"
  exit 1
}

bash -n "$deploy/slurm/prolog.sh" && bash -n "$deploy/slurm/job.sbatch"
if command -v shellcheck > /dev/null; then
  shellcheck "$deploy/slurm/prolog.sh" "$deploy/slurm/job.sbatch"
fi
if command -v systemd-analyze > /dev/null; then
  # The verifier wants the program to be there.
  sed "s#/usr/bin/gdrx#/bin/true#" "$deploy/systemd/gdrx-doctor.service" > "$dir/gdrx-doctor.service"
  mkdir "$dir/gdrx-doctor.service.d"
  cp "$deploy/systemd/90-memlock.conf" "$dir/gdrx-doctor.service.d/"
  systemd-analyze verify --man=no "$dir/gdrx-doctor.service" > "$dir/verify" 2>&1 || true
  if grep -E "$dir|gdrx-doctor" "$dir/verify"; then die 'systemd has something to say'; fi
  echo 'Nonsense=1' >> "$dir/gdrx-doctor.service"
  systemd-analyze verify --man=no "$dir/gdrx-doctor.service" > "$dir/verify" 2>&1 || true
  grep -q Nonsense "$dir/verify" || die 'the verifier verifies nothing'
fi
grep -vE '^(#.*|\* (soft|hard) (memlock|nofile) (unlimited|[0-9]+))$' "$deploy/systemd/90-gdrx-limits.conf" &&
  die 'a line that limits.conf does not have'

# A doctor of our own: what it says and its status come from files.
printf '#!/bin/sh\ncat "%s/says" >&2\nexit "$(cat "%s/status")"\n' "$dir" "$dir" > "$dir/gdrx"
chmod +x "$dir/gdrx"
touch "$dir/good.json"
printf '#!/bin/sh\nshift 2\necho "$*" >> "%s/log"\n' "$dir" > "$dir/logger"
chmod +x "$dir/logger"
prolog() { # doctor's status, its words, the prolog's status wanted
  echo "$1" > "$dir/status"
  echo "$2" > "$dir/says"
  : > "$dir/log"
  local status=0
  PATH="$dir:$PATH" GDRX="$dir/gdrx" GDRX_GOOD="${4:-$dir/good.json}" GDRX_PROLOG_SECONDS=2 SLURM_JOB_ID=7 \
    "$deploy/slurm/prolog.sh" > "$dir/out" || status=$?
  [ "$status" = "$3" ] || die "doctor $1: the prolog's status is $status, not $3"
}
prolog 0 '' 0
[ ! -s "$dir/log" ] || die 'a good node is in the log'
prolog 1 'gdrx: port-state: was OK, is FAIL
gdrx: 1 findings are worse than in good.json' 1
grep -q 'job 7 refused: gdrx: port-state' "$dir/log" || die 'no reason in the log'
grep -q '^print ' "$dir/out" || die 'no word for the user'
prolog 1 'gdrx: not a report of gdrx doctor: it is no JSON' 0
grep -q 'not checked' "$dir/log" || die 'a broken report is not in the log'
prolog 2 'bad usage' 0
prolog 0 '' 0 /nowhere/good.json
grep -q 'is missing' "$dir/log" || die 'a missing report is not in the log'
printf '#!/bin/sh\nexec sleep 20\n' > "$dir/gdrx"
prolog 0 '' 0
grep -q 'status 124' "$dir/log" || die 'a slow doctor is not in the log'
echo 'all well'

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""mutant.py NET_CONFORMANCE PLUGIN BASE NAME RULE [ALSO...]: exactly the rule, and no rule that is
not named, fails. NAME "none": nothing may fail. NET_MUTANT_PIECES=N: the rules in N parts at once,
for a mutant that waits under each of them and breaks none that others need. NET_MUTANT_PATIENCE:
seconds that a rule waits for what does not come."""
import concurrent.futures, json, os, subprocess, sys, tempfile

program, plugin, base, name, *rules = sys.argv[1:]
environment = dict(os.environ, NET_MUTANT_BASE=base, REFERENCE_CLAIMS_CUDA="1")
if name != "none":
    environment["NET_MUTANT"] = name
patience = [f"--patience={os.environ.get('NET_MUTANT_PATIENCE', 8)}"]
pieces = int(os.environ.get("NET_MUTANT_PIECES", "1"))


def listed():
    out = subprocess.run([program, "--list", "--json", "yes"], capture_output=True, text=True, check=True).stdout
    return [one["id"] for one in json.loads(out)]


def run(some):
    chosen = [word for rule in some for word in ("--rule", rule)]
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "findings.json")
        ran = subprocess.run([program, plugin, "--json", file, "--quiet", "--strict", *patience, *chosen],
                             env=environment, capture_output=True, text=True, errors="replace")
        with open(file) as text:
            return ran, json.load(text)[0]["rules"]


parts = [listed()[i::pieces] for i in range(pieces)] if pieces > 1 else [[]]
with concurrent.futures.ThreadPoolExecutor(pieces) as pool:
    done = list(pool.map(run, parts))
failed = [one["id"] for _, findings in done for one in findings if one["verdict"] == "fail"]
good = set(failed) <= set(rules) and (not rules or rules[0] in failed)
status = max(ran.returncode for ran, _ in done)
good = good and status == (1 if rules else 0) and all(ran.returncode >= 0 for ran, _ in done)
print(*(ran.stdout for ran, _ in done))
if not good:
    sys.exit(f"{name}: status {status}, failed {failed}, expected {rules}")

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""mutant.py NET_CONFORMANCE PLUGIN BASE NAME RULE [ALSO...]: exactly the rule, and no rule that is
not named, fails. NAME "none": nothing may fail."""
import json, os, subprocess, sys, tempfile

program, plugin, base, name, *rules = sys.argv[1:]
environment = dict(os.environ, NET_MUTANT_BASE=base, REFERENCE_CLAIMS_CUDA="1")
if name != "none":
    environment["NET_MUTANT"] = name
with tempfile.TemporaryDirectory() as folder:
    file = os.path.join(folder, "findings.json")
    ran = subprocess.run([program, plugin, "--json", file, "--quiet", "--strict"], env=environment,
                         capture_output=True, text=True, errors="replace")
    with open(file) as text:
        findings = json.load(text)[0]["rules"]
failed = [one["id"] for one in findings if one["verdict"] == "fail"]
good = set(failed) <= set(rules) and (not rules or rules[0] in failed)
good = good and ran.returncode == (1 if rules else 0)
print(ran.stdout)
if not good:
    sys.exit(f"{name}: status {ran.returncode}, failed {failed}, expected {rules}")

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""two_hosts.py NET_CONFORMANCE PLUGIN [RULE...]: the suite's rules of two processes, with the second
processes made by a server as on another host. Exactly RULE... fail."""
import json, os, socket, subprocess, sys, tempfile

program, plugin, *rules = sys.argv[1:]
with socket.socket(socket.AF_INET6) as probe:  # a free port; nobody else takes it in this moment
    probe.bind(("::", 0))
    port = probe.getsockname()[1]
server = subprocess.Popen([program, "--serve-peers", str(port), plugin])
try:
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "findings.json")
        ran = subprocess.run([program, plugin, "--peer", f"127.0.0.1:{port}", "--rule", "transfer.one", "--rule",
                              "process", "--json", file], capture_output=True, text=True, errors="replace", timeout=280)
        with open(file) as text:
            findings = json.load(text)[0]["rules"]
finally:
    server.kill()
    server.wait()
print(ran.stdout)
failed = [one["id"] for one in findings if one["verdict"] == "fail"]
passed = [one["id"] for one in findings if one["verdict"] == "pass"]
if failed != rules or (not rules and len(passed) != len(findings)):
    sys.exit(f"failed {failed}, expected {rules}; {len(passed)} of {len(findings)} passed")

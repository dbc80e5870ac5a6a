#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""terminal.py GDRX: colours on a terminal only, never with NO_COLOR, and 80 columns are enough."""
import os, pty, re, subprocess, sys

gdrx, here = sys.argv[1], os.path.dirname(os.path.realpath(__file__))
host = f"{here}/../fuzz/corpus/snapshot/host.tar"
ESCAPE = re.compile("\033\\[[0-9;]*m")
COMMANDS = [["doctor", "--snapshot", host], ["topo", host], ["topo", host, "--map"], ["topo", host, "--explain", "GPU0", "mlx5_0"]]


def environment(**more):
    kept = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "TERM", "COLUMNS")}
    return {**kept, "TERM": "xterm-256color", **more}


def on_terminal(argv, **more):
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(gdrx, [gdrx, *argv], environment(**more))
    out = b""
    while True:
        try:
            piece = os.read(terminal, 65536)
        except OSError:  # its end
            piece = b""
        if not piece:
            break
        out += piece
    os.waitpid(pid, 0)
    os.close(terminal)
    return out.decode()


def piped(argv):
    return subprocess.run([gdrx, *argv], env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout


def must(condition, what, out):
    if not condition:
        sys.exit(f"FAILED: {what}\n{out[:3000]}")


coloured = 0
for argv in COMMANDS:
    name = " ".join(argv)
    plain = piped(argv)
    must(plain and "\033" not in plain, f"{name} in a pipe has escapes", plain)
    bare = on_terminal(argv, NO_COLOR="1")
    must("\033" not in bare, f"{name} with NO_COLOR has escapes", bare)
    shown = on_terminal(argv)
    coloured += bool(ESCAPE.search(shown))
    must("\033" not in ESCAPE.sub("", shown), f"{name} sends more than colours", shown)
    long = [line for line in plain.splitlines() if len(line) > 80]
    must(not long, f"{name} is wider than 80 columns", "\n".join(long))
must(coloured >= 2, "no command has colours on a terminal", "")
for name in [[], *([word] for word in ("config", "doctor", "mpirun", "perf", "plan", "run", "snapshot", "stats", "topo", "tune"))]:
    help = piped([*name, "--help"])
    must("Usage:" in help, f"{name} has no help", help)
    long = [line for line in help.splitlines() if len(line) > 80]
    must(not long, f"{name} --help is wider than 80 columns", "\n".join(long))
print(f"{len(COMMANDS)} commands, {coloured} with colours on a terminal")

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""completion.py SHELL FOLDER: what a tab gives on a terminal of the shell, with the files that are installed.

FOLDER has bash/ and zsh/, as they are installed. 77, a skip, where the shell is not installed."""
import os, pty, re, select, shutil, sys, tempfile, time

SHELL, FOLDER = sys.argv[1], os.path.realpath(sys.argv[2])
TABS = "\t" if SHELL == "zsh" else "\t\t"
# what is typed, what the shell must then show, and what it must not
LINES = [
    ("gdrx to", ["gdrx topo "], []),
    ("gdrx topo --pl", ["--place "], []),
    ("gdrx topo --p", ["--pci", "--place", "--predict"], ["--map"]),
    ("gdrx topo --format js", ["--format json "], []),
    ("gdrx topo --format=ht", ["--format=html"], []),
    ("gdrx plan --algo ha", ["halving-doubling "], []),
    ("gdrx doctor --for", ["--for-other-host", "--format"], ["--place"]),
    ("gdrx s", ["snapshot", "stats"], ["topo"]),
    ("gdrx topo fi", ["file.xml"], []),
    ("allreduce_test --memory c", ["cuda "], []),
    ("allreduce_test --trans", ["--transport"], []),
    ("alltoall_test --out", ["--out-of-place"], ["--op"]),
]
START = {
    "bash": ["bash", "--norc", "--noprofile", "-i"],
    "zsh": ["zsh", "-f", "-i"],
}
SETUP = {
    "bash": f"for f in {FOLDER}/bash/*; do . $f; done; bind 'set bell-style none'; bind 'set enable-bracketed-paste off';"
            " bind 'set page-completions off'",
    "zsh": f"unsetopt zle_bracketed_paste beep; fpath=({FOLDER}/zsh $fpath); autoload -Uz compinit; compinit -u -d ./dump; unset zle_bracketed_paste",
}
if not shutil.which(SHELL):
    print(f"{SHELL} is not installed")
    sys.exit(77)


class Terminal:
    def __init__(self, folder):
        pid, self.fd = pty.fork()
        if pid == 0:
            os.chdir(folder)
            env = {"PATH": os.environ["PATH"], "TERM": "dumb", "PS1": "> ", "HOME": folder, "COLUMNS": "200", "LINES": "50"}
            os.execvpe(START[SHELL][0], START[SHELL], env)
        self.say(SETUP[SHELL] + "; stty cols 200 rows 50; echo rea''dy\n")
        self.read(until="\nready", limit=30)

    def say(self, text):
        os.write(self.fd, text.encode())

    def read(self, until=None, quiet=0.7, limit=8.0):
        """What comes until it is quiet, or until a text."""
        out, end = "", time.monotonic() + limit
        while time.monotonic() < end:
            if not select.select([self.fd], [], [], quiet)[0]:
                if until is None and out:
                    break
                continue
            out += os.read(self.fd, 65536).decode(errors="replace")
            out = re.sub("\033\\[[0-9;?]*[A-Za-z]|[\a\b]", "", out).replace("\r", "")
            if until is not None and until in out:
                break
        return out

    def tab(self, line):
        self.say(line)
        self.read(quiet=0.2)
        self.say(TABS)
        shown = line + self.read()
        self.say("\x03")
        self.read(quiet=0.2)
        return shown


wrong = 0
with tempfile.TemporaryDirectory() as folder:
    open(os.path.join(folder, "file.xml"), "w").close()
    terminal = Terminal(folder)
    for line, must, must_not in LINES:
        shown = terminal.tab(line)
        if not all(text in shown for text in must) or any(text in shown for text in must_not):
            print(f"FAILED: {line!r} and a tab shows:\n{shown}\nand must show {must}, not {must_not}")
            wrong += 1
sys.exit(1 if wrong else 0)

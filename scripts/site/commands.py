# SPDX-License-Identifier: Apache-2.0
"""The commands' pages, from what the programs say of themselves."""
import os, re, subprocess

TESTS = ("allreduce_test", "net_perf", "nccl_test", "net_conformance")
NOT_BUILT = "The programs were not built when these pages were made: build gdrx, then `scripts/docs`.\n"


def help_of(*words):
    said = subprocess.run([*words, "--help"], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60,
                          env=dict(os.environ, COLUMNS="100"))
    return said.stdout if said.returncode == 0 else ""


def statuses(text):
    """What a program says of its exit status, in one line."""
    found = re.search(r"Exit status: (.+?)(?:\n\n|\Z)", text, re.S)
    return " ".join(found.group(1).split()) if found else ""


def pages(folder):
    """Name and text of each page: the commands of gdrx, the test programs, and the exit statuses of all."""
    gdrx, rows = folder / "gdrx", []
    top = help_of(gdrx) if gdrx.exists() else ""
    commands = re.findall(r"^  ([a-z]\w*) {2,}", top.partition("Subcommands:")[2], re.M)
    lines = ["# gdrx", "", "What `gdrx COMMAND --help` prints. [The gdrx command](../how-to/command.md) shows their use.", ""]
    lines += ["```text", top.rstrip(), "```", ""] if top else [NOT_BUILT]
    for name in commands:
        text = help_of(gdrx, name)
        rows.append((f"gdrx {name}", statuses(text) or statuses(top)))
        lines += [f"## gdrx {name}", "", "```text", text.rstrip(), "```", ""]
    yield "commands.md", "\n".join(lines)
    lines = ["# Test programs", "", "What `PROGRAM --help` prints. [Measure and test](../how-to/measure.md) shows their use.", ""]
    for name in TESTS:
        text = help_of(folder / name) if (folder / name).exists() else ""
        if text:
            rows.append((name, statuses(text)))
            lines += [f"## {name}", "", "```text", text.rstrip(), "```", ""]
    yield "programs.md", "\n".join(lines if rows else [*lines, NOT_BUILT])
    table = [f"| `{name}` | {said} |" for name, said in rows if said]
    yield "exit-status.md", "\n".join(["# Exit status", "", "From the help of each program.", "", "| program | exit status |", "|---|---|", *table] if table
                                      else ["# Exit status", "", NOT_BUILT]) + "\n"

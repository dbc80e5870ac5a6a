# SPDX-License-Identifier: Apache-2.0
"""What each folder of results/ holds, file by file."""
import json, re

from .common import ROOT, table

FOLDERS = {"host": "host memory, communicators, faults", "gpu": "GPUs of one host and of several", "nccl": "NCCL over the plugin, gdrx in place of NCCL",
           "mpi": "MPI programs", "torch": "PyTorch", "softroce": "two virtual machines with soft-RoCE", "distributions": "bare roots of distributions", "aarch64": "an emulated aarch64"}
LONGEST = 100  # characters of a command


def head(path):
    """(machine, commit, command) as the file says them."""
    if path.suffix == ".json":
        run = json.loads(path.read_text())
        commit = run["commit"] if "commit" in run else f"{run['old_commit']} and {run['new_commit']}"
        return run["machine"], commit, run.get("command") or run["runs"][0]["command"]
    lines = "\n".join(path.read_text().splitlines()[:12])
    return tuple(found[1] if (found := re.search(rf"^# {word}: (.*)", lines, re.M)) else "" for word in ("machine", "commits?", "command"))


def cell(text):
    text = " ".join(text.replace("|", "/").split())
    return text if len(text) <= LONGEST else text[:LONGEST].rsplit(" ", 1)[0] + " …"


def index():
    lines = ["Each file of `results/` says where, of which commit and by which command it was measured. The other pages show them as tables.", ""]
    for folder, what in FOLDERS.items():
        files = [path for path in sorted((ROOT / "results" / folder).iterdir())]
        lines += [f"## {folder}: {what}", ""]
        lines += table(["<file", "<machine", "<commit", "<command"],
                       [(f"[{path.stem}](../../results/{folder}/{path.name})", *(cell(text) for text in head(path)[:2]), f"`{cell(head(path)[2])}`") for path in files])
    return lines

# SPDX-License-Identifier: Apache-2.0
"""gdrx as a backend of PyTorch, beside Gloo."""
import collections, json

from .common import ROOT, load, size, sources, table


def suites(name):
    """Rows of counts: a backend, as it was named to the tests."""
    said = {"gloo": "Gloo", "gdrx-as-gloo": "gdrx, under Gloo's name", "gdrx": "gdrx, under its own name"}
    rows, notes = [], []
    for run in json.loads((ROOT / "results" / f"{name}.json").read_text()):
        counts = collections.Counter(test["result"] for test in run["tests"].values())
        rows.append((said[run["backend"]], run["torch"], run["ranks"], *(counts[word] for word in ("passed", "failed", "skipped"))))
        failed = sorted(test for test, found in run["tests"].items() if found["result"] == "failed")
        if failed:
            notes.append(f"- {said[run['backend']]} fails: " + ", ".join(f"`{test}`" for test in failed))
    return rows, notes


def pytorch():
    lines = ["gdrx beside Gloo in the same ranks, in turns (`scripts/torch-perf`). CPU tensors of float32; the ranks share two CPUs.",
             "A time is the median over rounds, and of the slowest rank.", ""]
    names = ("torch-2", "torch-4")
    for name in names:
        run = load(name)
        rows = [(row["call"], size(row["bytes"]), f"{row['gdrx_us']:.1f}", f"{row['gloo_us']:.1f}", f"{row['gloo_over_gdrx']:.2f}",
                 f"{row['ratio_low']:.2f} to {row['ratio_high']:.2f}") for row in run["rows"]]
        lines += [f"## {run['ranks']} ranks", "", f"PyTorch {run['torch']}. Geometric mean of the ratios: {run['geometric_mean']:.2f}.", ""]
        lines += table(["<call", "size", "gdrx (us)", "Gloo (us)", "Gloo / gdrx", "three fifths of the rounds"], rows)
    lines += sources(*names)
    rows, notes = suites("torch-suite-2")
    return lines + ["## PyTorch's own tests", "",
                    "DistributedTest of PyTorch's wheel (`scripts/torch-suites`), on a machine without a GPU. Most tests that are skipped need GPUs.",
                    "The tests branch on the backend's name. So gdrx runs under Gloo's name, too.", ""] + \
        table(["<backend", "<PyTorch", "ranks", "passed", "failed", "skipped"], rows) + notes + [""]

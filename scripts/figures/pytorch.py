# SPDX-License-Identifier: Apache-2.0
"""gdrx as a backend of PyTorch, beside Gloo, and beside NCCL."""
import collections

from .common import link, load, size, sources, table


def suites(name):
    """Rows of counts: a backend, as it was named to the tests."""
    said = {"gloo": "Gloo", "gdrx-as-gloo": "gdrx, under Gloo's name", "gdrx": "gdrx, under its own name"}
    rows, notes = [], []
    for run in load(name)["runs"]:
        counts = collections.Counter(test["result"] for test in run["tests"].values())
        rows.append((said[run["backend"]], run["torch"], run["ranks"], *(counts[word] for word in ("passed", "failed", "skipped"))))
        failed = sorted(test for test, found in run["tests"].items() if found["result"] == "failed")
        if failed:
            notes.append(f"- {said[run['backend']]} fails: " + ", ".join(f"`{test}`" for test in failed))
    return rows, notes


def timed(run, theirs, name):
    """A table of a run: times of gdrx and of the other, and the ratio."""
    rows = [(row["call"], size(row["bytes"]), f"{row['gdrx_us']:.1f}", f"{row[f'{theirs}_us']:.1f}", f"{row[f'{theirs}_over_gdrx']:.2f}",
             f"{row['ratio_low']:.2f} to {row['ratio_high']:.2f}") for row in run["rows"]]
    return [f"PyTorch {run['torch']}. Geometric mean of the ratios: {run['geometric_mean']:.2f}.", ""] + \
        table(["<call", "size", "gdrx (us)", f"{name} (us)", f"{name} / gdrx", "three fifths of the rounds"], rows)


def cuda():
    run = load("torch-gpu-2")
    gpus = ", ".join(f"{number} {name.removeprefix('NVIDIA ')}" for name, number in collections.Counter(run["gpus"]).items())
    return ["## CUDA tensors, beside NCCL", "",
            f"{run['ranks']} ranks on {gpus}, in turns (`scripts/torch-perf --cuda`). Calls without `async_op`, many in a row in one stream;",
            "NVLink multicast is off in NCCL. Up to 4 MiB the calls of the host take the time, and not the GPUs: these rows compare",
            "what a call costs from Python on.", ""] + timed(run, "nccl", "NCCL") + sources("torch-gpu-2") + tests_on_gpus()


def tests_on_gpus():
    rows, failed = [], []
    for name, where in (("torch-cuda-2-on-2", "2 ranks, a GPU each"), ("torch-cuda-4-on-2", "4 ranks on 2 GPUs"),
                        ("torch-cuda-2-on-1", "2 ranks on one GPU"), ("torch-cuda-4-on-1", "4 ranks on one GPU"),
                        ("torch-cuda-faults-on-1", "faults, 2 and 3 ranks on one GPU")):
        run = load(name)
        rows.append((link(name, where), run["gpus"][0].split(",")[0].removeprefix("NVIDIA "), "yes" if run["mps"] else "no",
                     run["torch"], run["passed"], len(run["rows"]) - run["passed"], run["commit"]))
        failed += [f"- {where}: {row['test']} failed: {row.get('told', '')}" for row in run["rows"] if row["outcome"] != "ok"]
    return ["## Tests of CUDA tensors", "",
            "`python/tests/cuda_ranks.py`; the files name the tests, and what each fault said.", ""] + \
        table(["<ranks", "<GPU", "<multi-process service", "<PyTorch", "passed", "failed", "<commit"], rows) + failed + [""]


def packages():
    run = load("torch-packages")
    rows = [(row["package"], row["version"], row["outcome"], row["told"]) for row in run["rows"]]
    return ["## Other packages", "",
            f"Over gdrx with CPU tensors and PyTorch {run['torch']} (`scripts/torch-packages`).", ""] + \
        table(["<package", "<version", "<outcome", "<what was seen"], rows) + sources("torch-packages")


def pytorch():
    lines = ["gdrx beside Gloo in the same ranks, in turns (`scripts/torch-perf`). CPU tensors of float32; the ranks share two CPUs.",
             "A time is the median over rounds, and of the slowest rank.", ""]
    names = ("torch-2", "torch-4")
    for name in names:
        run = load(name)
        lines += [f"## {run['ranks']} ranks", ""] + timed(run, "gloo", "Gloo")
    lines += sources(*names) + cuda()
    rows, notes = suites("torch-suite-2")
    return lines + ["## PyTorch's own tests", "",
                    "DistributedTest of PyTorch's wheel (`scripts/torch-suites`), on a machine without a GPU. Most tests that are skipped need GPUs.",
                    "The tests branch on the backend's name. So gdrx runs under Gloo's name, too.", ""] + \
        table(["<backend", "<PyTorch", "ranks", "passed", "failed", "skipped"], rows) + notes + [""] + packages()

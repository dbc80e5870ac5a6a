# SPDX-License-Identifier: Apache-2.0
"""What ran with which PyTorch, and which of its calls run there."""
from .common import link, load, table

SUITES = {"wheel": "the wheel", "own": "gdrx's own", "gdrx": "DistributedTest, gdrx", "gdrx-as-gloo": "DistributedTest, gdrx under Gloo's name",
          "gloo": "DistributedTest, Gloo"}

# Failures that are understood.
KNOWN = {
    ("2.6", "test_every_way_to_train_gives_the_losses_of_gloo"): "PyTorch 2.6's FSDP2 asks a CPU's stream for an event, which that has not",
    ("2.6", "test_torchfrtrace_reads_the_record_of_a_late_rank"): "PyTorch 2.6 brings no torchfrtrace; changed since, not run again",
    ("2.6", "test_the_others_go_on_after_a_death"): "PyTorch 2.6 has no shrink_group; changed since, not run again",
    ("2.6", "test_import_torch_finds_gdrx_and_survives_its_errors"): "the test made half of a registration undone; changed since, not run again",
    ("2.6", "test_an_abort_reaches_all"): "a backend had no abort in Python; changed since, not run again",
    ("2.6", "test_a_killed_rank_is_named_within_a_second"): "1.33 s, on a machine whose load was over 30",
}


def counts(result):
    if result is None:
        return "not run"
    text = f"{result['passed']} / {result['failed']} / {result['skipped']}"
    return text + ("" if result["ended"] in ("with 0", "with 1") else ", until it was stopped")


def failing(versions):
    for minor, found in versions.items():
        for suite, title in SUITES.items():
            for name in found["suites"].get(suite, {}).get("failing", []):
                yield f"- {minor}, {title}: `{name}` failed" + (f": {KNOWN[minor, name]}" if (minor, name) in KNOWN else "")


def calls(versions):
    """A row a call, a column a version; refusals as numbers of the notes below."""
    found = {minor: one["suites"]["methods"]["methods"] for minor, one in versions.items() if "methods" in one["suites"]}
    lines, reasons = [], []
    for device in ("cpu", "cuda"):
        tried = {minor: devices[device] for minor, devices in found.items() if device in devices}
        if not tried:
            lines += [f"No version ran them with {device.upper()} tensors: the machine has no GPU.", ""]
            continue
        rows = []
        for name in dict.fromkeys(name for one in tried.values() for name in one):
            row = [name]
            for one in tried.values():
                word, _, why = one.get(name, "not tried").partition(": ")
                if why:
                    reasons += [why] * (why not in reasons)
                    word += f" ({reasons.index(why) + 1})"
                row.append(word)
            rows.append(row)
        lines += [f"{device.upper()} tensors:", ""] + table(["<call", *(f"<{minor}" for minor in tried)], rows)
    return lines + [f"{number}. {why}" for number, why in enumerate(reasons, 1)] + [""]


def pytorch_versions():
    run = load("torch-matrix")
    versions = {row["version"]: row for row in run["rows"]}
    rows = [(found["torch"], *(counts(found["suites"].get(suite)) for suite in SUITES)) for found in versions.values()]
    commits = sorted({result["commit"] for found in versions.values() for result in found["suites"].values()})
    load_of = [result["load"] for found in versions.values() for result in found["suites"].values()]
    return ["## Tests", "", "Tests that passed / failed / were skipped. *The wheel* are `python/tests/packaged.py`, *gdrx's own* are",
            "`python/tests/run.py`, both with the wheel of `scripts/package` installed. DistributedTest is PyTorch's, as its wheel brings it.", ""] + \
        table(["<PyTorch", *(f"<{title}" for title in SUITES.values())], rows) + list(failing(versions)) + \
        ["", "## Calls", "", "`python/tests/methods.py` makes each call in a group of two ranks.", ""] + calls(versions) + \
        [f"Measured: {link('torch-matrix')}, {run['machine']}, Python {run['python']}, `{run['wheel']}`; "
         f"commit {', '.join(commits)}, `scripts/torch-matrix`.",
         f"The machine was shared with other work: its load average was {min(load_of):.0f} to {max(load_of):.0f}.", ""]

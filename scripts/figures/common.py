# SPDX-License-Identifier: Apache-2.0
"""What several pages use: tables, sources, ratios."""
import json, pathlib, subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30


def path_of(file):
    """results/FOLDER/FILE: a file's name stands once under results/."""
    found = sorted((ROOT / "results").glob(f"*/{file}"))
    assert len(found) == 1, f"results/ has {len(found)} files of the name {file}"
    return found[0].relative_to(ROOT)


def load(name):
    return json.loads((ROOT / path_of(f"{name}.json")).read_text())


def link(name, text=None, ending="json"):
    """From a page of docs/performance to the file."""
    return f"[{text or name}](../../{path_of(f'{name}.{ending}')})"


def table(heads, rows):
    """Heads that begin with `<` are of text, the others of numbers."""
    lines = ["| " + " | ".join(head.lstrip("<") for head in heads) + " |",
             "|" + "|".join("---" if head.startswith("<") else "--:" for head in heads) + "|"]
    return lines + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows] + [""]


def sources(*names):
    """Where the tables above come from: machine, commit and command as the files have them."""
    lines = ["Measured:", ""]
    for name in names:
        run = load(name)
        nccl = f"; NCCL {run['nccl']}" if "nccl" in run else ""
        command = f", `{run['command']}`" if "command" in run else ""
        lines.append(f"- {link(name)}: {run['machine']}{nccl}; commit {run['commit']}{command}")
    return lines + [""]


def records(rows):
    """Results kept as text: (file, what it shows)."""
    return [f"- {link(name, ending='txt')}: {what}" for name, what in rows] + [""]


def size(number):
    for unit, name in ((GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")):
        if number >= unit and number % unit == 0:
            return f"{number // unit} {name}"
    return f"{number} B"


def span(values):
    return f"{min(values):.2f} to {max(values):.2f}"


def best_nccl(row):
    """The better of NCCL's plain and registered buffers."""
    return min(row["vs"][rival]["p50"] for rival in ("nccl", "nccl_registered"))


def nccl_ratio(row):
    return best_nccl(row) / row["time_us"]["p50"]


def right(run, **facts):
    """The rows, each without a wrong element and with these facts."""
    for row in run["rows"]:
        assert row["wrong"] == 0 and all(row[key] == value for key, value in facts.items()), row
    return run["rows"]


def beside_nccl(rows):
    """One sentence for the sizes where gdrx is faster, one for the others."""
    ratios = {row["bytes"]: nccl_ratio(row) for row in rows}
    slow = [number for number, ratio in ratios.items() if ratio < 1]
    fast = [number for number in ratios if number not in slow]
    said = []
    if fast:
        sizes = f"{size(min(fast))} to {size(max(fast))}" if not slow or min(slow) > max(fast) or max(slow) < min(fast) else \
            f"{len(fast)} of {len(ratios)} sizes"
        said.append(f"faster than the better NCCL at {sizes}, by {span([ratios[number] for number in fast])} times")
    if slow:
        said.append("slower at " + " and ".join(f"{size(number)} ({ratios[number]:.3f} times as fast)" for number in slow))
    return "gdrx is " + ". It is ".join(said) + "."


def compared(run):
    ops = {row["op"] for row in run["rows"]}
    return table(["bytes", "<type"] + ["<operator"] * (len(ops) > 1) + ["<place", "old (us)", "new (us)", "new / old", "interval"],
                 [(row["bytes"], row["type"], *([row["op"]] * (len(ops) > 1)), "in place" if row["in_place"] else "out of place",
                   f"{row['old_us']:.2f}", f"{row['new_us']:.2f}", f"{row['ratio']:.3f}", f"{row['low']:.3f} to {row['high']:.3f}")
                  for row in run["rows"]])


def sources_of_builds(*names):
    lines = ["Measured:", ""]
    for name in names:
        run = load(name)
        lines.append(f"- {link(name)}: {run['machine']}; commits {run['old_commit']} and "
                     f"{run['new_commit']}, `{run['command']}`")
    return lines + [""]


def printed(script, result):
    """The table that a script makes of a result."""
    return subprocess.run([ROOT / "scripts" / script, "--table", ROOT / path_of(f"{result}.json")], check=True,
                          capture_output=True, text=True).stdout.splitlines() + [""]

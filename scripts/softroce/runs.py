# SPDX-License-Identifier: Apache-2.0
"""What a program of collectives says row by row, where a run's time went, and which runs add up."""
import collections, re

ROW = re.compile(r"^\s*(?P<size>\d+)\s+\d+\s+float\s+sum\s+(?P<algorithm>\S+)\s+verbs\s+(?:in|out)\s+no\s+(?P<p50>[\d.]+)\s.*\s(?P<wrong>\d+)$", re.M)
MADE = re.compile(r"^# communicator made in (\d+) ms")


def spent(lines):
    """Of lines, each with the seconds since the program's start: the seconds that each size took, each algorithm,
    the communicators, and what stands before the first row (start) and behind the last one (end)."""
    made, sizes, algorithms = 0.0, collections.Counter(), collections.Counter()
    start, before = 0.0, None
    new = 0.0  # communicators since the last row: a line of theirs comes with the row that needed them
    for at, line in lines:
        if row := ROW.match(line):
            seconds = at - before - new if before is not None else 0.0
            sizes[row["size"]] += max(0.0, seconds)
            algorithms[row["algorithm"]] += max(0.0, seconds)
            before, new = at, 0.0
        elif found := MADE.match(line):
            new += int(found[1]) / 1000
            made += int(found[1]) / 1000
        elif not sizes:
            start = before = at
    last = lines[-1][0] if lines else 0.0
    return {"start": round(start, 1), "communicators": round(made, 1), "end": round(last - before if before is not None else 0.0, 1),
            "sizes": rounded(sizes), "algorithms": rounded(algorithms)}


def rounded(seconds):
    return {name: round(value, 1) for name, value in seconds.items()}


def shares(runs):
    """Lines of text: the mean seconds of each part in these runs."""
    parts = collections.defaultdict(list)
    for run in runs:
        for name, value in run.get("spent", {}).items():
            for key, seconds in value.items() if isinstance(value, dict) else [("", value)]:
                parts[f"{name} {key}".strip()].append(seconds)
    return [f"  {name:24} {sum(values) / len(values):8.1f} s" for name, values in parts.items()]


def runs_before(record, env):
    """The right runs of a record, each with its own commit and machine, and how many failed; none where it is of other
    variables: such runs show something else."""
    if not record or record.get("env", []) != env:
        return [], 0
    return [{"commit": record["commit"], "machine": record["machine"], **row} for row in record["rows"]], record["runs_failed"]

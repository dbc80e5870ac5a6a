# SPDX-License-Identifier: Apache-2.0
"""What a program of collectives says row by row, what became of a run, where its time went, and which one is next."""
import collections, re, statistics

RANKS = (4, 8)

ROW = re.compile(r"^\s*(?P<size>\d+)\s+\d+\s+float\s+sum\s+(?P<algorithm>\S+)\s+verbs\s+(?:in|out)\s+no\s+(?P<p50>[\d.]+)\s.*\s(?P<wrong>\d+)$", re.M)
LOST = re.compile(r"rank (\d+)(?: \([^)]*\))? is lost")
RANK = re.compile(r"^\[rank \d+")
HOSTS = re.compile(r"^# gdrx \S+, \d+ ranks on (\d+) host\(s\)", re.M)
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


def outcome(status, out):
    """What a run's exit status and words say of it; `failed` is empty where no rank was lost and no element wrong."""
    rows = list(ROW.finditer(out))
    small = [float(row["p50"]) for row in rows if int(row["size"]) <= 8]
    lost = len(set(LOST.findall(out)))
    wrong = sum(int(row["wrong"]) for row in rows)
    failed = f"{wrong} wrong elements" if wrong else f"{lost} ranks were lost" if lost else ""
    if not failed and status:
        failed = f"status {status}: {last_words(out)}"
    hosts = HOSTS.search(out)
    if not failed and rows and (hosts is None or hosts[1] != "2"):
        failed = f"its ranks were on {hosts[1] if hosts else 'unknown'} host(s), not on 2"
    return {"failed": failed or ("" if rows else "no row"), "lost": lost, "wrong": wrong, "rows": len(rows), "resent": resent(out),
            "rails_down": out.count(" down: "), "small_p50_ms": round(statistics.median(small) / 1000, 2) if small else None}


def last_words(out):
    """The first line in which a rank gives its reason, else the last line."""
    said = [line for line in out.splitlines() if line.strip()]
    return next((line for line in said if RANK.match(line)), said[-1] if said else "it said nothing")


def right(run):
    return not run["failed"]


def resent(out):
    return sum(int(n) for n in re.findall(r"reconciled: (\d+) sent again", out))


def next_ranks(runs, setting, env, wanted, begun=()):
    """How many ranks the next run of a setting has: of which the fewest are right or begun. None: there are enough of each."""
    alike = [run for run in runs if run["setting"] == setting and run["env"] == env and right(run)]
    counts = {ranks: sum(run["ranks"] == ranks for run in alike) + list(begun).count(ranks) for ranks in RANKS}
    fewest = min(RANKS, key=counts.get)
    return fewest if counts[fewest] < wanted else None

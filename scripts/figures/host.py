# SPDX-License-Identifier: Apache-2.0
"""Host memory."""
import math, re, statistics

from .common import ROOT, compared, load, records, right, sources, sources_of_builds, table


def mean_ratio(rows):
    return math.exp(statistics.fmean(math.log(row["vs"]["mpi"]["p50"] / row["time_us"]["p50"]) for row in rows))


def every_collective():
    lines = ["## Every collective", "",
             "Float, sum, out of place. Each run has every program of mpi-tests once, with MPI's call on the same buffers.",
             "A cell has gdrx's time in microseconds, and how many times that MPI takes: medians of the runs.", ""]
    for ranks in (2, 4):
        run = load(f"host-{ranks}")
        assert run["wrong"] == 0, run
        cells = {(row["bytes"], row["collective"]): f"{row['us']:.2f}, {row['mpi_us'] / row['us']:.2f}" for row in run["rows"]}
        names = list(dict.fromkeys(row["collective"] for row in run["rows"]))
        sizes = list(dict.fromkeys(row["bytes"] for row in run["rows"]))
        lines += [f"{ranks} ranks, {run['rounds']} rounds:", ""]
        # Of parts for each rank the smallest size is rounded up.
        lines += table(["bytes", *names], [(size, *(cells.get((size, name), "") for name in names)) for size in sorted(sizes)])
    return lines + sources("host-2", "host-4") + records((
        ("alltoallv-sizes", "all-to-all-v of random sizes on 2 to 33 ranks, and of over 2 GiB, over every route: every byte right"),
        ("comm-cost-8", "what communicators cost: descriptors, threads, memory, and the time to make and to split one")))


def placed():
    """Ranks placed by `gdrx run`, and not."""
    run = load("placed-2")
    cell = lambda row, other: f"{row[f'placed/{other}']:.2f} ({row[f'{other}_interval'][0]:.2f} to {row[f'{other}_interval'][1]:.2f})"
    return ["## Placed ranks", "",
            f"Allreduce of {run['ranks']} ranks under `gdrx run`, under mpirun that binds nothing, and under mpirun's own binding, in turns,",
            f"{run['rounds']} rounds. A time is the median of the rounds' medians, a ratio the mean of the rounds' own, with its 95% interval.",
            f"Below 1, `gdrx run` is faster. The {run['note']}; two CPUs. Ranks that nobody binds may share a CPU, most of all under load.", ""] + \
        table(["bytes", "unbound (us)", "mpirun (us)", "gdrx run (us)", "gdrx run / unbound", "gdrx run / mpirun"],
              [(row["bytes"], f"{row['unbound_us']:.2f}", f"{row['mpirun_us']:.2f}", f"{row['placed_us']:.2f}", cell(row, "unbound"),
                cell(row, "mpirun")) for row in run["rows"]]) + sources("placed-2")


def short_build():
    """What code that no message passes through costs since the compiler takes less time for it."""
    runs = (("2 ranks", "ab-short-build-2-ranks"), ("8 ranks", "ab-short-build-8-ranks"), ("TCP with TLS, 2 ranks", "ab-short-build-tcp-2"),
            ("all-to-all, 4 ranks", "ab-short-build-alltoall"), ("GPU memory, stream, 2 ranks on one GPU", "ab-short-build-gpu-stream"),
            ("GPU memory, graph", "ab-short-build-gpu-graph"), ("GPU memory, all-to-all, stream", "ab-short-build-gpu-alltoall"))
    lines = ["## A shorter build", "", "The new build compiles code that no message passes through with `-Og`, the old one with `-O1` to `-O3`.", ""]
    for title, name in runs:
        lines += [f"{title}:", ""] + compared(load(name))
    return lines + sources_of_builds(*(name for _, name in runs))


def host():
    names = ("cpu-2-auto", "cpu-16-auto", "cpu-2-ring-ucx", "cpu-16-ring-ucx")
    rows, means = [], []
    for name in names:
        run = load(name)
        for row in right(run):
            ours, theirs = row["time_us"]["p50"], row["vs"]["mpi"]["p50"]
            rows.append((row["ranks"], f"{row['algorithm']} ({row['transport']})", row["bytes"], f"{ours:.1f}", f"{theirs:.1f}",
                         f"{theirs / ours:.2f}"))
        means.append((name, f"{mean_ratio(run['rows']):.2f}", ", ".join(f"{mean:.2f}" for mean in run["means_of_runs"]),
                      f"{run['least_row_of_runs']:.2f}"))
    limit = re.search(r"trace_cost> alone (\d+)", (ROOT / "tests/trace/CMakeLists.txt").read_text())[1]
    built = load("ab-host")
    return ["Allreduce of host memory on one machine, beside Open MPI 4.1.4 with its defaults in the same run.",
            "Float, sum, out of place. A time is the median of the slowest rank.",
            "With 16 ranks on 2 cores, most of a small call is the scheduler's time.", ""] + \
        table(["ranks", "<algorithm", "bytes", "gdrx p50 (us)", "MPI p50 (us)", "MPI / gdrx"], rows) + \
        ["Each run was repeated five times. The rows above are those of the middle run.", ""] + \
        table(["<run", "geometric mean", "means of the five runs", "least row of the five"], means) + sources(*names) + \
        every_collective() + placed() + ["## What a call costs without data", "",
         f"A test limits the shortest allreduce (one rank, 8 bytes) to {limit} instructions (`tests/trace/cost.sh`, callgrind).", "",
         "## Two builds", "",
         "`scripts/compare-builds` runs an old and a new build in turns. A ratio below 1 says that the new one is faster.", ""] + \
        compared(built) + sources_of_builds("ab-host") + short_build()

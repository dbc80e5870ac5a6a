# SPDX-License-Identifier: Apache-2.0
"""Programs of MPI with gdrx preloaded, beside themselves without it."""
import statistics

from .common import link, load, size, sources, table

MODES = ("without", "auto", "all")


def programs():
    run = load("mpi-programs")
    rows, counts = [], []
    for row in run["rows"]:
        times = [f"{row['median'][mode]:.2f}" if mode in row["median"] else "failed" for mode in MODES]
        ratios = [f"{statistics.median(a / b for a, b in zip(row['seconds'][mode], row['seconds']['without'])):.2f}" for mode in MODES[1:]]
        rows.append((row["program"], row["ranks"], *times, *ratios, "yes" if row["wrong"] == 0 else "no"))
        counts.append((row["program"], row["ranks"], *(f"{row['counts'][mode]['taken']} of {row['counts'][mode]['eligible']}" for mode in MODES[1:])))
    said = {row["program"]: f"- {row['program']} {row['version']}: {row['what']}" for row in run["rows"]}
    return ["## Programs", "",
            "Programs of the distribution, as they are installed (`scripts/mpi-programs`): seconds by their own clocks, medians of runs",
            "in turns, and medians of the runs' ratios to those without gdrx. Other work had most of both CPUs: these are no times of a quiet",
            f"host, and Open MPI, which spins while it waits, suffers most. Results are the same if they agree to {run['tolerance']:g} of their value.", ""] + list(said.values()) + [""] + \
        table(["<program", "ranks", "without (s)", "auto (s)", "all (s)", "auto / without", "all / without", "<same results"], rows) + \
        ["Collectives that were taken, of those that gdrx is meant to have:", ""] + \
        table(["<program", "ranks", "auto", "all"], counts) + sources("mpi-programs")


def beside():
    run = load("mpi-beside")
    lines = ["## Collectives", "",
             "The default, hook included, beside the MPI's own in the same processes, in turns, call by call: medians of the slowest rank.",
             "Microseconds, gdrx/MPI. Where MPI has the call, both are MPI's times, and differ by the hook and by noise.", ""]
    for ranks in sorted({row["ranks"] for row in run["rows"]}):
        chosen = [row for row in run["rows"] if row["ranks"] == ranks]
        sizes = [number for number in sorted({row["bytes"] for row in chosen}) if number >= 32 and number.bit_length() % 2 == 0]
        rows = []
        for name in dict.fromkeys(row["collective"] for row in chosen):
            of = {row["bytes"]: row for row in chosen if row["collective"] == name}
            rows.append((name, *(f"{of[number]['gdrx_us']:.1f}/{of[number]['mpi_us']:.1f}" if number in of else "" for number in sizes)))
        lines += [f"### {ranks} ranks", ""] + table(["<collective", *map(size, sizes)], rows) + [slower(chosen), ""]
    return lines + sources("mpi-beside")


def slower(rows):
    """What noise and a hook may make: 2% or 30 ns, the larger."""
    late = [row for row in rows if row["gdrx_us"] - row["mpi_us"] > max(0.02 * row["mpi_us"], 0.03)]
    return f"At {len(late)} of {len(rows)} sizes gdrx's median was more than 2% and 30 ns behind MPI's."


def small():
    run = load("mpi-beside")
    return ["## What a call costs that is passed on", "",
            "Nanoseconds of a call that MPI ends at once (`mpi_passed cost`), two ranks.", ""] + \
        table(["<call", "without gdrx", "with", "more"], [(row["call"], row["without_ns"], row["with_ns"], row["more_ns"]) for row in run["passed_on"]]) + \
        ["## The first call of a communicator", "", "It makes gdrx's. Milliseconds of the slowest rank; the program's first one loads gdrx as well. The ranks meet",
             "many times, and each time waited for a CPU here.", ""] + \
        table(["ranks", "a communicator's (ms)", "the program's (ms)"],
              [(row["ranks"], row["communicator_ms"], row["program_ms"]) for row in run["first_calls"]]) + sources("mpi-beside")


def suites():
    run = load("mpi4py-suite")
    rows = [(row["ranks"], row["mode"], row.get("tests", ""), "passed" if row["passed"] else "failed",
             f"{row['taken']} of {row['eligible']}" if "taken" in row else "") for row in run["rows"]]
    matrices = [(name, load(name)) for name in ("mpi-matrix-openmpi-4.1.4", "mpi-matrix-openmpi-5.0.11", "mpi-matrix-mpich-4.0.2")]
    programs = []
    for name, matrix in matrices:
        found = matrix["summary"]
        programs.append((matrix["mpi"].removeprefix("mpirun ").translate(str.maketrans("", "", "()")), found["programs"], found["without"],
                         found["all"], found.get("auto", "not run"), found["worse"], f"{found['all_taken']} of {found['all_eligible']}"))
    return ["## Tests of others", "", f"{run['suite']}:", ""] + table(["ranks", "<GDRX_MPI", "tests", "<result", "taken"], rows) + \
        [f"{matrices[0][1]['suite']}: programs that pass, and eligible calls that were taken with `all`:", ""] + \
        table(["<MPI", "programs", "without gdrx", "`all`", "by default", "worse", "taken"], programs) + \
        ["Measured:", "",
         f"- {link('mpi4py-suite')}: {run['machine']}; commit {run['commit']}, `{run['command']}`"] + \
        [f"- {link(name)}: {matrix['machine']}; commit {matrix['commit']}, `{matrix.get('command', 'scripts/mpi-matrix')}`"
         for name, matrix in matrices] + [""]


def mpi():
    return programs() + beside() + small() + suites()

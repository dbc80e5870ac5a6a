# SPDX-License-Identifier: Apache-2.0
"""libgdrx-nccl.so beside NCCL."""
import math, statistics

from .common import link, load, size, table

RUNS = ("nccl-api-2xh200", "nccl-api-2-on-1-mps")


def means(run):
    """Of each program: our time in NCCL's, the geometric mean of all sizes, in graphs and in streams; rows of 0 bytes apart."""
    rows = [row for row in run["rows"] if row["bytes"] > 0]
    for program in dict.fromkeys(row["program"] for row in rows):
        ratios = {mode: [row["ratio"] for row in rows if row["program"] == program and row["mode"] == mode] for mode in ("graph", "stream")}
        yield (program, *(f"{math.exp(statistics.fmean(map(math.log, ratios[mode]))):.2f}" for mode in ("graph", "stream")),
               *(f"{max(ratios[mode]):.2f}" for mode in ("graph", "stream")))


def version(number):
    return f"{number // 10000}.{number // 100 % 100}.{number % 100}"


def slower(run):
    for row in run["rows"]:
        if row["ratio"] > 1.03:
            yield (row["program"], row["mode"], row["place"], size(row["bytes"]), f"{row['gdrx_us']:.2f}", f"{row['nccl_us']:.2f}", f"{row['ratio']:.2f}")


def nccl_api():
    lines = ["`libgdrx-nccl.so` beside NCCL under nccl-tests, the same programs in turns (`scripts/nccl-api-perf`).",
             "*Ratio* is gdrx's time in NCCL's: less than 1 is faster. Each row of the files is a median of five rounds.", ""]
    for name in RUNS:
        run = load(name)
        lines += [f"## {run['ranks']} ranks, {run['gpu']}, {run['layout']}", "",
                  f"NCCL {version(run['versions']['nccl'])}, {len(run['rows'])} rows, geometric mean {run['geometric_mean']:.2f}. {link(name)}: "
                  f"{run['machine']}; commit {run['commit']}; `{run['command']}`.", ""]
        lines += table(["<program", "mean, graphs", "mean, streams", "worst, graphs", "worst, streams"], list(means(run)))
        lines += ["Rows in which gdrx is slower by more than 3%:", ""]
        lines += table(["<program", "<mode", "<place", "bytes", "gdrx (us)", "NCCL (us)", "ratio"], list(slower(run)))
    return lines + ["Calls of no element and no root end at once in libgdrx-nccl.so since these runs.", ""]

# SPDX-License-Identifier: Apache-2.0
"""GPUs of one host."""
from .common import link, GIB, beside_nccl, compared, load, nccl_ratio, records, right, sources, sources_of_builds, table

GPU_SIZES = [8] + [4096 * 4**i for i in range(10)] + [2 * GIB]


def gpu():
    rows, said, names = [], [], []
    for kind in ("graph", "stream", "bf16"):
        for ranks in (2, 4):
            names.append(f"gpu-{ranks}-{kind}")
            run = load(names[-1])
            right(run, ranks=ranks)
            said.append(f"- {ranks} GPUs, {run['rows'][0]['type']}, {run['rows'][0]['mode']}: {beside_nccl(run['rows'])}")
            for row in run["rows"]:
                if row["bytes"] not in GPU_SIZES and kind == "graph":
                    continue
                vs = row["vs"]
                on_host = f"{row['host_us']:.1f}" if kind == "stream" else ""
                rows.append((ranks, f"{row['type']}, {row['mode']}", row["bytes"], f"{row['time_us']['p50']:.2f}",
                             f"{vs['nccl']['p50']:.2f}", f"{vs['nccl_registered']['p50']:.2f}", f"{nccl_ratio(row):.2f}",
                             f"{row['busbw']:.1f}", on_host))
    newer = right(load("gpu-2-nccl230"))
    made = [(name, f"{load(name)['communicators'][0]['made_ms']:.0f}") for name in ("gpu-2-graph", "gpu-4-graph", "gpu-8-on-2-mps")
            if "communicators" in load(name)]
    return ["Allreduce between the GPUs of one host, one process a GPU, with NVLink 4 between all of them and NVLS off.",
            "NCCL 2.28.3 runs in the same processes: with plain buffers, and with its buffers registered as symmetric windows.",
            "gdrx's buffers are not registered. A graph has 40 calls. Times are medians of the slowest rank.",
            "`better NCCL / gdrx` compares with the faster of both ways of NCCL.", "",
            "![time and bus bandwidth against size](allreduce-gpu.svg)", "", "`scripts/plot` draws the picture.", ""] + said + [""] + \
        table(["GPUs", "<type, mode", "bytes", "gdrx p50 (us)", "NCCL p50 (us)", "NCCL registered p50 (us)", "better NCCL / gdrx",
               "gdrx bus (GB/s)", "gdrx on the host (us)"], rows) + sources(*names) + \
        ["## Beside NCCL 2.30.7", "", f"2 GPUs, graph. {beside_nccl(newer)}", ""] + sources("gpu-2-nccl230") + \
        every_collective() + ["## Making a communicator", ""] + table(["<run", "time (ms)"], made) + shared() + registered() + links() + \
        ["## Types", "",
         "Sums of float, half and bfloat16 have kernels of their own. All else shares one set of kernels, by a function that is",
         "told the type and the operator. The new build is so. In the old one those three types had kernels of their own for every",
         "operator, and the function was longer. Two ranks:", ""] + compared(load("ab-gpu-types")) + \
        compared(load("ab-gpu-operators")) + ["Four ranks on one GPU:", ""] + compared(load("ab-gpu-types-4")) + \
        sources_of_builds("ab-gpu-types", "ab-gpu-operators", "ab-gpu-types-4") + ["## Two builds", "", "Graph:", ""] + compared(load("ab-gpu-graph")) + \
        ["Graph, four ranks on one GPU:", ""] + compared(load("ab-gpu-graph-4")) + \
        ["Stream:", ""] + compared(load("ab-gpu-stream")) + sources_of_builds("ab-gpu-graph", "ab-gpu-graph-4", "ab-gpu-stream") + divided() + \
        ["## Other records", ""] + records((
            ("gpu-few-blocks-2xh100", "allReduce with fewer blocks, before and after a block moves more"),
            ("gpu-one-shot-2", "2 GPUs before and after one-shot has kernels without loops for small calls"),
            ("gpu-one-shot-4", "4 GPUs before and after kernels with shorter chains of instructions; the ring is slower from 256 MiB"),
            ("gpu-kernel-variants-2", "shapes of each kernel on 2 GPUs, the ring with one and two sets of slots"),
            ("gpu-kernel-variants-4", "shapes of each kernel on 4 GPUs"),
            ("gpu-direct-variants", "the kernel *direct* by itself on 4 GPUs"),
            ("gpu-ring-pauses-2", "the ring with pauses between its polls"),
            ("gpu-ring-order-on-2", "the ring in the order of ranks and in that of the bus, several ranks a GPU"),
            ("gpu-copies-beside-a-kernel", "copies by the copy engine while a kernel polls"),
            ("gpu-early-starts-on-1-mps", "what it costs that 3 and 4 ranks of one GPU leave room for each other"),
            ("gpu-stress-2", "calls with random delays on 2 GPUs, every word checked"),
            ("gpu-stress-4", "the same on 4 GPUs, before later changes of kernels"),
            ("gpu-stress-8-on-2", "the same with 8 ranks on 2 GPUs"),
            ("gpu-sanitizer-2", "compute-sanitizer, memcheck and racecheck, on 2 GPUs"),
            ("gpu-types-on-2-mps", "every type, operator and algorithm with up to 16 ranks on 2 GPUs"),
            ("nccl-api-on-1-mps", "nccl-tests, vLLM's calls and CuPy over libgdrx-nccl.so, 2 and 4 ranks on one H100"),
            ("gpu-collectives-on-1-mps", "every collective that has kernels, 2, 4 and 8 ranks on one H100"),
            ("gpu-collectives-on-2", "the same on two H100"),
            ("gpu-tests-on-1", "the tests of `tests/gpu` on one GPU"),
            ("gpu-tests-on-2", "the same on two H100"),
            ("gpu-tests-on-2xh200", "the same on two H200, with PyTorch's and MPI programs' tests")))


def divided():
    run = load("gpu-crowd-2xh200")
    rows = [(row["communicators"] * row["processes"], row["processes"], row["bytes"], "graphs" if row["graphs"] else "streams",
             row["rounds"], f"{row['ranks_finished']} of {row['ranks']}", row["wrong"], f"{row['seconds']:.1f}") for row in run["rows"]]
    return ["## Communicators that share the GPUs", "",
            "Their calls are in another order on each rank, every collective in turn. Each communicator has a rank on each of two GPUs.", ""] + \
        table(["communicators", "processes", "bytes", "<in", "rounds", "ranks that ended", "wrong", "time (s)"], rows) + sources("gpu-crowd-2xh200") + \
        ["The build before the GPU is divided, and the one behind. One communicator. In graphs:", ""] + compared(load("ab-turns-gpu-graph")) + \
        ["In streams:", ""] + compared(load("ab-turns-gpu-stream")) + sources_of_builds("ab-turns-gpu-graph", "ab-turns-gpu-stream")


COLLECTIVES = ("allreduce", "allgather", "reducescatter", "broadcast", "reduce", "alltoall", "alltoallv", "gather", "scatter", "sendrecv")


def every_collective():
    text = ["## Every collective", "",
            "A rank a GPU, float, out of place, beside NCCL 2.28 with NVLS off.",
            "A cell has gdrx's time in microseconds, and how many times that the faster of both ways of NCCL takes.", ""]
    text += collectives_of(2, "graph", "gpu-2xh200-{}")
    text += ["gdrx moved runs of 4 MiB and more in bulk then. Two GPUs move them by slots since:",
             f"{link('gpu-large-moves-2xh200', ending='txt')} has both beside each other.", ""]
    text += collectives_of(2, "stream", "gpu-2xh200-{}-stream", COLLECTIVES[1:])
    text += collectives_of(2, "graph, bfloat16", "gpu-2xh200-{}-bf16", COLLECTIVES[1:])
    text += collectives_of(2, "graph, 32 blocks for gdrx and 32 for NCCL", "gpu-2xh200-{}-equal")
    text += collectives_of(4, "graph", "gpu-4xh200-{}", COLLECTIVES[1:])
    text += collectives_of(4, "stream", "gpu-4xh200-{}-stream", COLLECTIVES[1:])
    text += collectives_of(4, "graph, 32 blocks for gdrx and 32 for NCCL", "gpu-4xh200-{}-equal")
    return text + send_and_receive()


def collectives_of(ranks, how, name, collectives=COLLECTIVES):
    """A table; a collective's sizes are whole numbers of blocks, so those of a row may differ."""
    names = [name.format(collective) for collective in collectives]
    runs = [load(one) for one in names]
    columns = [right(run, ranks=ranks) for run in runs]
    rows = []
    for cells in zip(*columns):
        size = max(row["bytes"] for row in cells)
        rows.append((size, *(f"{row['time_us']['p50']:.1f}, {nccl_ratio(row):.2f}" for row in cells)))
    return [f"{ranks} {runs[0]['gpu']}, {how}:", ""] + table(["bytes", *collectives], rows) + sources(*names)


def send_and_receive():
    names = [f"gpu-sendrecv-{ranks}x-on-1-mps-{mode}" for ranks in (2, 4) for mode in ("graph", "stream")]
    by_size = [{row["bytes"]: row for row in right(load(name))} for name in names]
    return ["Ranks that share one H100 under CUDA's multi-process service, in microseconds: each sends to the next, and receives.", ""] + \
        table(["bytes", "2 ranks, graph", "2, stream", "4, graph", "4, stream"],
              [(size, *(f"{rows[size]['time_us']['p50']:.2f}" for rows in by_size)) for size in by_size[0]]) + sources(*names)


def shared():
    rows, said = [], []
    for ranks in (4, 8):
        run = load(f"gpu-{ranks}-on-2-mps")
        said.append(f"- {ranks} ranks on {run['gpus']} GPUs: {beside_nccl(right(run, ranks=ranks))}")
        for row in run["rows"]:
            rows.append((f"{ranks}, {run['gpus']}", row["bytes"], f"{row['time_us']['p50']:.2f}", f"{row['vs']['nccl']['p50']:.2f}",
                         f"{row['vs']['nccl_registered']['p50']:.2f}", f"{nccl_ratio(row):.2f}"))
    return ["## Several ranks on one GPU", "",
            "Ranks share GPUs under CUDA's multi-process service: rank r has GPU r % 2. Float, graph.",
            "This shows the algorithms of 4 and 8 ranks, not the speed of 4 and 8 GPUs.", ""] + said + [""] + \
        table(["ranks, GPUs", "bytes", "gdrx p50 (us)", "NCCL p50 (us)", "NCCL registered p50 (us)", "better NCCL / gdrx"], rows) + \
        sources("gpu-4-on-2-mps", "gpu-8-on-2-mps")


def registered():
    by_size = {}
    for row in right(load("gpu-2-registered")):
        by_size.setdefault(row["bytes"], {})[row["buffers_registered"]] = row
    return ["## Registered buffers", "", "2 GPUs, graph, gdrx with and without registered buffers:", ""] + \
        table(["bytes", "<plain", "us", "<registered", "us"],
              [(number, both[False]["algorithm"], f"{both[False]['time_us']['p50']:.2f}", both[True]["algorithm"],
                f"{both[True]['time_us']['p50']:.2f}") for number, both in by_size.items()]) + sources("gpu-2-registered")


def links():
    run = load("gpu-2-p2p")["runs"][0]
    ways = [("copy engine, one way", "copy_gbytes"), ("copy engine, both ways at once", "copy_both_gbytes"),
            ("kernel stores (64 blocks of 512), one way", "store_gbytes"),
            ("kernel stores, both ways at once", "store_both_gbytes"), ("kernel loads, one way", "load_gbytes"),
            ("kernel loads, both ways at once", "load_both_gbytes")]
    trip = max(pair["round_trip_us"] for pair in run["pairs"])
    return ["## What the link gives", "", "`gdrx perf --p2p` measures the link. A row is the slowest pair's.", ""] + \
        table(["<between 2 GPUs", "GB/s in each direction"],
              [(name, f"{min(pair[key] for pair in run['pairs']):.1f}") for name, key in ways] +
              [("stores of all GPUs at once", f"{run['store_all_gbytes']:.1f}")]) + \
        [f"A flag goes there and back by kernels in {trip:.2f} us.", ""] + sources("gpu-2-p2p")

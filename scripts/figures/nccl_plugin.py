# SPDX-License-Identifier: Apache-2.0
"""NCCL over the plugin."""
from .common import link, load, printed, records, right, sources, table

NETWORKS = ("socket", "gdrx", "gdrx-gpu")


def plugin_rows(gpus):
    """The better of two runs of each network, by bytes."""
    best = {}
    for network in NETWORKS:
        for number in (1, 2):
            for row in right(load(f"nccl-{gpus}xh200-{network}.{number}".replace(" ", "-"))):
                if row["collective"] == "all_reduce" and row["type"] == "float":
                    best[row["bytes"], network] = min(row, best.get((row["bytes"], network), row), key=lambda one: one["us"])
    for number in sorted({key[0] for key in best}):
        three = [best[number, network] for network in NETWORKS]
        yield (gpus, number, *(f"{row['us']:.1f}" for row in three), *(f"{row['bus_gbs']:.2f}" for row in three),
               *(f"{three[0]['us'] / row['us']:.2f}" for row in three[1:]))


def checked_runs(names):
    """Runs that are there for their sums, not for their times."""
    rows = []
    for name in names:
        for run in load(name)["runs"]:
            rows.append((link(name), len({row["collective"] for row in run["rows"]}),
                         len(run["rows"]), sum(row["wrong"] for row in run["rows"]), f"`{run['command']}`"))
    return table(["<run", "collectives", "rows", "wrong", "<command"], rows)


def nccl_plugin():
    groups = ("2", "4", "8 on 2")
    names = [f"nccl-{gpus}xh200-{network}.{number}".replace(" ", "-") for gpus in groups for network in NETWORKS for number in (1, 2)]
    checked = ("nccl-2xh200-1g", "nccl-4xh200-1g", "nccl-2xh200-only-one-version", "nccl-2.30-2xh200", "nccl-8-on-2xh200",
               "nccl-2xh200-host-protocols")
    return ["NCCL's all-reduce of float over gdrx's plugin, beside NCCL's own Socket network (NCCL 2.28.3).",
            "All ranks are on one machine. Each is a host of its own to NCCL, without peer-to-peer and shared memory.",
            "*GPU to GPU* is `GDRX_NET_GPU=1`. *8 on 2* says that 8 ranks share 2 GPUs. A row is the better of two runs.",
            "The runs of 4 GPUs are from before threads copy large messages.", ""] + \
        table(["GPUs", "bytes", "Socket (us)", "gdrx, host memory (us)", "gdrx, GPU to GPU (us)", "Socket (GB/s)", "host (GB/s)",
               "GPU (GB/s)", "Socket / host", "Socket / GPU"], [row for gpus in groups for row in plugin_rows(gpus)]) + \
        sources(*names) + ["## Runs that check every element", ""] + checked_runs(checked) + sources(*checked) + \
        ["## Between two guests with soft-RoCE", "",
         "`net_conformance --bench` drives the plugin beside `ib_write_bw`, 32 messages under way, from and into one buffer.",
         "*As NCCL calls it*: both ends call `test()` without a pause, and the plugin naps.",
         "*No naps* (`GDRX_NET_NAP=0`): the receiver sleeps as that of `ib_write_bw` does, or both ends poll.",
         "The guests' NICs are emulated by the two cores that the ends run on.", ""] + printed("softroce-net-perf", "net-plugin-softroce") + \
        sources("net-plugin-softroce") + ["## Other records", ""] + records((
            ("nccl-2xh200-copy-threads", "host memory by the number of threads that copy and of NCCL's channels"),
            ("nccl-2xh200-shared-host", "the same where 4 and 8 ranks share 2 GPUs, and what the host's memory gives"),
            ("nccl-4xh200-channels", "GPU to GPU by what NCCL is told of the speed"),
            ("nccl-2xh200-protocols", "GPU to GPU by NCCL's protocol"),
            ("nccl-2xh200-pytorch", "losses of a PyTorch training over three networks, bit for bit"),
            ("gpu-copies-beside-a-kernel", "small copies of the copy engine while a kernel polls"),
            ("net-plugin-naps-softroce", "latency and lengths of naps over soft-RoCE"),
            ("net-plugin-trials-softroce", "what was tried over soft-RoCE without naps")))

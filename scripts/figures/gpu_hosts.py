# SPDX-License-Identifier: Apache-2.0
"""GPUs of several hosts."""
from .common import best_nccl, load, records, right, sources, table


def gpu_hosts():
    def rows_of(names):
        rows = []
        for name, hosts in names:
            run = load(name)
            on = f" on {run['gpus']}" if "gpus" in run else ""
            for row in right(run, hosts=hosts):
                ours, theirs = row["time_us"]["p50"], best_nccl(row) if "vs" in row else None
                rows.append((f"{hosts} x {row['ranks'] // hosts}{on}", row["mode"], row["bytes"], f"{ours:.1f}",
                             f"{theirs:.1f}" if theirs else "", f"{theirs / ours:.2f}" if theirs else "", f"{row['busbw']:.2f}",
                             f"{row['host_us']:.1f}" if "host_us" in row else ""))
        return rows

    heads = ["hosts x GPUs", "<mode", "bytes", "gdrx p50 (us)", "NCCL, Socket p50 (us)", "NCCL / gdrx", "gdrx bus (GB/s)",
             "gdrx on the host (us)"]
    old = (("gpu-2-hosts", 2), ("gpu-4-hosts", 2), ("gpu-4x1-hosts", 4), ("gpu-2x4-on-2-mps", 2), ("gpu-8x1-on-2-mps", 8))
    new = (("gpu-2x1-on-1-mps-graph", 2), ("gpu-2x1-on-1-mps", 2), ("gpu-4x1-on-1-mps", 4), ("gpu-2x2-on-1-mps-graph", 2),
           ("gpu-2x2-on-1-mps", 2), ("gpu-2x2-on-1-mps-reproducible", 2), ("gpu-2x1-on-1-mps-one-cpu", 2))
    return ["Allreduce between the GPUs of several hosts. All ranks are on one machine, and take it for several hosts.",
            "gdrx does so by `GDRX_HOST_ID`, NCCL by `NCCL_HOSTID` without peer-to-peer and shared memory.",
            "gdrx goes through pinned memory over UCX, NCCL over its Socket network in the same processes.",
            "No physical network is part of these figures. *On 2* says that the ranks share 2 GPUs.", "",
            "## Host kernels in a stream of the communicator's own", "",
            "These rows are from before all of a call is in the caller's stream. The rows of 4 GPUs end at 32 MiB.", ""] + \
        table(heads, rows_of(old)) + sources(*[name for name, _ in old]) + \
        ["## All of a call in the caller's stream", "",
         "Ranks share one GPU under CUDA's multi-process service. `reproducible` sets `GDRX_REPRODUCIBLE=1`.",
         "`one-cpu` binds each rank to one core.", ""]  + \
        sum(([f"### {name}", ""] + table(heads, rows_of([(name, hosts)])) for name, hosts in new), []) + \
        sources(*[name for name, _ in new]) + ["## Other records", ""] + records((
            ("gpu-copies-on-1", "one GPU a host, by the copy engine and by kernels, before small calls are one kernel"),
            ("gpu-relay-on-1", "small calls as several launches and as one kernel, and what a launch costs the host"),
            ("gpu-staged-2x1-on-1-mps", "calls that are staged, by a host that waits and in their streams"),
            ("gpu-tests-on-1", "the tests of `tests/gpu` on one GPU, hosts among them")))

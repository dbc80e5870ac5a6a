# SPDX-License-Identifier: Apache-2.0
"""Transport: one endpoint, without a collective."""
import re

from .common import ROOT, load, printed, records, sources, table


def transport():
    steps = {(step, number): limit for step, number, limit in
             re.findall(r"^(\w+) (\d+) (\d+) ", (ROOT / "tests/fabric/cost.sh").read_text(), re.M)}
    tcp = load("tcp-vs-ucx")
    return ["Figures of one endpoint: one sender, one receiver, no collective. No NIC was measured yet.", "",
            "## TCP beside UCX's TCP", "",
            "`net_perf` between two network namespaces: over UCX's TCP, gdrx's TCP in clear text, and gdrx's with TLS.",
            "A figure is the median of its rounds, a ratio the median of the rounds' own ratios.",
            "The bound is TLS / plain if encryption took no more than OpenSSL's cipher alone.",
            "Of `write_lat` the cipher seals and opens one record between two messages, which is added to plain's time.",
            "Of `write_bw` each end seals or opens every byte besides. Ends that wait for each other do better.", ""] + \
        table(["<test", "bytes", "<unit", "UCX", "plain", "TLS", "plain / UCX", "TLS / plain", "bound"],
              [(row["test"], row["bytes"], row["unit"], f"{row['ucx']:.1f}", f"{row['plain']:.1f}", f"{row['tls']:.1f}",
                f"{row['plain/ucx']:.2f}", f"{row['tls/plain']:.2f}",
                f"{row['bound']:.2f}" if "bound" in row else "") for row in tcp["rows"]]) + sources("tcp-vs-ucx") + \
        ["## Verbs beside perftest, over soft-RoCE", "",
         "`net_perf` writes with immediate, takes completions and keeps credits. perftest's writes have none of these.",
         "Both ends are in one guest. On a loaded machine the rounds differ by a factor of hundreds and say nothing.", ""] + \
        printed("softroce-perf", "net-perf-softroce") + sources("net-perf-softroce") + \
        ["## What a message costs", "",
         "Limits of a test, in instructions of gdrx's own without the NIC's provider, on one simulated NIC with one queue pair.",
         "`tests/fabric/cost.sh build/release/bin/verbs_cost` counts them with callgrind.", ""] + \
        table(["<step", "at most, 8 bytes", "64 KiB, registered"],
              [(name, steps[step, "8"], steps.get((step, "65536"), "")) for name, step in
               (("`Endpoint::post`", "post"), ("the receiver's `poll` that reports it", "receive"),
                ("the sender's `poll` that reports it done", "complete"), ("a `poll` with nothing to do, one peer", "idle"))]) + \
        records((("verbs-idle-poll", "an idle poll of 1 and of 1,000 simulated peers, before and after a list of the peers that have work"),))

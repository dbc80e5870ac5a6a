# SPDX-License-Identifier: Apache-2.0
"""Transport: one endpoint, without a collective."""
import re

from .common import ROOT, load, printed, records, sources, table


def encryption():
    tls = load("tls-cost")
    cipher = [f"{speed:.0f} MiB/s in records of {size} bytes" for size, speed in tls["aes-128-gcm MiB/s"].items()]
    return ["## What encryption costs", "",
            "`tls_cost` has four connections between two processes in two network namespaces, which take turns every few",
            "milliseconds: gdrx's TCP in clear text and with TLS, and bare sockets without and with OpenSSL's cipher.",
            "The bare ends know every size ahead. They only send, receive, seal and open, and check no head.",
            "The bound is the best ratio that the cipher leaves. Up to 4 KiB it is plain's time of a message and what the",
            "cipher adds to that of bare sockets, over plain's time. Above, it is the rate of bare sockets with the cipher",
            "over plain's rate. A ratio is the median of the rounds' own ratios.",
            "gdrx checks a message's head before it places the rest, so that a small message is copied once at each end.",
            "The bare ends copy nothing. These copies and noise lie between a ratio and its bound.",
            f"`openssl speed -evp aes-128-gcm` gave in the same minutes {', '.join(cipher)}.",
            f"The load of the machine was {tls['load']:.0f}: other builds ran. The ends had a real-time priority.", ""] + \
        table(["<test", "bytes", "<unit", "plain", "TLS", "bare", "bare, cipher", "TLS / plain", "bound", "rounds"],
              [(row["test"], row["bytes"], row["unit"], *(f"{row[way]:.1f}" for way in ("plain", "tls", "bare_plain",
                                                                                       "bare_tls")),
                f"{row['tls/plain']:.2f}", f"{row['bound']:.2f}", row["rounds"]) for row in tls["rows"]]) + \
        [f"The kernel's congestion control was `{tls['congestion control']}`. BBR paces a sender that gives bytes in bursts, as",
         "an encrypting one does: timers interrupt it, which costs plain nothing.", ""] + sources("tls-cost")


def transport():
    steps = {(step, number): limit for step, number, limit in
             re.findall(r"^(\w+) (\d+) (\d+) ", (ROOT / "tests/fabric/cost.sh").read_text(), re.M)}
    tcp = load("tcp-vs-ucx")
    return ["Figures of one endpoint: one sender, one receiver, no collective. No NIC was measured yet.", "",
            "## TCP beside UCX's TCP", "",
            "`net_perf` between two network namespaces: over UCX's TCP, and over gdrx's in clear text.",
            "A figure is the median of its rounds, the ratio the median of the rounds' own ratios.", ""] + \
        table(["<test", "bytes", "<unit", "UCX", "gdrx, plain", "plain / UCX"],
              [(row["test"], row["bytes"], row["unit"], f"{row['ucx']:.1f}", f"{row['plain']:.1f}",
                f"{row['plain/ucx']:.2f}") for row in tcp["rows"]]) + sources("tcp-vs-ucx") + encryption() + \
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

# SPDX-License-Identifier: Apache-2.0
"""Soft-RoCE devices of the running kernel."""
import json, os, platform, subprocess

from softroce.common import Failure, Unable, say
from softroce.kernel import command


def native(cluster, options):
    """Soft-RoCE devices of the running kernel, on its own netdevs."""
    if os.path.exists(cluster.path("cluster.json")):
        raise Failure(f"cluster '{cluster.name}' is up already: softroce-cluster down")
    if os.getuid():
        raise Failure("--native needs root: it adds RDMA devices")
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    if subprocess.run(["modprobe", "rdma_rxe"], capture_output=True).returncode and not os.path.isdir("/sys/module/rdma_rxe"):
        raise Unable(f"--native: the running kernel ({platform.release()}) has no rdma_rxe; without --native, guests have it")
    netdevs = options.netdev.split(",") if options.netdev else []
    if not netdevs:
        for link in json.loads(command(["ip", "-j", "addr"], 10)):
            if link["ifname"] != "lo" and link["operstate"] in ("UP", "UNKNOWN") and any(a["family"] == "inet" for a in link["addr_info"]):
                netdevs.append(link["ifname"])
        netdevs = netdevs[:2]
    if not netdevs:
        raise Failure("--native: no netdev that is up and has an address; name some with --netdev")
    os.makedirs(cluster.folder, 0o700, exist_ok=True)
    cluster.facts = {"native": True, "devices": [], "pids": {}, "guests": 0, "rails": 0}
    for index, netdev in enumerate(netdevs):
        try:
            command(["rdma", "link", "add", f"gdrxe{index}", "type", "rxe", "netdev", netdev], 10)
        except Failure:
            cluster.save()
            cluster.down(quiet=True)
            raise
        cluster.facts["devices"].append(f"gdrxe{index}")
        cluster.save()
    say(f"native: {', '.join(f'{d} on {n}' for d, n in zip(cluster.facts['devices'], netdevs))}")

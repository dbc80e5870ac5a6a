#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""speed.py GDRX: the whole command, from its start to its last line, on a snapshot of 8 GPUs and 8 NICs: under 100 ms."""
import os, pathlib, subprocess, sys, tempfile, time

gdrx, limit, rounds = sys.argv[1], 0.1, 40


def host(root):
    """Four switches of two GPUs and two NICs, with the files that a snapshot takes of each."""

    def pci(chain, vendor, kind):
        at = root / "sys/devices" / chain
        at.mkdir(parents=True)
        values = {"class": kind, "vendor": vendor, "device": "0x0001", "numa_node": "0", "local_cpulist": "0-63",
                  "max_link_speed": "32.0 GT/s PCIe", "current_link_speed": "32.0 GT/s PCIe",
                  "max_link_width": "16", "current_link_width": "16", "config": "x" * 4096}
        for name, value in values.items():
            (at / name).write_text(value + "\n")
        links = root / "sys/bus/pci/devices"
        links.mkdir(parents=True, exist_ok=True)
        (links / at.name).symlink_to(f"../../../devices/{chain}")
        return chain

    infiniband = root / "sys/class/infiniband"
    infiniband.mkdir(parents=True)
    for switch in range(4):
        bus = 0x10 + 0x20 * switch
        up = pci(pci(f"pci0000:{bus:02x}/0000:{bus:02x}:01.0", "0x8086", "0x060400") + f"/0000:{bus + 1:02x}:00.0",
                 "0x1000", "0x060400")
        for slot in range(4):
            at = f"{pci(f'{up}/0000:{bus + 2:02x}:0{slot}.0', '0x1000', '0x060400')}/0000:{bus + 3 + slot:02x}:00.0"
            if slot % 2:
                pci(at, "0x10de", "0x030200")
                continue
            name = f"mlx5_{2 * switch + slot // 2}"
            folder = root / "sys/devices" / pci(at, "0x15b3", "0x020700") / "infiniband" / name
            (folder / "ports/1").mkdir(parents=True)
            for file, value in {"rate": "400 Gb/sec (4X NDR)", "state": "4: ACTIVE", "link_layer": "InfiniBand"}.items():
                (folder / "ports/1" / file).write_text(value + "\n")
            (infiniband / name).symlink_to(f"../../devices/{at}/infiniband/{name}")
    node = root / "sys/devices/system/node/node0"
    node.mkdir(parents=True)
    (node / "cpulist").write_text("0-63\n")


with tempfile.TemporaryDirectory() as folder:
    root = pathlib.Path(folder)
    host(root / "host")
    subprocess.run([gdrx, "snapshot", "--root", root / "host", root / "host.tar.gz"], check=True, stdout=subprocess.DEVNULL)
    best = float("inf")
    for done in range(rounds):  # the machine may be busy with something else
        begin = time.perf_counter()
        shown = subprocess.run([gdrx, "topo", root / "host.tar.gz"], capture_output=True, text=True)
        best = min(best, time.perf_counter() - begin)
        rows = [line.split() for line in shown.stdout.splitlines() if line.startswith("GPU")]
        pix = sum(row[1:17].count("PIX") for row in rows)
        if shown.returncode or len(rows) != 8 or pix != 8 * 3:  # a GPU and two NICs are near each GPU
            sys.exit(f"FAILED: status {shown.returncode}, {len(rows)} GPUs, {pix} PIX\n{shown.stdout}{shown.stderr}")
        if best < limit:
            break
print(f"{1000 * best:.0f} ms, the best of {done + 1}")
sys.exit(best >= limit and f"FAILED: {1000 * best:.0f} ms")

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""machines.py FOLDER: machines as we know their kind, links of all being PCIe 5, each as a folder with sys/ and proc/, or as the cloud's
file. Buses, NUMA nodes and CPUs of the DGX A100 and H100 are those of NVIDIA's user guides."""
import pathlib, sys

NVIDIA, MELLANOX, INTEL, BROADCOM, AMD, QEMU = "0x10de", "0x15b3", "0x8086", "0x1000", "0x1002", "0x1b36"
GPU, NIC, BRIDGE, VGA, ACCELERATOR = "0x030200", "0x020700", "0x060400", "0x030000", "0x120000"


class Host:
    def __init__(self, root):
        self.root = root
        self.links = []
        (root / "sys/bus/pci/devices").mkdir(parents=True)

    def write(self, path, text):
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{text}\n")

    def node(self, number, package, cores, distances=None):
        """cores: a list of the CPUs of each core."""
        cpus = sorted(cpu for core in cores for cpu in core)
        folder = f"sys/devices/system/node/node{number}"
        self.write(f"{folder}/cpulist", ",".join(map(str, cpus)))
        if distances:
            self.write(f"{folder}/distance", " ".join(map(str, distances)))
        for core in cores:
            for cpu in core:
                topology = f"sys/devices/system/cpu/cpu{cpu}/topology"
                self.write(f"{topology}/thread_siblings_list", ",".join(map(str, core)))
                self.write(f"{topology}/physical_package_id", package)

    def sockets(self, count, cores, threads=2):
        """Threads of a core are numbered a machine's cores apart."""
        for socket in range(count):
            first = socket * cores
            self.node(socket, socket, [[core + t * count * cores for t in range(threads)] for core in range(first, first + cores)],
                      [10 if other == socket else 21 for other in range(count)])

    def pci(self, chain, vendor, kind, numa):
        at = f"sys/devices/{chain}"
        for name, text in {"class": kind, "vendor": vendor, "device": "0x0001", "numa_node": numa, "max_link_speed": "32.0 GT/s PCIe",
                           "current_link_width": 16}.items():
            self.write(f"{at}/{name}", text)
        link = self.root / "sys/bus/pci/devices" / chain.rsplit("/", 1)[1]
        if not link.is_symlink():
            link.symlink_to(f"../../../devices/{chain}")
        return chain

    def gpu(self, chain, numa, sm, model, nvlinks=0, c2c=None):
        self.pci(chain, NVIDIA, GPU, numa)
        bus = chain.rsplit("/", 1)[1]
        self.links.append(f"gpu {bus} {sm} {model}")
        if nvlinks:
            self.links.append(f"nvlink {bus} switch {nvlinks} 25")
        if c2c:
            self.links.append(f"c2c {bus} {c2c}")

    def nic(self, chain, numa, name, rate):
        self.pci(chain, MELLANOX, NIC, numa)
        at = f"sys/devices/{chain}/infiniband/{name}"
        for file, text in {"rate": f"{rate} Gb/sec", "link_layer": "InfiniBand", "state": "4: ACTIVE"}.items():
            self.write(f"{at}/ports/1/{file}", text)
        (self.root / at / "device").symlink_to("../..")
        (self.root / "sys/class/infiniband").mkdir(parents=True, exist_ok=True)
        (self.root / f"sys/class/infiniband/{name}").symlink_to(f"../../devices/{chain}/infiniband/{name}")

    def switch(self, root, bus, numa, ports, vendor=BROADCOM):
        """A host bridge's root port and a switch; gives the chains of its downstream ports."""
        port = self.pci(f"{root}/0000:{bus:02x}:01.0", INTEL, BRIDGE, numa)
        up = self.pci(f"{port}/0000:{bus + 1:02x}:00.0", vendor, BRIDGE, numa)
        return [self.pci(f"{up}/0000:{bus + 2:02x}:{i:02x}.0", vendor, BRIDGE, numa) for i in range(ports)]

    def close(self):
        self.write("gdrx/links", "\n".join(self.links))


def dgx_a100(host):
    near = [[10 if a == b else 12 if a // 4 == b // 4 else 32 for b in range(8)] for a in range(8)]
    for node in range(8):
        host.node(node, node // 4, [[core, core + 128] for core in range(16 * node, 16 * node + 16)], near[node])
    nics = iter(["mlx5_0", "mlx5_1", "mlx5_2", "mlx5_3", "mlx5_6", "mlx5_7", "mlx5_8", "mlx5_9"])
    for root, numa, gpus, cards in [(0x00, 3, (0x07, 0x0f), (0x0c, 0x12)), (0x40, 1, (0x47, 0x4e), (0x4b, 0x54)),
                                    (0x80, 7, (0x87, 0x90), (0x8d, 0x94)), (0xb0, 5, (0xb7, 0xbd), (0xba, 0xcc))]:
        for port, devices in zip(host.switch(f"pci0000:{root:02x}", root, numa, 2), (gpus, cards)):  # two switches below one
            bus = root + 3 + (devices is cards)
            up = host.pci(f"{port}/0000:{bus:02x}:00.0", BROADCOM, BRIDGE, numa)
            for i, device in enumerate(devices):
                down = host.pci(f"{up}/0000:{bus:02x}:{8 + i:02x}.0", BROADCOM, BRIDGE, numa)
                if devices is gpus:
                    host.gpu(f"{down}/0000:{device:02x}:00.0", numa, 80, "NVIDIA A100-SXM4-80GB", 12)
                else:
                    host.nic(f"{down}/0000:{device:02x}:00.0", numa, next(nics), 200)
    for root, numa, bus, first in [(0x60, 2, 0x61, 4), (0xe0, 6, 0xe1, 10)]:  # storage
        port = host.pci(f"pci0000:{root:02x}/0000:{root:02x}:01.1", INTEL, BRIDGE, numa)
        for i in range(2):
            host.nic(f"{port}/0000:{bus:02x}:00.{i}", numa, f"mlx5_{first + i}", 200)


def eight_hoppers(host, model, cards, storage=False):
    """A switch for each GPU with its NIC; cards: their names."""
    for i, (nic, gpu) in enumerate([(0x18, 0x1b), (0x40, 0x43), (0x4f, 0x52), (0x5e, 0x61), (0x9a, 0x9d), (0xc0, 0xc3), (0xce, 0xd1),
                                    (0xdc, 0xdf)]):
        numa = i // 4
        ports = host.switch(f"pci0000:{nic - 3:02x}", nic - 3, numa, 2)
        host.nic(f"{ports[0]}/0000:{nic:02x}:00.0", numa, cards[i], 400)
        host.gpu(f"{ports[1]}/0000:{gpu:02x}:00.0", numa, 90, model, 18)
    for numa, bus, first in [(0, 0x29, 1), (1, 0xaa, 7)] if storage else []:
        port = host.pci(f"pci0000:{bus - 1:02x}/0000:{bus - 1:02x}:01.0", INTEL, BRIDGE, numa)
        for i in range(2):
            host.nic(f"{port}/0000:{bus:02x}:00.{i}", numa, f"mlx5_{first + i}", 200)


def dgx_h100(host):
    host.sockets(2, 56)
    eight_hoppers(host, "NVIDIA H100 80GB HBM3", [f"mlx5_{i}" for i in (0, 3, 4, 5, 6, 9, 10, 11)], storage=True)


def hgx_h200_8(host):
    host.sockets(2, 48)
    eight_hoppers(host, "NVIDIA H200", [f"mlx5_{i}" for i in range(8)])


def hgx_h200_4(host):
    """A switch for two GPUs and their one NIC."""
    host.sockets(2, 48)
    for i in range(4):
        bus, numa = 0x10 + 0x20 * i, i // 2
        ports = host.switch(f"pci0000:{bus:02x}", bus, numa, 3)
        for j in range(2):
            host.gpu(f"{ports[j]}/0000:{bus + 4 + j:02x}:00.0", numa, 90, "NVIDIA H200", 18)
        host.nic(f"{ports[2]}/0000:{bus + 8:02x}:00.0", numa, f"mlx5_{i}", 400)


def gb200_tray(host):
    """Two Grace; each GPU's memory is a NUMA node without CPUs, nearest to its own Grace."""
    distances = {0: "10 40 80 80 120 120", 1: "40 10 120 120 80 80", 2: "80 120 10 80 120 120", 10: "80 120 80 10 120 120",
                 18: "120 80 120 120 10 80", 26: "120 80 120 120 80 10"}
    for socket in range(2):
        host.node(socket, socket, [[core] for core in range(72 * socket, 72 * socket + 72)])
    for number, text in distances.items():
        host.write(f"sys/devices/system/node/node{number}/distance", text)
        if number > 1:
            host.write(f"sys/devices/system/node/node{number}/cpulist", "")
    for i, (gpu, nic) in enumerate([("0008", "0000"), ("0009", "0002"), ("0018", "0010"), ("0019", "0012")]):
        port = host.pci(f"pci{gpu}:00/{gpu}:00:00.0", NVIDIA, BRIDGE, i // 2)
        host.gpu(f"{port}/{gpu}:01:00.0", 2 + 8 * i, 100, "NVIDIA GB200", 18, "10 400")
        port = host.pci(f"pci{nic}:00/{nic}:00:00.0", NVIDIA, BRIDGE, i // 2)
        host.nic(f"{port}/{nic}:03:00.0", i // 2, f"mlx5_{i}", 400)


def gh200(host):
    """One Grace and its Hopper, whose memory is a NUMA node without CPUs; a NIC on a root port."""
    host.node(0, 0, [[core] for core in range(72)])
    for number, text in {0: "10 80", 1: "80 10"}.items():
        host.write(f"sys/devices/system/node/node{number}/distance", text)
    host.write("sys/devices/system/node/node1/cpulist", "")
    host.gpu(host.pci("pci0009:00/0009:00:00.0", NVIDIA, BRIDGE, 0) + "/0009:01:00.0", 1, 90, "NVIDIA GH200 480GB", 0, "10 400")
    host.nic(host.pci("pci0000:00/0000:00:00.0", NVIDIA, BRIDGE, 0) + "/0000:01:00.0", 0, "mlx5_0", 400)


def pcie_2_sockets(host):
    """Four GPUs on root ports, two a socket; the only NIC is on socket 0."""
    host.sockets(2, 32)
    for i in range(4):
        bus, numa = 0x20 + 0x30 * i, i // 2
        host.gpu(host.pci(f"pci0000:{bus:02x}/0000:{bus:02x}:01.0", INTEL, BRIDGE, numa) + f"/0000:{bus + 1:02x}:00.0", numa, 89, "NVIDIA L40S")
    host.nic(host.pci("pci0000:20/0000:20:02.0", INTEL, BRIDGE, 0) + "/0000:22:00.0", 0, "mlx5_0", 200)


def cloud_flat(host):
    """QEMU's root ports of one bus, no NUMA node of any device."""
    host.sockets(2, 48, threads=1)
    host.write("proc/cpuinfo", "flags : fpu hypervisor")
    for i in range(8):
        port = host.pci(f"pci0000:00/0000:00:{i + 1:02x}.0", QEMU, BRIDGE, -1)
        host.gpu(f"{port}/0000:{i + 1:02x}:00.0", -1, 90, "NVIDIA H200", 18)
        port = host.pci(f"pci0000:00/0000:00:{i + 16:02x}.0", QEMU, BRIDGE, -1)
        host.nic(f"{port}/0000:{i + 16:02x}:00.0", -1, f"mlx5_{i}", 400)


def cloud_file():
    """The same machine in the file that the cloud gives for it: four switches of two GPUs and two NICs."""
    text = '<system version="1">\n'
    for numa, mask in enumerate(["00000000,0000ffff,ffffffff", "ffffffff,ffff0000,00000000"]):
        text += f'  <cpu numaid="{numa}" affinity="{mask}" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143">\n'
        for switch in range(2 * numa, 2 * numa + 2):
            text += f'    <pci busid="ffff:{switch + 1:02x}:00.0" class="0x060400" link_speed="32.0 GT/s PCIe" link_width="16">\n'
            for device in (2 * switch, 2 * switch + 1):
                text += (f'      <pci busid="0000:{device + 1:02x}:00.0" class="0x030200" link_speed="32.0 GT/s PCIe" link_width="16">'
                         f'<gpu dev="{device}" sm="90" rank="{device}" gdr="1"><nvlink target="ffffffff:ffff:ff" count="18" tclass="0x068000"/>'
                         f'</gpu></pci>\n')
            for device in (2 * switch, 2 * switch + 1):
                text += (f'      <pci busid="0000:{device + 16:02x}:00.0" class="0x020700" link_speed="32.0 GT/s PCIe" link_width="16">'
                         f'<nic><net name="mlx5_{device}" dev="{device}" speed="400000" port="1" guid="0x{device + 1:x}"/></nic></pci>\n')
            text += "    </pci>\n"
        text += "  </cpu>\n"
    return text + "</system>\n"


def mi300x(host):
    """Each GPU shows two bridges of its own below the board's switch, which it shares with its NIC."""
    host.sockets(2, 96)
    for i in range(8):
        bus, numa = 0x08 + 0x18 * i, i // 4
        ports = host.switch(f"pci0000:{bus:02x}", bus, numa, 2)
        own = host.pci(f"{ports[0]}/0000:{bus + 3:02x}:00.0", AMD, BRIDGE, numa)
        own = host.pci(f"{own}/0000:{bus + 4:02x}:00.0", AMD, BRIDGE, numa)
        host.pci(f"{own}/0000:{bus + 5:02x}:00.0", AMD, ACCELERATOR, numa)
        host.nic(f"{ports[1]}/0000:{bus + 6:02x}:00.0", numa, f"rdma{i}", 400)


def workstation(host):
    """One socket, two GPUs on root ports, no RDMA."""
    host.sockets(1, 16)
    for bus, port in [(0x01, "01.1"), (0x0c, "03.1")]:
        host.gpu(host.pci(f"pci0000:00/0000:00:{port}", AMD, BRIDGE, 0) + f"/0000:{bus:02x}:00.0", 0, 89, "NVIDIA GeForce RTX 4090")


def laptop(host):
    """Four cores of two threads that are numbered beside each other, eight of one; graphics of the processor."""
    host.node(0, 0, [[2 * core, 2 * core + 1] for core in range(4)] + [[cpu] for cpu in range(8, 16)])
    host.pci("pci0000:00/0000:00:02.0", INTEL, VGA, -1)


FOLDERS = {"dgx-a100": dgx_a100, "dgx-h100": dgx_h100, "hgx-h200-8-nics": hgx_h200_8, "hgx-h200-4-nics": hgx_h200_4, "gb200-tray": gb200_tray, "gh200": gh200,
           "pcie-2-sockets": pcie_2_sockets, "cloud-flat": cloud_flat, "mi300x": mi300x, "workstation": workstation, "laptop": laptop}

target = pathlib.Path(sys.argv[1])
for name, describe in FOLDERS.items():
    machine = Host(target / name)
    describe(machine)
    machine.close()
(target / "cloud-file.xml").write_text(cloud_file())

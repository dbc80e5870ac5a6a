// SPDX-License-Identifier: Apache-2.0
// Machines that nobody here has shown us, from what is published of them, as trees of files: the
// right answer, or an honest "not known".
#include "tests/topo/sysfs_tree.hpp"

namespace gdrx::topo {
namespace {

using test::smi;
using test::way;
namespace fs = std::filesystem;

class Machine : public test::Sysfs {
 protected:
  /// Each GPU's NICs by name, a word a GPU: "mlx5_0 mlx5_3+mlx5_4".
  static std::string map_of(const Topology& topology) {
    std::string text;
    for (const auto& choices : rail_map(topology).of_gpu) {
      text += text.empty() ? "" : " ";
      for (const RailChoice& choice : choices) {
        text += (&choice == &choices.front() ? "" : "+") + topology.nics()[choice.nic].name;
      }
    }
    return text;
  }
  static std::string quality(const Topology& topology, std::size_t gpu) {
    return rail_map(topology).of_gpu[gpu].front().quality;
  }
};

// Four switches of two GPUs and two NICs, and two dual-port cards for storage on root ports.
TEST_F(Machine, DgxH100sStorageCardsAreNobodysNearest) {
  int nic_number = 0;
  for (int i = 0; i < 4; ++i) {
    const int socket = i / 2;
    const std::string root = fmt::format("pci0000:{:02x}", 0x10 + 0x20 * i);
    const auto bus = [&](int number) {
      return fmt::format("0000:{:02x}", 0x10 + 0x20 * i + number);
    };
    const std::string port = bridge(root + "/" + bus(0) + ":01.0", "0x8086", socket);
    const std::string up = bridge(port + "/" + bus(1) + ":00.0", "0x1000", socket);
    for (int j = 0; j < 4; ++j) {
      const std::string down = bridge(fmt::format("{}/{}:0{}.0", up, bus(2), j), "0x1000", socket);
      const std::string at = down + "/" + bus(3 + j) + ":00.0";
      j % 2 == 0 ? nic(at, fmt::format("mlx5_{}", nic_number++), socket) : gpu(at, socket);
    }
    if (i % 2 == 1) continue;
    const std::string storage = bridge(root + "/" + bus(0) + ":02.0", "0x8086", socket);
    for (int function = 0; function < 2; ++function) {
      nic(fmt::format("{}/{}:00.{}", storage, bus(9), function),
          fmt::format("mlx5_{}", nic_number++), socket, "200 Gb/sec (4X HDR)");
    }
  }
  const Topology topology = load();
  EXPECT_EQ(map_of(topology), "mlx5_0 mlx5_1 mlx5_4 mlx5_5 mlx5_6 mlx5_7 mlx5_10 mlx5_11");
  EXPECT_EQ(smi(topology, "GPU0", "mlx5_0"), "PIX");
  EXPECT_EQ(smi(topology, "GPU0", "mlx5_2"), "PHB");
  EXPECT_EQ(smi(topology, "GPU0", "mlx5_4"), "NODE");
  EXPECT_EQ(smi(topology, "GPU0", "mlx5_6"), "SYS");
  EXPECT_EQ(smi(topology, "mlx5_2", "mlx5_3"), "PIX");
}

class Gb200 : public Machine {
 protected:
  // Two Grace, four GPUs whose memory is a NUMA node each, a NIC for each GPU.
  void tray() const {
    const char* domains[] = {"0008", "0009", "0018", "0019"};
    const char* nic_domains[] = {"0000", "0002", "0010", "0012"};
    numa(0, "0-71", 0);
    numa(1, "72-143", 1);
    const std::vector<std::string> distances = {"10 40 80 80 120 120",  "40 10 120 120 80 80",
                                                "80 120 10 80 120 120", "80 120 80 10 120 120",
                                                "120 80 120 120 10 80", "120 80 120 120 80 10"};
    for (int i = 0; i < 4; ++i) {
      const int memory = 2 + 8 * i;
      numa(memory, "", -1);
      const std::string port = fmt::format("pci{0}:00/{0}:00:00.0", domains[i]);
      bridge(port, "0x10de", i / 2);
      gpu(fmt::format("{}/{}:01:00.0", port, domains[i]), memory);
      const std::string nic_port = fmt::format("pci{0}:00/{0}:00:00.0", nic_domains[i]);
      bridge(nic_port, "0x10de", i / 2);
      nic(fmt::format("{}/{}:03:00.0", nic_port, nic_domains[i]), fmt::format("mlx5_{}", i), i / 2);
    }
    const int nodes[] = {0, 1, 2, 10, 18, 26};
    for (std::size_t i = 0; i < 6; ++i) {
      write(fmt::format("sys/devices/system/node/node{}/distance", nodes[i]), distances[i]);
    }
  }
};

// Trap 6: nvidia-smi prints SYS for every pair of these machines.
TEST_F(Gb200, IsSysByNvidiaSmiAndNearByC2c) {
  tray();
  std::string links;
  for (const char* domain : {"0008", "0009", "0018", "0019"}) {
    links += fmt::format("gpu {0}:01:00.0 100 NVIDIA GB200\nc2c {0}:01:00.0 10 400\n", domain);
  }
  write("gdrx/links", links);
  const Topology topology = load();
  for (const char* nic : {"mlx5_0", "mlx5_1", "mlx5_2", "mlx5_3"}) {
    EXPECT_EQ(smi(topology, "GPU0", nic), "SYS") << nic;
  }
  EXPECT_EQ(way(topology, "GPU0", "mlx5_1").nccl, NcclClass::p2c);
  EXPECT_EQ(way(topology, "GPU0", "mlx5_2").nccl, NcclClass::sys);
  EXPECT_EQ(map_of(topology), "mlx5_0 mlx5_1 mlx5_2 mlx5_3");
  EXPECT_EQ(quality(topology, 0), "good: by NVLink-C2C through the CPU");
  EXPECT_FALSE(topology.hides_switches());
}

TEST_F(Gb200, KeepsToItsSocketWhereC2cIsNotKnown) {
  tray();
  const Topology topology = load();
  EXPECT_TRUE(way(topology, "GPU3", "mlx5_2").same_package);
  EXPECT_FALSE(way(topology, "GPU3", "mlx5_1").same_package);
  EXPECT_EQ(map_of(topology), "mlx5_0 mlx5_1 mlx5_2 mlx5_3");
}

TEST_F(Gb200, BindsToTheCpusNearestToTheGpusMemory) {
  tray();
  const Topology topology = load();
  EXPECT_EQ(topology.numa_of(topology.gpus()[2].node), 18) << "as the kernel has it";
  EXPECT_EQ(topology.numa_near(topology.gpus()[2].node), 1);
  EXPECT_EQ(topology.cpus_near(topology.gpus()[2].node), "72-143");
  EXPECT_EQ(topology.cpus_near(topology.gpus()[1].node), "0-71");
}

TEST_F(Gb200, IsExplainedByTheCpusNode) {
  tray();
  const Topology topology = load();
  const auto words = [&](const char* gpu, const char* nic) {
    std::string all;
    for (const Hop& hop : hops(topology, *topology.find(gpu), *topology.find(nic))) {
      all += hop.what + "\n";
    }
    return all;
  };
  EXPECT_NE(words("GPU3", "mlx5_2").find("pci0019:00, NUMA node 1\nthe CPU's fabric, in one NUMA"),
            std::string::npos)
      << words("GPU3", "mlx5_2");
  EXPECT_NE(words("GPU3", "mlx5_1").find("between NUMA nodes (speed"), std::string::npos);
}

TEST_F(Machine, MemoryWithoutDistancesIsNearNothing) {
  numa(0, "0-31", 0);
  numa(2, "", -1);
  gpu(bridge("pci0000:00/0000:00:01.0") + "/0000:01:00.0", 2);
  const Topology topology = load();
  EXPECT_EQ(topology.numa_near(topology.gpus()[0].node), 2);
  EXPECT_EQ(topology.package_of(2), -1);
}

// MI300 and its kin show a switch of their own below the board's.
TEST_F(Machine, AnAmdGpusOwnBridgesAreNoDistance) {
  const std::string up = bridge(bridge("pci0000:10/0000:10:01.1", "0x1022") + "/0000:11:00.0");
  const std::string own = bridge(
      bridge(bridge(up + "/0000:12:00.0") + "/0000:13:00.0", "0x1002") + "/0000:14:00.0", "0x1002");
  pci(own + "/0000:15:00.0", "0x1002", "0x120000");
  nic(bridge(up + "/0000:12:01.0") + "/0000:16:00.0", "rdma0");
  const Topology topology = load();
  ASSERT_EQ(topology.gpus().size(), 1u);
  EXPECT_EQ(smi(topology, "GPU0", "rdma0"), "PXB");
  EXPECT_EQ(way(topology, "GPU0", "rdma0").near, PathClass::pix);
}

// A Grace's root port has the vendor of the GPU: it is no part of the card.
TEST_F(Machine, ARootPortOfTheGpusVendorStays) {
  const std::string port = bridge("pci0000:00/0000:00:01.0", "0x10de");
  gpu(port + "/0000:01:00.0");
  nic(bridge("pci0000:00/0000:00:02.0", "0x10de") + "/0000:02:00.0", "mlx5_0");
  EXPECT_EQ(way(load(), "GPU0", "mlx5_0").near, PathClass::phb);
}

// A domain for each device, NUMA nodes told: the switches below are the hypervisor's secret.
TEST_F(Machine, ACloudsDomainADeviceTellsNumaNodesOnly) {
  write("proc/cpuinfo", "flags : fpu hypervisor");
  for (int i = 0; i < 4; ++i) {
    gpu(fmt::format("pci{0:04x}:00/{0:04x}:00:00.0", 1 + i), i / 2);
    nic(fmt::format("pci{0:04x}:00/{0:04x}:00:00.0", 0x101 + i), fmt::format("mlx5_{}", i), i / 2);
  }
  const Topology topology = load();
  EXPECT_FALSE(topology.flattened());
  EXPECT_TRUE(topology.hides_switches());
  EXPECT_EQ(smi(topology, "GPU0", "mlx5_1"), "NODE") << "as nvidia-smi has it";
  EXPECT_NE(way(topology, "GPU0", "mlx5_1").remark.find("all that is known"), std::string::npos);
  EXPECT_EQ(map_of(topology), "mlx5_0 mlx5_1 mlx5_2 mlx5_3");
  EXPECT_EQ(quality(topology, 0), "not known, switches are hidden: measure it");
}

TEST_F(Machine, AHostWithRootPortsHidesNothing) {
  gpu(bridge("pci0000:00/0000:00:01.0") + "/0000:01:00.0");
  nic(bridge("pci0000:20/0000:20:01.0") + "/0000:21:00.0", "mlx5_0");
  const Topology topology = load();
  EXPECT_FALSE(topology.hides_switches());
  EXPECT_EQ(quality(topology, 0), "poor on most CPUs: crosses host bridges");
}

// sysfs has no NUMA node of a host bridge: that of its devices counts.
TEST_F(Machine, NodeIsExplainedAsOneNumaNode) {
  gpu(bridge("pci0000:00/0000:00:01.0") + "/0000:01:00.0");
  nic(bridge("pci0000:20/0000:20:01.0") + "/0000:21:00.0", "mlx5_0");
  const Topology topology = load();
  EXPECT_EQ(smi(topology, "GPU0", "mlx5_0"), "NODE");
  const auto path_up = hops(topology, topology.gpu(0), topology.nic(0));
  EXPECT_EQ(path_up[2].what, "host bridge pci0000:00, NUMA node 0");
  EXPECT_EQ(path_up[3].what, "the CPU's fabric, in one NUMA node");
}

TEST_F(Machine, WithoutNumaNodesNobodyKnowsWhatLiesBetween) {
  gpu(bridge("pci0000:00/0000:00:01.0", "0x8086", -1) + "/0000:01:00.0", -1);
  nic(bridge("pci0000:20/0000:20:01.0", "0x8086", -1) + "/0000:21:00.0", "mlx5_0", -1);
  const Topology topology = load();
  const auto path_up = hops(topology, topology.gpu(0), topology.nic(0));
  EXPECT_EQ(path_up[3].what, "the CPU's fabric or between CPUs: not known which");
}

// ARM's cpuinfo has no word for a hypervisor.
TEST_F(Machine, QemusRootPortsAreAVirtualMachineOnAnyProcessor) {
  write("proc/cpuinfo", "Features : fp asimd");
  gpu(bridge("pci0000:00/0000:00:01.0", "0x1b36", -1) + "/0000:01:00.0", -1);
  nic(bridge("pci0000:00/0000:00:02.0", "0x1b36", -1) + "/0000:02:00.0", "mlx5_0", -1);
  const Topology topology = load();
  EXPECT_TRUE(topology.parts().in_vm);
  EXPECT_TRUE(topology.flattened());
}

TEST_F(Machine, AContainersVirtualFunctionIsAsNearAsItsCard) {
  gpu_and_nic();
  fs::remove(root_ / "sys/class/infiniband/mlx5_0");  // the card itself is not given to it
  const std::string card = "pci0000:10/0000:10:01.0/0000:11:00.0/0000:12:01.0";
  nic(card + "/0000:14:00.3", "mlx5_5");
  fs::create_symlink("../0000:14:00.0", root_ / "sys/devices" / card / "0000:14:00.3/physfn");
  const Topology topology = load();
  ASSERT_EQ(topology.nics().size(), 1u);
  EXPECT_EQ(smi(topology, "GPU0", "mlx5_5"), "PIX");
}

class DualPort : public Machine {
 protected:
  void card(const char* first, const char* second) const {
    gpu_and_nic();
    const std::string port = "pci0000:10/0000:10:01.0/0000:11:00.0/0000:12:01.0";
    nic(port + "/0000:14:00.1", "mlx5_1");
    write("sys/devices/" + port + "/0000:14:00.0/infiniband/mlx5_0/ports/1/state", first);
    write("sys/devices/" + port + "/0000:14:00.1/infiniband/mlx5_1/ports/1/state", second);
  }
};

TEST_F(DualPort, CardWithACableInOnePortIsUsedByThatPort) {
  card("1: DOWN", "4: ACTIVE");
  const Topology topology = load();
  EXPECT_EQ(topology.nics()[0].active, false);
  EXPECT_EQ(map_of(topology), "mlx5_1");
  EXPECT_EQ(nearest_nics(topology, 0), (std::vector<std::size_t>{1, 0}));
}

TEST_F(DualPort, CardWithoutACableIsStillTheNearestAndSaidToBeDown) {
  card("1: DOWN", "2: INIT");
  const RailMap map = rail_map(load());
  ASSERT_EQ(map.of_gpu[0].size(), 2u);
  EXPECT_EQ(map.of_gpu[0][0].reason, "one of 2 equally near, its port is down");
}

TEST_F(DualPort, DeviceWithTwoPortsIsTheOneThatIsUp) {
  gpu_and_nic();
  const std::string at =
      "sys/devices/pci0000:10/0000:10:01.0/0000:11:00.0/0000:12:01.0/0000:14:00.0/infiniband/"
      "mlx5_0/ports/";
  write(at + "1/state", "1: DOWN");
  write(at + "2/state", "4: ACTIVE");
  write(at + "2/rate", "100 Gb/sec (4X EDR)");
  const Topology topology = load();
  EXPECT_EQ(topology.nics()[0].port, 2);
  EXPECT_EQ(topology.nics()[0].gigabits, 100);
  EXPECT_EQ(topology.nics()[0].active, true);
}

// A ConnectX-8 is the switch above its GPU, with or without a Data Direct function.
TEST_F(Machine, AGpuBehindTheNicsOwnSwitchIsPix) {
  const std::string up =
      bridge(bridge("pci0000:10/0000:10:01.0", "0x8086") + "/0000:11:00.0", "0x15b3");
  gpu(bridge(up + "/0000:12:00.0", "0x15b3") + "/0000:13:00.0");
  nic(bridge(up + "/0000:12:01.0", "0x15b3") + "/0000:14:00.0", "mlx5_0");
  EXPECT_EQ(way(load(), "GPU0", "mlx5_0").near, PathClass::pix);
}

TEST_F(Machine, DataDirectOnTheCardsOwnSwitchIsPixToItsGpu) {
  const std::string up =
      bridge(bridge("pci0008:00/0008:00:00.0", "0x10de") + "/0008:01:00.0", "0x15b3");
  gpu(bridge(up + "/0008:02:00.0", "0x15b3") + "/0008:03:00.0");
  const std::string dma = pci(bridge(up + "/0008:02:01.0", "0x15b3") + "/0008:04:00.0", "0x15b3",
                              "0x080100", 0, "0x2100");
  const std::string card =
      nic(bridge("pci0000:00/0000:00:00.0", "0x10de") + "/0000:01:00.0", "mlx5_0");
  const std::string vpd = std::string("\x90\x07\x00", 3) + "V3\x04" + "abcd" + "\x78";
  write("sys/devices/" + dma + "/vpd", vpd);
  write("sys/devices/" + card + "/vpd", vpd);
  const Topology topology = load();
  EXPECT_EQ(smi(topology, "GPU0", "mlx5_0"), "NODE");
  EXPECT_EQ(way(topology, "GPU0", "mlx5_0").near, PathClass::pix);
  EXPECT_EQ(rail_map(topology).of_gpu[0][0].reason, "the nearest, PIX by Data Direct");
}

TEST_F(Machine, ALaptopsNeuralUnitIsNoGpu) {
  pci("pci0000:00/0000:00:02.0", "0x8086", "0x030000", -1);
  pci("pci0000:00/0000:00:0b.0", "0x8086", "0x120000", -1);
  EXPECT_TRUE(load().gpus().empty());
}

// Drivers of Broadcom and Intel hang their RDMA device on an auxiliary bus.
TEST_F(Machine, ANicOnAnAuxiliaryBusHasItsCardsPlace) {
  gpu_and_nic();
  const std::string card =
      pci("pci0000:10/0000:10:01.0/0000:11:00.0/0000:12:01.0/0000:14:00.1", "0x14e4", "0x020000");
  rdma(card + "/bnxt_en.rdma.0", "bnxt_re0", "400 Gb/sec");
  EXPECT_EQ(smi(load(), "GPU0", "bnxt_re0"), "PIX");
}

// A board of two GPUs and a switch, as K80: its own switch is nearer than any NIC.
TEST_F(Machine, TwoGpusOfABoardArePix) {
  const std::string up =
      bridge(bridge("pci0000:00/0000:00:02.0", "0x8086") + "/0000:02:00.0", "0x10b5");
  gpu(bridge(up + "/0000:03:08.0", "0x10b5") + "/0000:04:00.0");
  gpu(bridge(up + "/0000:03:10.0", "0x10b5") + "/0000:05:00.0");
  nic(bridge("pci0000:00/0000:00:03.0", "0x8086") + "/0000:06:00.0", "mlx4_0");
  const Topology topology = load();
  EXPECT_EQ(smi(topology, "GPU0", "GPU1"), "PIX");
  EXPECT_EQ(map_of(topology), "mlx4_0 mlx4_0");
  EXPECT_EQ(smi(topology, "GPU1", "mlx4_0"), "PHB");
}

}  // namespace
}  // namespace gdrx::topo

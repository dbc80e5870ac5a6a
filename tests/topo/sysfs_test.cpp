// SPDX-License-Identifier: Apache-2.0
// Hosts as trees of files, of our own making: what sysfs shows and what it hides.
#include "topo/read/sysfs.hpp"
#include "tests/topo/sysfs_tree.hpp"

namespace gdrx::topo {
namespace {

namespace fs = std::filesystem;
using test::smi;
using test::Sysfs;
using test::way;

TEST_F(Sysfs, AnHgxBoardsPairIsPix) {
  gpu_and_nic();
  write("sys/devices/system/node/node0/cpulist", "0-15");
  write("sys/devices/system/cpu/cpu0/topology/physical_package_id", "0");
  write("proc/driver/nvidia/gpus/0000:13:00.0/information", "Model: \t NVIDIA H200\nIRQ: 5");
  const Topology topology = load();
  ASSERT_EQ(topology.gpus().size(), 1u);
  ASSERT_EQ(topology.nics().size(), 1u);
  EXPECT_EQ(smi(topology, "GPU0", "mlx5_0"), "PIX");
  EXPECT_EQ(topology.nics()[0].gigabits, 400);
  EXPECT_EQ(topology.gpus()[0].model, "NVIDIA H200");
  EXPECT_EQ(topology.cpus_of(0), "0-15");
  EXPECT_EQ(topology.package_of(0), 0);
}

// Trap 13.
TEST_F(Sysfs, AnIdleGpusLowRateIsNotItsSpeed) {
  gpu_and_nic();
  EXPECT_NEAR(*way(load(), "GPU0", "mlx5_0").bottleneck, 50, 0.01) << "the port's 400 Gb/s";
}

// Trap 2: the name of a virtual function says nothing about its card; the physfn link does.
TEST_F(Sysfs, AVirtualFunctionKeepsItsOwnPlace) {
  gpu_and_nic();
  const std::string vf = "pci0000:10/0000:10:01.0/0000:11:00.0/0000:12:01.0/0000:14:01.2";
  pci(vf, "0x15b3", "0x020700");
  fs::create_symlink("../0000:14:00.0", root_ / "sys/devices" / vf / "physfn");
  rdma(vf, "mlx5_1", "400 Gb/sec");
  const Topology topology = load();
  const PciNode& node = topology.nodes()[topology.node(*topology.find("mlx5_1"))];
  EXPECT_EQ(node.physical_function, parse_bus_id("0000:14:00.0"));
  EXPECT_EQ(node.name, "0000:14:01.2");
  EXPECT_EQ(smi(topology, "mlx5_0", "mlx5_1"), "PIX");
}

TEST_F(Sysfs, AVirtualFunctionInAMachineIsNotTakenForTheHostBridge) {
  pci("pci0000:00/0000:00:00.0", "0x8086", "0x060000", -1);
  pci("pci0000:00/0000:00:0c.0", "0x15b3", "0x020700", -1);
  rdma("pci0000:00/0000:00:0c.0", "mlx5_0", "200 Gb/sec");
  const Topology topology = load();
  EXPECT_EQ(topology.nodes()[topology.node(topology.nic(0))].name, "0000:00:0c.0");
}

// Trap 4: a DPU shows management functions of the same card without RDMA.
TEST_F(Sysfs, OnlyFunctionsWithAnRdmaDeviceAreNics) {
  gpu_and_nic();
  pci("pci0000:10/0000:10:01.0/0000:11:00.0/0000:12:01.0/0000:14:00.1", "0x15b3", "0x020000");
  pci("pci0000:10/0000:10:01.0/0000:11:00.0/0000:12:01.0/0000:14:00.2", "0x15b3", "0x0c8000");
  EXPECT_EQ(load().nics().size(), 1u);
}

// Trap 5, with the vendor's pairing by product data.
TEST_F(Sysfs, DataDirectIsPairedByTheCardsUuid) {
  gpu_and_nic();
  const std::string far = "pci0000:80/0000:80:01.0/0000:81:00.0";
  pci("pci0000:80/0000:80:01.0", "0x8086", "0x060400", 1);
  pci(far, "0x15b3", "0x020700", 1);
  rdma(far, "mlx5_8", "800 Gb/sec");
  const std::string dma = "pci0000:10/0000:10:01.0/0000:11:00.0/0000:12:02.0/0000:15:00.0";
  pci("pci0000:10/0000:10:01.0/0000:11:00.0/0000:12:02.0", "0x1000", "0x060400");
  pci(dma, "0x15b3", "0x080100", 0, "0x2100");
  const std::string vpd = std::string("\x82\x03\x00", 3) + "CX8" + std::string("\x90\x07\x00", 3) +
                          "V3\x04" + "abcd" + "\x78";
  write(fs::path("sys/devices") / far / "vpd", vpd);
  write(fs::path("sys/devices") / dma / "vpd", vpd);
  const Path p = way(load(), "GPU0", "mlx5_8");
  EXPECT_EQ(cell(p, false), "SYS");
  EXPECT_EQ(p.near, PathClass::pix);
}

TEST_F(Sysfs, DataDirectThatOnlyRootCanPairIsSaidSo) {
  gpu_and_nic();
  pci("pci0000:10/0000:10:02.0", "0x15b3", "0x080100", 0, "0x2100");
  const Topology topology = load();
  ASSERT_EQ(topology.notes().size(), 1u);
  EXPECT_NE(topology.notes()[0].find("root"), std::string::npos);
}

TEST(Vpd, GarbageHasNoCard) {
  EXPECT_EQ(vpd_v3(""), "");
  EXPECT_EQ(vpd_v3("\x90"), "");
  EXPECT_EQ(vpd_v3(std::string("\x90\xff\xff", 3) + "V3"), "");
  EXPECT_EQ(vpd_v3(std::string("\x90\x04\x00V3\xff"
                               "a",
                               7)),
            "");
  EXPECT_EQ(vpd_v3(std::string("\x90\x06\x00V3\x03uid", 9)), "uid");
}

// Trap 7.
TEST_F(Sysfs, AFlatVirtualMachineIsNamed) {
  pci("pci0000:00/0000:00:02.0", "0x1b36", "0x060400", -1);
  pci("pci0000:00/0000:00:02.0/0000:01:00.0", "0x10de", "0x030200", -1);
  pci("pci0000:00/0000:00:03.0", "0x1b36", "0x060400", -1);
  pci("pci0000:00/0000:00:03.0/0000:02:00.0", "0x15b3", "0x020700", -1);
  rdma("pci0000:00/0000:00:03.0/0000:02:00.0", "mlx5_0", "400 Gb/sec");
  write("proc/cpuinfo", "flags\t\t: fpu vme hypervisor lahf_lm");
  write("sys/devices/pci0000:00/0000:00:02.0/0000:01:00.0/local_cpulist", "0-127");
  write("sys/devices/system/node/node0/cpulist", "0-127");
  write("var/run/nvidia-topologyd/virtualTopology.xml", "<system/>");
  const Topology topology = load();
  EXPECT_TRUE(topology.flattened());
  EXPECT_EQ(topology.cpus_near(topology.gpus()[0].node), "0-127");
  EXPECT_EQ(topology.numa_of(topology.gpus()[0].node), -1);
  EXPECT_EQ(topology.numa_near(topology.gpus()[0].node), 0);
  EXPECT_EQ(smi(topology, "GPU0", "mlx5_0"), "PHB");
  ASSERT_EQ(topology.notes().size(), 1u);
  EXPECT_NE(topology.notes()[0].find("virtualTopology.xml"), std::string::npos);
}

// Trap 8: one PCI domain a device, and no NUMA node.
TEST_F(Sysfs, ADomainADeviceWithoutNumaIsSysWithARemark) {
  pci("pci0001:00/0001:00:00.0", "0x10de", "0x030200", -1);
  pci("pci0101:00/0101:00:00.0", "0x15b3", "0x020700", -1);
  rdma("pci0101:00/0101:00:00.0", "mlx5_0", "200 Gb/sec");
  const Path p = way(load(), "GPU0", "mlx5_0");
  EXPECT_EQ(cell(p, false), "SYS");
  EXPECT_FALSE(p.remark.empty());
}

// Trap 12.
TEST_F(Sysfs, MaskedSysfsIsUnknown) {
  gpu_and_nic();
  const fs::path link = root_ / "sys/bus/pci/devices/0000:14:00.0";
  fs::remove(link);
  fs::create_directory(link);  // there, but it does not say where
  write("sys/bus/pci/devices/0000:14:00.0/class", "0x020700");
  write("sys/bus/pci/devices/0000:14:00.0/vendor", "0x15b3");
  const Topology topology = load();
  EXPECT_EQ(smi(topology, "GPU0", "mlx5_0"), "UNK");
  ASSERT_EQ(topology.notes().size(), 1u);
  EXPECT_NE(topology.notes()[0].find("hide"), std::string::npos);
}

// Trap 16.
TEST_F(Sysfs, SoftRoceIsVirtual) {
  write("sys/devices/virtual/infiniband/rxe0/parent", "eth0");
  rdma("virtual", "rxe0", "2.5 Gb/sec (1X SDR)");
  const Topology topology = load();
  ASSERT_EQ(topology.nics().size(), 1u);
  EXPECT_TRUE(topology.nics()[0].is_virtual);
  EXPECT_EQ(topology.nics()[0].gigabits, 0) << "its rate means nothing";
}

TEST_F(Sysfs, AVmdsWideDomainHangsBelowItsDevice) {
  pci("pci0000:00/0000:00:0e.0", "0x8086", "0x010400");
  pci("pci0000:00/0000:00:0e.0/pci10000:00/10000:00:01.0", "0x8086", "0x060400");
  pci("pci0000:00/0000:00:0e.0/pci10000:00/10000:00:01.0/10000:01:00.0", "0x15b3", "0x020700");
  rdma("pci0000:00/0000:00:0e.0/pci10000:00/10000:00:01.0/10000:01:00.0", "mlx5_0", "200 Gb/sec");
  pci("pci0000:00/0000:00:05.0", "0x8086", "0x060400");
  pci("pci0000:00/0000:00:05.0/0000:05:00.0", "0x10de", "0x030200");
  const Path p = way(load(), "GPU0", "mlx5_0");
  EXPECT_EQ(cell(p, false), "PHB");
  EXPECT_EQ(p.nccl, NcclClass::phb);
}

TEST_F(Sysfs, AServersOwnVgaChipIsNoGpu) {
  pci("pci0000:00/0000:00:1c.0", "0x1a03", "0x030000");
  EXPECT_TRUE(load().gpus().empty());
}

TEST_F(Sysfs, ALinkThatLeadsInCirclesIsNotFollowed) {
  fs::create_symlink("0000:01:00.0", root_ / "sys/bus/pci/devices/0000:01:00.0");
  EXPECT_EQ(load().devices(), 0u);
}

TEST_F(Sysfs, AFolderWithoutSysIsRefused) {
  fs::remove_all(root_ / "sys");
  EXPECT_FALSE(discover({root_.string(), false}));
}

TEST(Live, ThisMachineIsRead) {
  const auto topology = discover({});
  ASSERT_TRUE(topology) << topology.error().what;
  EXPECT_FALSE(topology->numa().empty());
  rail_map(*topology);
}

}  // namespace
}  // namespace gdrx::topo

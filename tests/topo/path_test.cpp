// SPDX-License-Identifier: Apache-2.0
// The class rule, case by case, and the traps of real machines.
#include "tests/topo/builder.hpp"

namespace gdrx::topo {
namespace {

using test::HostBuilder;
using test::smi;
using test::way;

TEST(Path, OneSwitchIsPix) {
  HostBuilder host;
  const auto up = host.switch_below(host.root(0));
  host.gpu_on(up);
  host.nic_on(up, "mlx5_0");
  const Topology topology = host.build();
  EXPECT_EQ(smi(topology, "GPU0", "mlx5_0"), "PIX");
  EXPECT_EQ(smi(topology, "mlx5_0", "GPU0"), "PIX");
  EXPECT_EQ(way(topology, "GPU0", "mlx5_0").nccl, NcclClass::pix);
}

TEST(Path, TwoSwitchesArePxb) {
  HostBuilder host;
  const auto up = host.switch_below(host.root(0));
  host.gpu_on(host.bridge(host.bridge(up)));
  host.nic_on(up, "mlx5_0");
  const Topology topology = host.build();
  EXPECT_EQ(smi(topology, "GPU0", "mlx5_0"), "PXB");
  EXPECT_EQ(way(topology, "GPU0", "mlx5_0").nccl, NcclClass::pxb);
}

TEST(Path, TwoRootPortsOfAHostBridgeArePhb) {
  HostBuilder host;
  const auto root = host.root(0);
  host.gpu(host.bridge(root));
  host.nic(host.bridge(root), "mlx5_0");
  const Topology topology = host.build();
  EXPECT_EQ(smi(topology, "GPU0", "mlx5_0"), "PHB");
  EXPECT_EQ(way(topology, "GPU0", "mlx5_0").nccl, NcclClass::phb);
}

TEST(Path, TwoHostBridgesOfANumaNodeAreNodeAndPhbToNccl) {
  HostBuilder host;
  host.gpu(host.bridge(host.root(0)));
  host.nic(host.bridge(host.root(0)), "mlx5_0");
  const Topology topology = host.build();
  const Path p = way(topology, "GPU0", "mlx5_0");
  EXPECT_EQ(cell(p, false), "NODE");
  EXPECT_EQ(p.nccl, NcclClass::phb);
  EXPECT_NE(p.nccl_reason.find("NUMA"), std::string::npos);
}

TEST(Path, TwoNumaNodesAreSys) {
  HostBuilder host;
  host.gpu(host.bridge(host.root(0)));
  host.nic(host.bridge(host.root(1)), "mlx5_0");
  const Topology topology = host.build();
  EXPECT_EQ(smi(topology, "GPU0", "mlx5_0"), "SYS");
  EXPECT_TRUE(way(topology, "GPU0", "mlx5_0").nccl_reason.empty());
}

TEST(Path, AnUnknownNumaNodeIsSysWithARemark) {
  HostBuilder host;
  host.gpu(host.bridge(host.bridge(host.bridge(host.root(-1)))));
  host.nic(host.bridge(host.bridge(host.bridge(host.root(-1)))), "mlx5_0");
  const Path p = way(host.build(), "GPU0", "mlx5_0");
  EXPECT_EQ(cell(p, false), "SYS");
  EXPECT_EQ(p.nccl, NcclClass::phb) << "NCCL has one CPU '-1'";
  EXPECT_FALSE(p.remark.empty());
}

TEST(Path, NvlinkHidesPciUnlessAskedFor) {
  HostBuilder host;
  const auto root = host.root(0);
  const auto a = host.gpu(host.bridge(root));
  const auto b = host.gpu(host.bridge(root));
  host.parts.nvlinks = {{a, b, 4, 25}, {b, a, 4, 25}};
  const Topology topology = host.build();
  EXPECT_EQ(smi(topology, "GPU0", "GPU1"), "NV4");
  EXPECT_EQ(smi(topology, "GPU0", "GPU1", true), "PHB");
  EXPECT_EQ(way(topology, "GPU0", "GPU1").nccl, NcclClass::nvl);
}

TEST(Path, GpusOnNvswitchesHaveTheSmallerNumberOfLinks) {
  HostBuilder host;
  const auto root = host.root(0);
  const auto a = host.gpu(host.bridge(root));
  const auto b = host.gpu(host.bridge(root));
  host.gpu(host.bridge(root));
  host.parts.nvlinks = {{a, kNone, 10, 0}, {a, kNone, 8, 0}, {b, kNone, 17, 0}};
  const Topology topology = host.build();
  EXPECT_EQ(smi(topology, "GPU0", "GPU1"), "NV17");
  EXPECT_EQ(smi(topology, "GPU0", "GPU2"), "PHB") << "GPU2 has no NVLink";
}

// Trap 1.
TEST(Path, TwoFunctionsOfACardArePixAndOneDeviceToNccl) {
  HostBuilder host;
  const auto port = host.bridge(host.root(0));
  const auto first = host.nic(port, "mlx5_0");
  const auto second = host.nic(port, "mlx5_1");
  host.parts.nodes[second].bus = host.parts.nodes[first].bus;
  host.parts.nodes[second].bus->function = 1;
  host.parts.nodes[second].name = to_string(*host.parts.nodes[second].bus);
  const Path p = way(host.build(), "mlx5_0", "mlx5_1");
  EXPECT_EQ(cell(p, false), "PIX");
  EXPECT_EQ(p.nccl, NcclClass::loc);
}

// Trap 3: OCI's H100 hosts.
TEST(Path, ANicsOwnBridgesCountInTheClassButNotInTheDistance) {
  HostBuilder host;
  const auto up = host.switch_below(host.root(0));
  host.gpu_on(up);
  const auto inside = host.bridge(host.bridge(host.bridge(up), 0x15b3), 0x15b3);
  host.nic(inside, "mlx5_0");
  const Topology topology = host.build();
  const Path p = way(topology, "GPU0", "mlx5_0");
  EXPECT_EQ(cell(p, false), "PXB");
  EXPECT_EQ(p.near, PathClass::pix);
  EXPECT_EQ(cost(topology, p).rank, 2);
}

// Trap 5: ConnectX-8. The RDMA function is on the CPU, its bytes leave by a function on the switch.
TEST(Path, DataDirectIsAsNearAsTheFunctionThatMovesTheBytes) {
  HostBuilder host;
  const auto up = host.switch_below(host.root(0));
  host.gpu_on(up);
  const auto dma = host.nic_on(up, "to be removed");
  host.parts.nics.clear();
  host.nic(host.bridge(host.root(1)), "mlx5_0");
  host.parts.nics[0].dma_node = dma;
  const Path p = way(host.build(), "GPU0", "mlx5_0");
  EXPECT_EQ(cell(p, false), "SYS");
  EXPECT_EQ(p.near, PathClass::pix);
  EXPECT_FALSE(p.remark.empty());
}

// Trap 6: Grace.
TEST(Path, C2cMakesAFarNicNear) {
  HostBuilder host;
  host.gpu(host.bridge(host.root(0)));
  host.nic(host.bridge(host.root(0)), "mlx5_0");
  host.parts.gpus[0].c2c_links = 10;
  const Topology topology = host.build();
  const Path p = way(topology, "GPU0", "mlx5_0");
  EXPECT_EQ(cell(p, false), "NODE");
  EXPECT_EQ(p.nccl, NcclClass::p2c);
  EXPECT_LT(cost(topology, p).rank, 5);
}

// Trap 7: QEMU.
TEST(Path, AVirtualMachinesFlatBusesAreSaidToBeFlattened) {
  HostBuilder host;
  const auto root = host.root(-1);
  host.gpu(host.bridge(root, 0x1b36));
  host.nic(host.bridge(root, 0x1b36), "mlx5_0");
  host.parts.in_vm = true;
  const Topology topology = host.build();
  EXPECT_TRUE(topology.flattened());
  const Path p = way(topology, "GPU0", "mlx5_0");
  EXPECT_EQ(cell(p, false), "PHB") << "as nvidia-smi prints it";
  EXPECT_NE(p.remark.find("flattened"), std::string::npos);
  EXPECT_EQ(rail_map(topology).of_gpu[0][0].quality, "not known: measure it");
}

TEST(Path, APassedThroughSwitchIsNotFlattened) {
  HostBuilder host;
  const auto up = host.switch_below(host.root(-1));
  host.gpu_on(up);
  host.parts.in_vm = true;
  EXPECT_FALSE(host.build().flattened());
}

// Trap 9: NPS4, SNC.
TEST(Path, AnotherNumaNodeOfThePackageIsNearerThanAnotherPackage) {
  HostBuilder host;
  host.gpu(host.bridge(host.root(0)));
  host.nic(host.bridge(host.root(1)), "near");
  host.nic(host.bridge(host.root(2)), "far");
  host.parts.numa = {{0, 0, "0-7", {}}, {1, 0, "8-15", {}}, {2, 1, "16-23", {}}};
  const Topology topology = host.build();
  EXPECT_EQ(smi(topology, "GPU0", "near"), "SYS");
  EXPECT_EQ(smi(topology, "GPU0", "far"), "SYS");
  EXPECT_EQ(topology.nics()[nearest_nics(topology, 0)[0]].name, "near");
}

// Trap 12.
TEST(Path, AHiddenWayIsUnknownAndNotSys) {
  HostBuilder host;
  host.gpu(host.bridge(host.root(0)));
  PciNode lost;
  lost.bus = BusId{7, 0, 0, 0};
  lost.name = to_string(*lost.bus);
  host.parts.nics.push_back({"mlx5_0", host.add(lost), kNone, 0, 0, {}, false});
  host.parts.nics.push_back({"mlx5_1", kNone, kNone, 0, 0, {}, false});
  const Topology topology = host.build();
  EXPECT_EQ(smi(topology, "GPU0", "mlx5_0"), "UNK");
  EXPECT_EQ(smi(topology, "GPU0", "mlx5_1"), "UNK");
  EXPECT_EQ(way(topology, "GPU0", "mlx5_0").nccl, NcclClass::unknown);
}

// Trap 16.
TEST(Path, SoftRoceHasNoPlace) {
  HostBuilder host;
  host.gpu(host.bridge(host.root(0)));
  host.parts.nics.push_back({"rxe0", kNone, kNone, 1, 0, "Ethernet", true});
  const Path p = way(host.build(), "GPU0", "rxe0");
  EXPECT_EQ(cell(p, false), "UNK");
  EXPECT_NE(p.remark.find("virtual"), std::string::npos);
}

TEST(Path, NcclFusesBroadcomsTwoLevelSwitch) {
  HostBuilder host;
  const auto up = host.switch_below(host.root(0));
  const auto left = host.bridge(host.bridge(up));
  const auto right = host.bridge(host.bridge(up));
  for (const auto at : {up, left, right}) {
    PciNode& node = host.parts.nodes[at];
    node.device = 0xc010;
    node.subsystem_vendor = 0x1000;
    node.subsystem_device = 0xa0a1;
  }
  host.gpu_on(left);
  host.nic_on(right, "mlx5_0");
  const Path p = way(host.build(), "GPU0", "mlx5_0");
  EXPECT_EQ(cell(p, false), "PXB");
  EXPECT_EQ(p.nccl, NcclClass::pix);
  EXPECT_NE(p.nccl_reason.find("two-level"), std::string::npos);
}

TEST(Path, TheBottleneckIsTheSlowestLinkOnTheWay) {
  HostBuilder host;
  const auto up = host.switch_below(host.root(0));
  host.gpu_on(up);
  const auto card = host.nic_on(up, "mlx5_0");
  host.parts.nodes[card].link.width = 4;  // trained down
  const auto far = host.nic(host.bridge(host.root(0)), "mlx5_1", 100);
  const Topology topology = host.build();
  EXPECT_NEAR(*way(topology, "GPU0", "mlx5_0").bottleneck, 7.88, 0.01);
  EXPECT_EQ(way(topology, "GPU0", "mlx5_0").limit, host.parts.nodes[card].name);
  EXPECT_NEAR(*way(topology, "GPU0", "mlx5_1").bottleneck, 12.5, 0.01);
  EXPECT_EQ(way(topology, "GPU0", "mlx5_1").limit, "mlx5_1's port");
  EXPECT_NE(far, kNone);
}

TEST(Path, TheUplinkOfACommonSwitchIsNotOnTheWay) {
  HostBuilder host;
  const auto port = host.bridge(host.root(0));
  const auto up = host.bridge(port);
  host.parts.nodes[up].link.width = 1;
  host.gpu_on(up);
  host.nic_on(up, "mlx5_0");
  host.nic(host.bridge(host.root(0)), "mlx5_1");
  const Topology topology = host.build();
  EXPECT_NEAR(*way(topology, "GPU0", "mlx5_0").bottleneck, 31.5, 0.1);
  EXPECT_NEAR(*way(topology, "GPU0", "mlx5_1").bottleneck, 1.97, 0.01);
}

TEST(Path, NothingKnownOfALinkIsNoNumber) {
  HostBuilder host;
  const auto up = host.switch_below(host.root(0));
  host.gpu_on(up);
  host.nic_on(up, "mlx5_0");
  for (PciNode& node : host.parts.nodes) node.link = {};
  EXPECT_FALSE(way(host.build(), "GPU0", "mlx5_0").bottleneck);
}

TEST(Path, HopsNameEveryBridgeOnce) {
  HostBuilder host;
  host.gpu_on(host.switch_below(host.root(0)));
  host.nic(host.bridge(host.root(1)), "mlx5_0");
  const Topology topology = host.build();
  const auto way = hops(topology, *topology.find("GPU0"), *topology.find("mlx5_0"));
  // GPU, downstream, upstream, root port, host bridge, between, host bridge, root port, NIC.
  ASSERT_EQ(way.size(), 9u);
  EXPECT_NE(way[1].what.find("downstream"), std::string::npos);
  EXPECT_NE(way[2].what.find("upstream"), std::string::npos);
  EXPECT_NE(way[3].what.find("root port"), std::string::npos);
  EXPECT_NE(way[4].what.find("host bridge"), std::string::npos);
  EXPECT_NE(way[5].what.find("NUMA"), std::string::npos);
  EXPECT_TRUE(way[0].gbytes);
  EXPECT_FALSE(way[1].gbytes) << "inside the switch";
  EXPECT_TRUE(way[2].gbytes);
  EXPECT_FALSE(way[5].gbytes) << "the socket link's speed is not known";
  EXPECT_TRUE(way[7].gbytes);
}

TEST(BusId, TakesTheThreeWritings) {
  EXPECT_EQ(to_string(*parse_bus_id("0000:3b:00.0")), "0000:3b:00.0");
  EXPECT_EQ(to_string(*parse_bus_id("00000000:3B:00.0")), "0000:3b:00.0");
  EXPECT_EQ(to_string(*parse_bus_id("3b:1f.7")), "0000:3b:1f.7");
  EXPECT_EQ(to_string(*parse_bus_id("10000:01:00.0")), "10000:01:00.0");
  EXPECT_EQ(parse_bus_id("10000:01:00.0")->domain, 0x10000u);
}

TEST(BusId, RefusesWhatIsNone) {
  for (const char* text :
       {"", ".", ":", ":.", "::.", "3b:20.0", "3b:00.8", "3b:00", "x:00.0", "0000:3b:00.0 ",
        "123456789:00:00.0", "0000:100:00.0", "-1:00:00.0", "0000:3b:00.", ":3b:00.0"}) {
    EXPECT_FALSE(parse_bus_id(text)) << text;
  }
}

TEST(Link, SpeedsAreThePublishedOnes) {
  EXPECT_NEAR(*gbytes({2.5, 1, 0}), 0.25, 1e-3);
  EXPECT_NEAR(*gbytes({8, 16, 0}), 15.754, 1e-3);
  EXPECT_NEAR(*gbytes({32, 16, 0}), 63.015, 1e-3);
  EXPECT_NEAR(*gbytes({64, 16, 0}), 121.0, 1e-3);
  EXPECT_FALSE(gbytes({32, 0, 0}));
}

}  // namespace
}  // namespace gdrx::topo

// SPDX-License-Identifier: Apache-2.0
// Which RDMA ports become devices, and what is said of them: over a /sys of our own.
#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <filesystem>
#include <fstream>

#include "plugin/core/devices.hpp"

namespace gdrx::test {
namespace {

namespace fs = std::filesystem;

class RdmaPorts : public testing::Test {
 protected:
  void SetUp() override {
    root = testing::TempDir() + "ports-" +
           testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::remove_all(root);
    port("mlx5_1", 1, "4: ACTIVE", "400 Gb/sec (4X NDR)");
    port("mlx5_0", 1, "4: ACTIVE", "100 Gb/sec (4X EDR)");
    port("mlx5_0", 2, "1: DOWN", "100 Gb/sec (4X EDR)");
    port("rxe0", 1, "4: ACTIVE", "2.5 Gb/sec (1X SDR)");
  }
  void TearDown() override { fs::remove_all(root); }
  void port(const std::string& hca, int number, const char* state, const char* rate) const {
    const fs::path at = root + "/sys/class/infiniband/" + hca;
    fs::create_directories(at / "ports" / std::to_string(number));
    std::ofstream(at / "node_guid") << "0c42:a103:00d1:2f54\n";
    std::ofstream(at / "ports" / std::to_string(number) / "state") << state << '\n';
    std::ofstream(at / "ports" / std::to_string(number) / "rate") << rate << '\n';
  }
  std::string root;
};

TEST_F(RdmaPorts, ThatAreUpAreDevicesInTheOrderOfTheirNames) {
  const auto devices = net::list_rdma_ports(root, "").value();
  ASSERT_EQ(devices.size(), 3U);
  EXPECT_EQ(devices[0].name, "mlx5_0");
  EXPECT_EQ(devices[0].hca, "=mlx5_0:1");
  EXPECT_EQ(devices[0].speed, 100'000);
  EXPECT_EQ(devices[0].guid, 0x0c42a10300d12f54U);
  EXPECT_EQ(devices[0].pci_path, "");
  EXPECT_EQ(devices[1].name, "mlx5_1");
  EXPECT_EQ(devices[1].speed, 400'000);
  EXPECT_EQ(devices[2].speed, 2'500);
}

// soft-RoCE names the network interface that carries it.
TEST_F(RdmaPorts, InSoftwareAreKnown) {
  std::ofstream(root + "/sys/class/infiniband/rxe0/parent") << "eth0\n";
  const auto devices = net::list_rdma_ports(root, "").value();
  EXPECT_FALSE(devices[0].software);
  EXPECT_TRUE(devices[2].software);
  const std::deque<net::NetDevice> known(devices.begin(), devices.end());
  EXPECT_FALSE(net::merge(known, std::array{2, 0}).value().software);
  EXPECT_TRUE(net::merge(known, std::array{2}).value().software);
}

class PciPath : public RdmaPorts {
 protected:
  /// A PCI function and, unless it is empty, its RDMA device.
  fs::path function(const std::string& bus, const std::string& hca) const {
    const fs::path at = fs::path(root) / "sys/devices/pci0000:10" / bus;
    fs::create_directories(at);
    std::ofstream(at / "vendor") << "0x15b3\n";
    if (hca.empty()) return at;
    port(hca, 1, "4: ACTIVE", "400 Gb/sec (4X NDR)");
    fs::create_directory_symlink(fs::canonical(at),
                                 root + "/sys/class/infiniband/" + hca + "/device");
    return at;
  }
  std::string path_of(const std::string& hca) const {
    return fs::path(net::list_rdma_ports(root, "=" + hca).value().at(0).pci_path).filename();
  }
};

TEST_F(PciPath, IsOneForTheFunctionsOfACard) {
  function("0000:14:00.0", "mlx5_2");
  function("0000:14:00.1", "mlx5_3");
  EXPECT_EQ(path_of("mlx5_2"), "0000:14:00.0");
  EXPECT_EQ(path_of("mlx5_3"), "0000:14:00.0");
}

TEST_F(PciPath, OfAVirtualFunctionIsItsCards) {
  function("0000:14:00.0", "");
  const fs::path virtual_function = function("0000:14:01.2", "mlx5_2");
  fs::create_directory_symlink("../0000:14:00.0", virtual_function / "physfn");
  EXPECT_EQ(path_of("mlx5_2"), "0000:14:00.0");
}

// In a guest the virtual function is all that there is of the card.
TEST_F(PciPath, OfAGuestsVirtualFunctionIsNotTheHostBridge) {
  function("0000:00:00.0", "");
  function("0000:00:0c.1", "mlx5_2");
  EXPECT_EQ(path_of("mlx5_2"), "0000:00:0c.1");
}

TEST_F(RdmaPorts, AreChosenByGdrxHca) {
  EXPECT_EQ(net::list_rdma_ports(root, "mlx5").value().size(), 2U);
  EXPECT_EQ(net::list_rdma_ports(root, "^mlx5").value().at(0).name, "rxe0");
  EXPECT_EQ(net::list_rdma_ports(root, "=mlx5_0:2").value().size(), 0U);
}

TEST_F(RdmaPorts, AreNoneWhereTheKernelHasNone) {
  EXPECT_TRUE(net::list_rdma_ports(root + "/nowhere", "").value().empty());
}

TEST_F(RdmaPorts, HaveTheRailAndPlaneThatTheUserGivesThem) {
  const auto devices = net::list_rdma_ports(root, "mlx5_0:1:3:1,mlx5_1::4,rxe0").value();
  ASSERT_EQ(devices.size(), 3U);
  EXPECT_EQ(devices[0].rail, 3);
  EXPECT_EQ(devices[0].plane, 1);
  EXPECT_EQ(devices[1].rail, 4);
  EXPECT_EQ(devices[1].plane, -1);
  EXPECT_EQ(devices[2].rail, -1);
  EXPECT_FALSE(net::list_rdma_ports(root, "mlx5_0:1:x").has_value());
}

TEST_F(RdmaPorts, MergeIntoOneDeviceThatUsesThemAll) {
  const auto ports = net::list_rdma_ports(root, "mlx5_0::7,mlx5_1::7,rxe0").value();
  std::deque<net::NetDevice> devices(ports.begin(), ports.end());
  devices[0].pointers |= nccl::kPtrCuda | nccl::kPtrDmaBuf;
  devices[1].pointers |= nccl::kPtrCuda;
  devices[1].force_flush = true;
  const auto merged = net::merge(devices, std::array{0, 1}).value();
  EXPECT_EQ(merged.name, "mlx5_0+mlx5_1");
  EXPECT_EQ(merged.speed, 500'000);
  EXPECT_EQ(merged.parts, (std::vector{0, 1}));
  EXPECT_EQ(merged.rail, 7);
  EXPECT_EQ(merged.pointers, nccl::kPtrHost | nccl::kPtrCuda);  // what both can
  EXPECT_TRUE(merged.force_flush);
  EXPECT_EQ(net::list_rdma_ports(root, merged.hca).value().size(), 2U) << merged.hca;
  EXPECT_EQ(net::merge(devices, std::array{0, 2}).value().rail, nccl::kUndefined);
  for (const auto& wrong :
       {std::vector{0, 0}, std::vector{0, 3}, std::vector{-1, 0}, std::vector<int>{}}) {
    EXPECT_FALSE(net::merge(devices, wrong).has_value());
  }
  devices.push_back(merged);
  EXPECT_FALSE(net::merge(devices, std::array{3, 2}).has_value()) << "merged twice";
}

}  // namespace
}  // namespace gdrx::test

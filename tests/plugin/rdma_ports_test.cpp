// SPDX-License-Identifier: Apache-2.0
// Which RDMA ports become devices, and what is said of them: over a /sys of our own.
#include <gtest/gtest.h>

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

TEST_F(RdmaPorts, AreChosenByGdrxHca) {
  EXPECT_EQ(net::list_rdma_ports(root, "mlx5").value().size(), 2U);
  EXPECT_EQ(net::list_rdma_ports(root, "^mlx5").value().at(0).name, "rxe0");
  EXPECT_EQ(net::list_rdma_ports(root, "=mlx5_0:2").value().size(), 0U);
}

TEST_F(RdmaPorts, AreNoneWhereTheKernelHasNone) {
  EXPECT_TRUE(net::list_rdma_ports(root + "/nowhere", "").value().empty());
}

}  // namespace
}  // namespace gdrx::test

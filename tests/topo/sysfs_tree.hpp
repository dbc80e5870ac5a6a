// SPDX-License-Identifier: Apache-2.0
// A host's sysfs and procfs as files, written down device by device.
#pragma once

#include <unistd.h>

#include <filesystem>

#include "tests/topo/builder.hpp"

namespace gdrx::topo::test {

namespace fs = std::filesystem;

class Sysfs : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    root_ = fs::path(::testing::TempDir()) / fmt::format("gdrx-{}-{}", info->name(), getpid());
    fs::remove_all(root_);
    fs::create_directories(root_ / "sys/bus/pci/devices");
  }
  void TearDown() override { fs::remove_all(root_); }

  void write(const fs::path& path, const std::string& text) const {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text << '\n';
  }

  /// `chain`: "pci0000:00/0000:00:01.0/0000:01:00.0"; its last part is the device. Gives the chain.
  std::string pci(const std::string& chain, const char* vendor, const char* device_class,
                  int numa = 0, const char* device = "0x0001") const {
    const fs::path at = fs::path("sys/devices") / chain;
    const std::string name = fs::path(chain).filename().string();
    write(at / "class", device_class);
    write(at / "vendor", vendor);
    write(at / "device", device);
    write(at / "numa_node", fmt::format("{}", numa));
    write(at / "max_link_speed", "32.0 GT/s PCIe");
    write(at / "current_link_speed", "2.5 GT/s PCIe");
    write(at / "current_link_width", "16");
    const fs::path link = root_ / "sys/bus/pci/devices" / name;
    if (!fs::exists(fs::symlink_status(link))) {
      fs::create_directory_symlink("../../../devices/" + chain, link);
    }
    return chain;
  }
  std::string bridge(const std::string& chain, const char* vendor = "0x1000", int numa = 0) const {
    return pci(chain, vendor, "0x060400", numa);
  }
  std::string gpu(const std::string& chain, int numa = 0) const {
    return pci(chain, "0x10de", "0x030200", numa);
  }
  std::string nic(const std::string& chain, const std::string& name, int numa = 0,
                  const char* rate = "400 Gb/sec (4X NDR)") const {
    pci(chain, "0x15b3", "0x020700", numa);
    rdma(chain, name, rate);
    return chain;
  }
  void numa(int node, const std::string& cpus, int package) const {
    write(fmt::format("sys/devices/system/node/node{}/cpulist", node), cpus);
    if (cpus.empty()) return;
    write(fmt::format("sys/devices/system/cpu/cpu{}/topology/physical_package_id",
                      cpus.substr(0, cpus.find('-'))),
          std::to_string(package));
  }
  void rdma(const std::string& chain, const std::string& name, const char* rate) const {
    const fs::path at = fs::path("sys/devices") / chain / "infiniband" / name;
    write(at / "ports/1/rate", rate);
    write(at / "ports/1/link_layer", "InfiniBand");
    if (chain != "virtual") fs::create_directory_symlink("../..", root_ / at / "device");
    fs::create_directories(root_ / "sys/class/infiniband");
    fs::create_directory_symlink(fmt::format("../../devices/{}/infiniband/{}", chain, name),
                                 root_ / "sys/class/infiniband" / name);
  }
  /// A root port and a switch with a GPU and a NIC, as on an HGX board.
  void gpu_and_nic() const {
    const std::string port = "pci0000:10/0000:10:01.0";
    pci(port, "0x8086", "0x060400");
    pci(port + "/0000:11:00.0", "0x1000", "0x060400");
    pci(port + "/0000:11:00.0/0000:12:00.0", "0x1000", "0x060400");
    pci(port + "/0000:11:00.0/0000:12:01.0", "0x1000", "0x060400");
    pci(port + "/0000:11:00.0/0000:12:00.0/0000:13:00.0", "0x10de", "0x030200");
    const std::string nic = port + "/0000:11:00.0/0000:12:01.0/0000:14:00.0";
    pci(nic, "0x15b3", "0x020700");
    rdma(nic, "mlx5_0", "400 Gb/sec (4X NDR)");
  }
  Topology load() const {
    auto topology = discover({root_.string(), false});
    EXPECT_TRUE(topology) << topology.error().what;
    return topology ? *topology : Topology();
  }
  fs::path root_;
};

}  // namespace gdrx::topo::test

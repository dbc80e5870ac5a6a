// SPDX-License-Identifier: Apache-2.0
// Where NICs and GPUs sit: distances, slots, and which NICs carry a GPU's memory.
#include "transport/verbs/pci_place.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/fabric/cluster.hpp"
#include "tests/fabric/fake_gpu.hpp"

namespace gdrx::sim {
namespace {

using verbs::pci_distance;
using verbs::PciDistance;

const std::string kRoot = "/sys/devices/pci0000:15/";
const std::string kGpu = kRoot + "0000:15:01.0/0000:16:00.0/0000:17:00.0/0000:18:00.0";

TEST(PciPlace, DistanceIsThatOfTheLastThingAboveBoth) {
  const auto from_gpu = [](const std::string& folder) { return pci_distance(kGpu, folder); };
  EXPECT_EQ(from_gpu(kRoot + "0000:15:01.0/0000:16:00.0/0000:17:01.0/0000:19:00.0"),
            PciDistance::below_one_bridge);
  EXPECT_EQ(from_gpu(kRoot + "0000:15:02.0/0000:20:00.0"), PciDistance::below_one_root);
  EXPECT_EQ(from_gpu(kRoot + "0000:15:03.0"), PciDistance::below_one_root);
  EXPECT_EQ(from_gpu("/sys/devices/pci0000:e0/0000:e0:01.0/0000:e1:00.0"), PciDistance::apart);
  EXPECT_EQ(from_gpu("/sys/devices/pci10000:15/10000:15:01.0/10000:e1:00.0"), PciDistance::apart);
  EXPECT_EQ(from_gpu(""), PciDistance::unknown);
  EXPECT_EQ(pci_distance("", ""), PciDistance::unknown);
  EXPECT_EQ(from_gpu("/sys/devices/virtual/net/eth0"), PciDistance::apart) << "soft-RoCE's";
}

/// A folder with what sysfs says of a slot.
class Slot {
 public:
  Slot(const std::string& speed, const std::string& width) {
    std::string name = std::filesystem::temp_directory_path() / "gdrx-slot-XXXXXX";
    folder_ = mkdtemp(name.data());
    std::ofstream(folder_ + "/current_link_speed") << speed << '\n';
    std::ofstream(folder_ + "/current_link_width") << width << '\n';
  }
  ~Slot() { std::filesystem::remove_all(folder_); }
  Slot(const Slot&) = delete;
  Slot& operator=(const Slot&) = delete;
  const std::string& folder() const { return folder_; }

 private:
  std::string folder_;
};

TEST(PciPlace, ASlotCarriesWhatItsLanesDoAfterTheirCode) {
  EXPECT_EQ(verbs::slot_speed(Slot("16.0 GT/s PCIe", "16").folder()), 252'061U);
  EXPECT_EQ(verbs::slot_speed(Slot("32.0 GT/s PCIe", "16").folder()), 504'123U);
  EXPECT_EQ(verbs::slot_speed(Slot("5.0 GT/s PCIe", "8").folder()), 32'000U);
  EXPECT_EQ(verbs::slot_speed(Slot("64.0 GT/s PCIe", "16").folder()), 968'000U);
  EXPECT_EQ(verbs::slot_speed(Slot("Unknown", "0").folder()), 0U) << "of a virtual function";
  EXPECT_EQ(verbs::slot_speed(Slot("16.0 GT/s PCIe", "0").folder()), 0U);
  EXPECT_EQ(verbs::slot_speed(Slot("1e99", "16").folder()), 0U);
  EXPECT_EQ(verbs::slot_speed("/nowhere"), 0U);
}

TEST(PciPlace, ARailIsNotFasterThanItsSlot) {
  const Slot slow("8.0 GT/s PCIe", "4");
  ClusterSettings settings;
  settings.nics = 2;
  settings.pci_folders = {"", slow.folder()};
  Cluster cluster(settings);
  const std::string ports = cluster[0].device->ports();
  EXPECT_NE(ports.find("sim0:1 (10.0.0.1, 100 Gb/s)"), std::string::npos) << ports;
  EXPECT_NE(ports.find("sim1:1 (10.1.0.1, 31 Gb/s)"), std::string::npos) << ports;
}

class NearNics : public ::testing::Test {
 protected:
  static constexpr std::size_t kBytes = 1 << 20;
  void open(const std::vector<std::string>& nics) {
    gpu_.facts.pci_folder = kGpu;
    ClusterSettings settings;
    settings.nics = static_cast<int>(nics.size());
    settings.pci_folders = nics;
    settings.gpu = &gpu_.calls();
    cluster_.emplace(settings);
    const auto from = gpu_.allocate(kBytes);
    to_ = gpu_.allocate(kBytes);
    source_ = *(*cluster_)[0].device->register_memory(from, MemoryKind::cuda);
    target_ = *(*cluster_)[1].device->register_memory(to_, MemoryKind::cuda);
    remote_ = *(*cluster_)[0].endpoints[1]->import_region(target_->export_key());
  }
  /// Writes so many bytes and tells how many each NIC of the sender sent.
  std::vector<std::uint64_t> write(std::size_t bytes) {
    Cluster& cluster = *cluster_;
    std::vector<std::uint64_t> sent;
    for (int i = 0; i < cluster.network.nics(0); ++i) {
      sent.push_back(cluster.network.bytes_sent(0, i));
    }
    const auto seen = gpu_.seen(source_->bytes());
    for (std::byte& byte : seen) byte ^= std::byte{0x5a};
    WriteOp op;
    op.payload = source_->bytes().first(bytes);
    op.local = source_.get();
    op.remote = remote_;
    op.has_immediate = true;
    const std::size_t before = cluster.count(1, CompletionKind::immediate);
    bool posted = false;
    EXPECT_TRUE(cluster.run_until([&] {
      if (!posted) posted = *cluster[0].endpoints[1]->post(op) == Progress::done;
      return cluster.count(1, CompletionKind::immediate) == before + 1;
    }));
    EXPECT_TRUE(std::equal(seen.begin(), seen.begin() + static_cast<std::ptrdiff_t>(bytes),
                           gpu_.seen(to_).begin()));
    for (std::size_t i = 0; i < sent.size(); ++i) {
      sent[i] = cluster.network.bytes_sent(0, static_cast<int>(i)) - sent[i];
    }
    return sent;
  }

  FakeGpu gpu_{4 << 20};
  std::optional<Cluster> cluster_;
  std::span<std::byte> to_;
  std::unique_ptr<MemoryRegion> source_;
  std::unique_ptr<MemoryRegion> target_;
  RemoteRegionId remote_{};
};

const std::string kFar = "/sys/devices/pci0000:e0/0000:e0:01.0/0000:e1:00.0";
const std::string kNear = kRoot + "0000:15:01.0/0000:16:00.0/0000:17:01.0/0000:19:00.0";
constexpr std::uint64_t kAFewCredits = 4096;

TEST_F(NearNics, CarryTheMemoryOfAGpuAlone) {
  open({kFar, kNear, kFar});
  for (const std::size_t bytes : {100UL, 100'000UL, kBytes}) {
    const auto sent = write(bytes);
    EXPECT_LT(sent[0] + sent[2], kAFewCredits) << bytes;
    EXPECT_GE(sent[1], bytes);
  }
  const std::string all = (*cluster_)[0].device->describe();
  EXPECT_NE(all.find("over the nearest NICs (sim1:1)"), std::string::npos) << all;
}

TEST_F(NearNics, ShareItWhereSeveralAreAsNear) {
  open({kFar, kNear, kNear});
  const auto sent = write(kBytes);
  EXPECT_LT(sent[0], kAFewCredits);
  EXPECT_GT(sent[1], kBytes / 3);
  EXPECT_GT(sent[2], kBytes / 3);
}

TEST_F(NearNics, AreMissedByNobodyWhenTheyAreDown) {
  open({kFar, kNear});
  cluster_->network.set_port(0, 1, false);
  cluster_->run_for(std::chrono::milliseconds(100));
  EXPECT_GE(write(kBytes)[0], kBytes);
}

TEST_F(NearNics, AreAllWhereOneIsNowhere) {
  open({kFar, kNear, ""});
  const auto sent = write(kBytes);
  for (const std::uint64_t bytes : sent) EXPECT_GT(bytes, kBytes / 5);
}

}  // namespace
}  // namespace gdrx::sim

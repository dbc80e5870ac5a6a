// SPDX-License-Identifier: Apache-2.0
// Whether NICs write GPU memory between hosts is agreed on: all ranks or nobody, and it is said.
#include "collectives/comm/rail_share.hpp"

#include <gtest/gtest.h>

#include <mutex>
#include <string>
#include <thread>

#include "collectives/gpu/choose.hpp"
#include "tests/gpu/no_path.hpp"
#include "transport/bootstrap/thread_bootstrap.hpp"

namespace gdrx {
namespace {

constexpr int kHosts = 2;
constexpr int kLocals = 2;
constexpr int kRanks = kHosts * kLocals;

class Path final : public gpu::NoPath {
 public:
  Result<std::span<std::byte>> rail_memory(std::uint64_t bytes) override {
    memory_.resize(bytes);
    return std::span(memory_);
  }
  std::uint64_t memory() const noexcept override { return memory_.size(); }

 private:
  std::vector<std::byte> memory_;
};

class Region final : public MemoryRegion {
 public:
  Region(std::span<std::byte> memory, MemoryPath path, Blob key)
      : memory_(memory), path_(path), key_(std::move(key)) {}
  std::span<std::byte> bytes() const noexcept override { return memory_; }
  Blob export_key() const override { return key_; }
  MemoryPath path() const noexcept override { return path_; }

 private:
  std::span<std::byte> memory_;
  MemoryPath path_;
  Blob key_;
};

/// Registers as it is told to.
class Nic final : public Device {
 public:
  Nic(int rank, std::optional<MemoryPath> path) : rank_(rank), path_(path) {}
  Blob address() const override { return {}; }
  Result<std::unique_ptr<MemoryRegion>> register_memory(std::span<std::byte> memory,
                                                        MemoryKind kind) override {
    if (!path_ || kind != MemoryKind::cuda) return fail(Errc::unsupported, "no such NIC");
    return std::make_unique<Region>(memory, *path_, Blob{std::byte{7}, std::byte(rank_)});
  }
  Result<std::unique_ptr<MemoryRegion>> allocate_memory(std::size_t) override {
    return fail(Errc::unsupported, "not here");
  }
  Result<std::unique_ptr<Endpoint>> connect(Rank, std::span<const std::byte>) override {
    return fail(Errc::unsupported, "not here");
  }
  Result<std::size_t> poll(std::span<Completion>) override { return 0; }
  bool busy() const noexcept override { return false; }
  void isolate_peers() noexcept override {}
  std::string describe() const override { return "a NIC"; }

 private:
  int rank_;
  std::optional<MemoryPath> path_;
};

struct Offered {
  std::optional<MemoryPath> path = MemoryPath::dma_buf;  // by the NIC; none: it refuses
  GpuDirect wanted = GpuDirect::automatic;
  bool fabric = true;
};

struct Agreed {
  std::vector<bool> rails;
  std::vector<std::uint64_t> memory;  // that the GPUs' paths hold
  std::vector<std::vector<Rank>> ranks;
  std::string said;
};

/// `odd`: what rank 2 offers; all others offer the default.
Agreed share(const Offered& odd) {
  auto bootstraps = ThreadBootstrap::create_all(kRanks);
  Agreed agreed{std::vector<bool>(kRanks),
                std::vector<std::uint64_t>(kRanks),
                std::vector<std::vector<Rank>>(kRanks),
                {}};
  std::mutex mutex;
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < kRanks; ++rank) {
    threads.emplace_back([&, rank] {
      const Deadline deadline = Deadline::after(steady_clock(), std::chrono::seconds(20));
      const Log log(Level::info, [&](Level, std::string_view line) {
        const std::lock_guard lock(mutex);
        agreed.said += std::string(line) + "\n";
      });
      const auto at = static_cast<std::size_t>(rank);
      auto mesh = ControlMesh::create(*bootstraps[at], {}, Log(), deadline);
      ASSERT_TRUE(mesh.has_value()) << describe(mesh.error());
      const std::vector<std::string> hosts{"a", "a", "b", "b"};
      const auto hierarchy = hierarchy_of(hosts, Rank{rank});
      const Offered offered = rank == 2 ? odd : Offered{};
      Path path;
      Nic nic(rank, offered.path);
      auto rail = share_rails({&path, offered.fabric ? &nic : nullptr, offered.wanted, nullptr},
                              *hierarchy, Rank{rank}, **mesh, log, deadline);
      ASSERT_TRUE(rail.has_value()) << describe(rail.error());
      const std::lock_guard lock(mutex);
      agreed.rails[at] = *rail != nullptr;
      agreed.memory[at] = path.memory();
      if (*rail) agreed.ranks[at] = (*rail)->ranks();
      rail->reset();
    });
  }
  threads.clear();
  return agreed;
}

void expect_nobody(const Agreed& agreed, const std::string& why) {
  EXPECT_EQ(agreed.rails, std::vector<bool>(kRanks, false));
  EXPECT_NE(agreed.said.find("pinned memory instead: rank 2: " + why), std::string::npos)
      << agreed.said;
}

TEST(RailShare, AllRanksHaveRailsOfThoseInTheirPlace) {
  for (const MemoryPath path : {MemoryPath::dma_buf, MemoryPath::peermem}) {
    const Agreed agreed = share({path});
    EXPECT_EQ(agreed.rails, std::vector<bool>(kRanks, true));
    EXPECT_EQ(agreed.ranks[0], (std::vector<Rank>{Rank{0}, Rank{2}}));
    EXPECT_EQ(agreed.ranks[3], (std::vector<Rank>{Rank{1}, Rank{3}}));
    for (const std::uint64_t bytes : agreed.memory) {
      EXPECT_GT(bytes, 3U << 20);
      EXPECT_LE(bytes, gpu::kRailBytes);
    }
    EXPECT_NE(agreed.said.find("GPUDirect RDMA between hosts (dma-buf)"), std::string::npos);
  }
}

TEST(RailShare, NobodyDoesWhereOneRankCannot) {
  expect_nobody(share({std::nullopt}), "no such NIC");
  expect_nobody(share({MemoryPath::staged}), "the NICs cannot reach the GPU's memory");
  expect_nobody(share({MemoryPath::dma_buf, GpuDirect::staged}), "GDRX_GPU_DIRECT is staged");
  expect_nobody(share({MemoryPath::dma_buf, GpuDirect::automatic, false}), "there is no fabric");
}

}  // namespace
}  // namespace gdrx

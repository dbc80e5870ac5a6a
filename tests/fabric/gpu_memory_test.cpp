// SPDX-License-Identifier: Apache-2.0
// GPU memory through the verbs fabric on simulated NICs: registered in each way, written from and
// to, flushed, compared. Linked twice: with a fake GPU, whose memory no processor can touch, and
// with a real one.
#include "tests/fabric/cluster.hpp"
#include "tests/fabric/test_gpu.hpp"

namespace gdrx::sim {
namespace {

constexpr std::size_t kRegion = 1 << 20;

struct Way {
  const char* name;
  GpuDirect wanted;
  MemoryPath path;
  bool dma_buf = true;  // of the NICs
  bool peermem = true;
};

class GpuMemory : public ::testing::TestWithParam<Way> {
 protected:
  void SetUp() override {
    if (const std::string why = no_test_gpu(); !why.empty()) GTEST_SKIP() << why;
    gpu_ = make_test_gpu();
  }
  ClusterSettings settings(const Way& way) const {
    ClusterSettings made;
    made.nics = 2;
    made.gpu = &gpu_->calls();
    made.gpu_direct = way.wanted;
    made.gpu_flush = true;
    made.dma_buf = way.dma_buf;
    made.peermem = way.peermem;
    made.log_level = Level::info;
    return made;
  }
  std::unique_ptr<TestGpu> gpu_;
};

/// A region of each of two hosts.
struct Regions {
  Regions(Cluster& cluster, TestGpu& gpu, std::size_t skip = 0) : cluster_(cluster) {
    from = gpu.allocate(kRegion + skip).subspan(skip);
    to = gpu.allocate(kRegion + skip).subspan(skip);
    source = *cluster[0].device->register_memory(from, MemoryKind::cuda);
    target = *cluster[1].device->register_memory(to, MemoryKind::cuda);
    remote = *cluster[0].endpoints[1]->import_region(target->export_key());
  }
  /// Posts, waits until the receiver is told, flushes.
  void write(std::span<const std::byte> header, std::size_t bytes, Bytes offset,
             std::uint32_t immediate) {
    WriteOp op;
    op.header = header;
    op.payload = from.first(bytes);
    op.local = source.get();
    op.remote = remote;
    op.offset = offset;
    op.has_immediate = true;
    op.immediate = immediate;
    const std::size_t before = cluster_.count(1, CompletionKind::immediate);
    bool posted = false;
    ASSERT_TRUE(cluster_.run_until([&] {
      if (!posted) posted = *cluster_[0].endpoints[1]->post(op) == Progress::done;
      return cluster_.count(1, CompletionKind::immediate) == before + 1;
    }));
    EXPECT_EQ(cluster_[1].completions.back().immediate, immediate);
  }
  void flush() {
    const std::size_t before = cluster_.count(1, CompletionKind::write_done);
    const Flush done = *cluster_[1].device->flush(*target, 77);
    if (done == Flush::not_needed) return;
    ASSERT_TRUE(cluster_.run_until(
        [&] { return cluster_.count(1, CompletionKind::write_done) == before + 1; }));
    EXPECT_EQ(cluster_[1].completions.back().cookie, 77U);
    EXPECT_EQ(index(cluster_[1].completions.back().peer), 1);
  }
  Cluster& cluster_;
  std::span<std::byte> from;
  std::span<std::byte> to;
  std::unique_ptr<MemoryRegion> source;
  std::unique_ptr<MemoryRegion> target;
  RemoteRegionId remote{};
};

TEST_P(GpuMemory, IsWrittenFromAndToAtEverySizeAndNothingBesideIt) {
  Cluster cluster(settings(GetParam()));
  Regions regions(cluster, *gpu_);
  EXPECT_EQ(regions.source->path(), GetParam().path);
  EXPECT_EQ(regions.target->path(), GetParam().path);
  const auto data = pattern(kRegion, 3);
  gpu_->put(regions.from, data);
  std::array<std::uint64_t, 2> header{0x1111, 0x2222};
  const auto head = std::as_bytes(std::span(header));
  std::uint32_t number = 0x10000;  // beyond what fits beside the sequence number
  for (const std::size_t bytes : {0UL, 1UL, 64UL, 1000UL, 1024UL, 5000UL, 65536UL, 300'001UL}) {
    for (const bool with_header : {false, true}) {
      const Bytes offset = 4096 + 8 * number % 4096;
      const auto before = gpu_->get(regions.to);
      regions.write(with_header ? head : std::span<const std::byte>(), bytes, offset,
                    number % 2 == 0 ? number : number % 1000);
      regions.flush();
      auto expected = before;
      std::copy_n(head.begin(), with_header ? 16 : 0,
                  expected.begin() + static_cast<std::ptrdiff_t>(offset));
      std::copy_n(data.begin(), bytes,
                  expected.begin() + static_cast<std::ptrdiff_t>(offset) + (with_header ? 16 : 0));
      ASSERT_TRUE(gpu_->get(regions.to) == expected) << bytes << " bytes, header " << with_header;
      ++number;
    }
  }
}

TEST_P(GpuMemory, OfAnyAlignmentIsRegisteredByItsOwnAddress) {
  Cluster cluster(settings(GetParam()));
  Regions regions(cluster, *gpu_, 12'345);
  const auto data = pattern(100'000, 9);
  gpu_->put(regions.from.first(data.size()), data);
  regions.write({}, data.size(), 77, 5);
  regions.flush();
  EXPECT_TRUE(gpu_->get(regions.to.subspan(77, data.size())) == data);
  EXPECT_EQ(gpu_->get(regions.to.first(77)), std::vector<std::byte>(77));
}

TEST_P(GpuMemory, IsLoggedOnceWithItsWayAndReason) {
  Cluster cluster(settings(GetParam()));
  const Regions first(cluster, *gpu_);
  const Regions second(cluster, *gpu_);
  std::size_t lines = 0;
  for (const std::string& line : cluster[0].log) {
    lines += line.find("GPU 0 (") != std::string::npos ? 1 : 0;
  }
  EXPECT_EQ(lines, 1U);
  const std::string all = cluster[0].device->describe();
  EXPECT_NE(all.find("): " + std::string(to_string(GetParam().path))), std::string::npos) << all;
  EXPECT_EQ(all.find("ibv_reg_dmabuf_mr") != std::string::npos, !GetParam().dma_buf) << all;
  EXPECT_EQ(all.find("ibv_reg_mr") != std::string::npos, !GetParam().peermem) << all;
}

TEST_P(GpuMemory, ThatANicHoldsBackIsThereAfterTheFlush) {
  Cluster cluster(settings(GetParam()));
  Regions regions(cluster, *gpu_);
  cluster.network.set_fault(Fault::gpu_hold, 1);
  const auto data = pattern(200'000, 4);
  gpu_->put(regions.from.first(data.size()), data);
  const bool direct = GetParam().path != MemoryPath::staged;
  for (std::uint32_t round = 0; round < 20; ++round) {
    const Bytes offset = round * 128;
    regions.write({}, data.size(), offset, round);
    regions.flush();
    ASSERT_TRUE(gpu_->get(regions.to.subspan(offset, data.size())) == data) << "round " << round;
  }
  EXPECT_EQ(cluster.network.fired(Fault::gpu_hold) > 0, direct);
  EXPECT_EQ(cluster[1].device->counters().flushes, direct ? 20U : 0U);
  EXPECT_EQ(cluster[1].device->counters().staged, direct ? 0U : 20U * data.size());
}

TEST_P(GpuMemory, IsFlushedWhileARailGoesDownAndAfterItsNicHasDied) {
  Cluster cluster(settings(GetParam()));
  Regions regions(cluster, *gpu_);
  cluster.network.set_fault(Fault::gpu_hold, 1);
  const auto data = pattern(200'000, 4);
  gpu_->put(regions.from.first(data.size()), data);
  for (std::uint32_t round = 0; round < 6; ++round) {
    regions.write({}, data.size(), round * 128, round);
    if (round == 1) cluster.network.set_port(1, 0, false);
    if (round == 3) cluster.network.set_port(1, 0, true);
    if (round == 4) cluster.network.kill_nic(1, 1);
    regions.flush();
    ASSERT_TRUE(gpu_->get(regions.to.subspan(round * 128, data.size())) == data) << round;
  }
}

// As with soft-RoCE: an idle QP fails, and what is posted on it then is never heard of again.
TEST_P(GpuMemory, IsFlushedWhenTheQpOfTheFlushNeverAnswers) {
  Cluster cluster(settings(GetParam()));
  Regions regions(cluster, *gpu_);
  regions.write({}, 4000, 0, 1);
  regions.flush();
  cluster.network.set_fault(Fault::unflushed, 1.0);
  for (int nic = 0; nic < 2; ++nic) cluster.network.break_qps(1, nic);
  regions.write({}, 4000, 0, 2);
  regions.flush();
}

INSTANTIATE_TEST_SUITE_P(
    Ways, GpuMemory,
    ::testing::Values(Way{"DmaBuf", GpuDirect::automatic, MemoryPath::dma_buf},
                      Way{"Peermem", GpuDirect::automatic, MemoryPath::peermem, false},
                      Way{"Staged", GpuDirect::automatic, MemoryPath::staged, false, false},
                      Way{"StagedOnRequest", GpuDirect::staged, MemoryPath::staged}),
    [](const auto& info) { return std::string(info.param.name); });

using GpuMemoryOf = GpuMemory;

TEST_F(GpuMemoryOf, AWayThatIsAskedForAndCannotBeIsRefusedWithTheReason) {
  Cluster cluster(settings({"", GpuDirect::dma_buf, MemoryPath::dma_buf, false, true}));
  const auto refused = cluster[0].device->register_memory(gpu_->allocate(4096), MemoryKind::cuda);
  ASSERT_FALSE(refused.has_value());
  EXPECT_NE(refused.error().what.find("ibv_reg_dmabuf_mr on sim0"), std::string::npos)
      << refused.error().what;
}

TEST_F(GpuMemoryOf, SomebodyElsesExportIsRegisteredByItsDescriptor) {
  Cluster cluster(settings({"", GpuDirect::automatic, MemoryPath::dma_buf}));
  Regions regions(cluster, *gpu_);
  const std::span<std::byte> memory = gpu_->allocate(kRegion);
  {
    const cuda::DmaBuf exported = *gpu_->calls().export_dma_buf(memory);
    regions.target = *cluster[1].device->register_dma_buf(memory, exported.fd(), exported.offset());
  }  // closed, as NCCL does
  EXPECT_EQ(regions.target->path(), MemoryPath::dma_buf);
  regions.remote = *cluster[0].endpoints[1]->import_region(regions.target->export_key());
  const auto data = pattern(100'000, 4);
  gpu_->put(regions.from.first(data.size()), data);
  regions.write({}, data.size(), 512, 5);
  regions.flush();
  EXPECT_TRUE(gpu_->get(memory.subspan(512, data.size())) == data);
}

TEST_F(GpuMemoryOf, AnExportThatIsNoneOrThatNicsDoNotTakeIsRefused) {
  const auto attempt = [&](bool nics_take_it, int fd) {
    Cluster cluster(settings({"", GpuDirect::automatic, MemoryPath::dma_buf, nics_take_it}));
    const auto refused = cluster[0].device->register_dma_buf(gpu_->allocate(4096), fd, 0);
    return refused ? std::string("taken") : describe(refused.error());
  };
  EXPECT_NE(attempt(true, -1).find("Bad file descriptor"), std::string::npos);
  EXPECT_NE(attempt(false, 0).find("not supported"), std::string::npos);
}

TEST_F(GpuMemoryOf, HostMemoryTalksToGpuMemoryBothWays) {
  Cluster cluster(settings({"", GpuDirect::automatic, MemoryPath::dma_buf}));
  Regions regions(cluster, *gpu_);
  const auto data = pattern(50'000, 8);
  // to the GPU, from memory that is not registered
  WriteOp op;
  op.payload = data;
  op.remote = regions.remote;
  op.has_immediate = true;
  ASSERT_TRUE(
      cluster.run_until([&] { return *cluster[0].endpoints[1]->post(op) == Progress::done; }));
  ASSERT_TRUE(cluster.run_until([&] { return cluster.count(1, CompletionKind::immediate) == 1; }));
  regions.flush();
  EXPECT_TRUE(gpu_->get(regions.to.first(data.size())) == data);
  // from the GPU, into host memory: small and large
  gpu_->put(regions.from.first(data.size()), data);
  for (const std::size_t bytes : {100UL, 50'000UL}) {
    op.payload = regions.from.first(bytes);
    op.local = regions.source.get();
    op.remote = cluster[0].receive_rings[1];
    op.offset = 128;
    const std::size_t before = cluster.count(1, CompletionKind::immediate);
    ASSERT_TRUE(
        cluster.run_until([&] { return *cluster[0].endpoints[1]->post(op) == Progress::done; }));
    ASSERT_TRUE(cluster.run_until(
        [&] { return cluster.count(1, CompletionKind::immediate) == before + 1; }));
    const auto landed = cluster[1].receive_ring->bytes().subspan(128, bytes);
    EXPECT_TRUE(std::equal(landed.begin(), landed.end(), data.begin()));
  }
}

}  // namespace
}  // namespace gdrx::sim

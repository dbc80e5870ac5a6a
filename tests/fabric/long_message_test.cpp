// SPDX-License-Identifier: Apache-2.0
// Messages longer than a NIC takes at once, and longer than a length of 32 bits can say.
#include <sys/mman.h>
#include <unistd.h>

#include "tests/fabric/cluster.hpp"

namespace gdrx::sim {
namespace {

using std::chrono::seconds;

class LongMessage : public ::testing::TestWithParam<int> {};  // adaptive routing

TEST_P(LongMessage, GoesInAsManyWritesAsTheNicNeeds) {
  ClusterSettings settings;
  settings.max_message = 64 * 1024;
  settings.adaptive_routing = GetParam();
  Cluster cluster(settings);
  const auto header = pattern(48, 3);
  std::uint32_t number = 0;
  for (const std::size_t size : {65536 - 48, 65536, 65537, 131072, 500'001}) {
    const auto data = pattern(size, size);
    ASSERT_TRUE(cluster.run_until([&] {
      return cluster.post(0, 1, header, data, 64, number, number).value() == Progress::done;
    }));
    ASSERT_TRUE(cluster.run_until([&] {
      return cluster.count(1, CompletionKind::immediate) == number + 1 &&
             cluster.count(0, CompletionKind::write_done) == number + 1;
    })) << size;
    const auto landed = cluster[1].receive_ring->bytes();
    EXPECT_TRUE(std::equal(header.begin(), header.end(), landed.begin() + 64)) << size;
    EXPECT_TRUE(std::equal(data.begin(), data.end(), landed.begin() + 64 + 48)) << size;
    EXPECT_EQ(landed[64 + 48 + size], std::byte{0}) << size;
    ++number;
  }
  EXPECT_TRUE(cluster[0].log.empty());
}
INSTANTIATE_TEST_SUITE_P(Routing, LongMessage, ::testing::Values(0, 1));

// 120 work requests at most are on a queue pair at once.
TEST(LongMessages, ThatNoQueueHoldsAreRefusedWithWhatToDo) {
  ClusterSettings settings;
  settings.max_message = 64 * 1024;
  settings.receive_ring = 16 << 20;
  Cluster cluster(settings);
  auto source = *cluster[0].device->allocate_memory(16 << 20);
  ASSERT_TRUE(cluster.run_until(
      [&] { return cluster[0].device->state().find(" up ") != std::string::npos; }));
  const auto posted = cluster.post(0, 1, {}, source->bytes(), 0, 1, 1, source.get());
  ASSERT_FALSE(posted.has_value());
  EXPECT_NE(posted.error().what.find("write less at a time"), std::string::npos);
}

/// Address space for more than 4 GiB in 64 MiB of memory that it shows again and again, and a tail
/// of its own.
class Repeated {
 public:
  static constexpr std::size_t kPeriod = 64 << 20;
  static constexpr std::size_t kTail = 1 << 20;
  static constexpr std::size_t kBytes = (std::size_t{4} << 30) + kTail;

  Repeated() {
    const int file = memfd_create("repeated", 0);
    EXPECT_EQ(ftruncate(file, kPeriod), 0);
    base_ = static_cast<std::byte*>(mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    EXPECT_NE(base_, MAP_FAILED);
    for (std::size_t at = 0; at + kPeriod < kBytes; at += kPeriod) {
      EXPECT_NE(mmap(base_ + at, kPeriod, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0),
                MAP_FAILED);
    }
    close(file);
  }
  ~Repeated() { munmap(base_, kBytes); }
  Repeated(const Repeated&) = delete;
  Repeated& operator=(const Repeated&) = delete;
  std::span<std::byte> bytes() const { return {base_, kBytes}; }
  std::span<std::byte> period() const { return {base_, kPeriod}; }
  std::span<std::byte> tail() const { return bytes().last(kTail); }

 private:
  std::byte* base_ = nullptr;
};

// 4 GiB and 1 MiB: a length of 32 bits would say 1 MiB.
TEST(LongMessages, OfMoreThan4GiBArriveWhole) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer keeps a shadow of four times what is touched";
#endif
  const Repeated from;
  const Repeated to;
  const auto period = pattern(Repeated::kPeriod, 1);
  const auto tail = pattern(Repeated::kTail, 2);
  std::copy(period.begin(), period.end(), from.period().begin());
  std::copy(tail.begin(), tail.end(), from.tail().begin());
  ClusterSettings settings;
  settings.max_message = 64 << 20;
  settings.timeout = 20;  // 64 MiB take 5 ms of the simulated time
  Cluster cluster(settings);
  auto source = *cluster[0].device->register_memory(from.bytes(), MemoryKind::host);
  auto target = *cluster[1].device->register_memory(to.bytes(), MemoryKind::host);
  WriteOp op;
  op.payload = from.bytes();
  op.local = source.get();
  op.remote = *cluster[0].endpoints[1]->import_region(target->export_key());
  op.has_immediate = true;
  op.immediate = 7;
  bool posted = false;
  ASSERT_TRUE(cluster.run_until(
      [&] {
        if (!posted) posted = *cluster[0].endpoints[1]->post(op) == Progress::done;
        return cluster.count(1, CompletionKind::immediate) == 1 &&
               cluster.count(0, CompletionKind::write_done) == 1;
      },
      seconds(20), std::chrono::milliseconds(1)));
  EXPECT_TRUE(std::equal(tail.begin(), tail.end(), to.tail().begin()));
  EXPECT_TRUE(std::equal(period.begin(), period.end(), to.period().begin()));
  EXPECT_GE(cluster.network.bytes_moved(), Repeated::kBytes);
}

}  // namespace
}  // namespace gdrx::sim

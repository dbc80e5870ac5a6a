// SPDX-License-Identifier: Apache-2.0
// A peer that lies in its keys, or writes what cannot be into memory that it shares.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/shm/pair.hpp"
#include "transport/shm/mailbox.hpp"
#include "transport/shm/segment.hpp"
#include "transport/shm/wire.hpp"

namespace gdrx::test {
namespace {

template <class T>
Blob changed(Blob blob, void (*change)(T&)) {
  T value;
  std::memcpy(&value, blob.data(), sizeof value);
  change(value);
  std::memcpy(blob.data(), &value, sizeof value);
  return blob;
}

using shm::Address;
using shm::RegionKey;

TEST(ShmKey, OfAnotherLengthIsRefused) {
  ShmPair pair;
  const Blob key = pair.region->export_key();
  for (const std::size_t length : {std::size_t{0}, std::size_t{1}, key.size() - 1}) {
    const auto imported = pair.endpoint->import_region(std::span(key).first(length));
    ASSERT_FALSE(imported) << length;
    EXPECT_EQ(imported.error().code, Errc::protocol);
  }
}

TEST(ShmKey, ThatLiesIsRefused) {
  ShmPair pair;
  const Blob key = pair.region->export_key();
  const std::initializer_list<void (*)(RegionKey&)> lies{
      [](RegionKey& one) { one.magic ^= 1; },
      [](RegionKey& one) { one.region = 1 << 16; },
      [](RegionKey& one) { one.memory.nonce ^= 1; },
      [](RegionKey& one) { one.memory.bytes += 4096; },
      [](RegionKey& one) { one.memory.bytes = ~std::uint64_t{0}; },
      [](RegionKey& one) { one.memory.nonce ^= 1, one.memory.bytes = ~std::uint64_t{0}; },
      [](RegionKey& one) { one.memory.nonce ^= 1, one.memory.fd = 0; },
      [](RegionKey& one) { one.memory.nonce ^= 1, one.memory.fd = -1; }};
  for (const auto lie : lies) EXPECT_FALSE(pair.endpoint->import_region(changed(key, lie)));
  EXPECT_TRUE(pair.endpoint->import_region(key));
}

TEST(ShmAddress, ThatLiesIsRefused) {
  ShmPair pair;
  const Blob address = pair.receiver->address();
  const std::initializer_list<void (*)(Address&)> lies{
      [](Address& one) { one.magic ^= 1; },
      [](Address& one) { one.ranks = 1; },
      [](Address& one) { one.ranks = 4096; },
      [](Address& one) { one.ranks = ~0U; },
      [](Address& one) { one.memory.bytes -= 4096; },
      [](Address& one) { one.memory.nonce ^= 1; },
      [](Address& one) { one.offset = 64; },
      [](Address& one) { one.offset = 4096; },
      [](Address& one) { one.offset = ~std::uint64_t{4095}; }};
  for (const auto lie : lies) {
    EXPECT_FALSE(pair.sender->connect(Rank{1}, changed(address, lie)));
  }
  EXPECT_FALSE(pair.sender->connect(Rank{2}, address)) << "it has no place for that rank";
  EXPECT_FALSE(pair.sender->connect(Rank{1}, std::span(address).first(8)));
  EXPECT_TRUE(pair.sender->connect(Rank{1}, address));
}

// Whoever maps it would get a SIGBUS from him who cuts it.
TEST(ShmMemory, ThatCouldBeCutIsRefused) {
  const int fd = memfd_create("gdrx-test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  const std::uint64_t nonce = 77;
  ASSERT_EQ(ftruncate(fd, 3 * 4096), 0);
  ASSERT_EQ(pwrite(fd, &nonce, sizeof nonce, 0), ssize_t{sizeof nonce});
  const ArenaTicket ticket{getpid(), fd, 4096, nonce};
  const auto opened = shm::Segment::open(ticket);
  ASSERT_FALSE(opened);
  EXPECT_NE(opened.error().what.find("not sealed"), std::string::npos) << opened.error().what;
  close(fd);
}

class LyingMailbox : public testing::TestWithParam<shm::Word> {
 protected:
  // As a peer does that has mapped it.
  void lie(ShmPair& pair) {
    Address address;
    std::memcpy(&address, pair.receiver->address().data(), sizeof address);
    segment_ = shm::Segment::open(address.memory).value();
    shm::Mailbox(segment_->bytes(), address.ranks).tell(0, GetParam());
  }
  std::shared_ptr<shm::Segment> segment_;
};

TEST_P(LyingMailbox, EndsTheDeviceAndNamesTheLiar) {
  ShmPair pair;
  lie(pair);
  std::array<Completion, 64> some;
  const auto polled = pair.receiver->poll(some);
  ASSERT_FALSE(polled);
  EXPECT_EQ(polled.error().code, Errc::protocol);
  EXPECT_NE(polled.error().what.find("rank 0"), std::string::npos) << polled.error().what;
}

TEST_P(LyingMailbox, EndsItsEndpointAloneWherePeersAreIsolated) {
  ShmPair pair(3);
  const auto back = pair.receiver->connect(Rank{0}, pair.sender->address()).value();
  pair.receiver->isolate_peers();
  lie(pair);
  std::array<Completion, 64> some;
  EXPECT_EQ(pair.receiver->poll(some).value(), 0U);
  ASSERT_NE(back->error(), nullptr);
  EXPECT_FALSE(back->post(WriteOp{}));
  const auto other = open_shm(Rank{2}, 3);
  const auto endpoint = other->connect(Rank{1}, pair.receiver->address()).value();
  const auto remote = endpoint->import_region(pair.region->export_key()).value();
  ASSERT_TRUE(endpoint->post(write_of({}, remote, 0)));
  EXPECT_EQ(pair.receiver->poll(some).value(), 1U) << "the others go on";
}

INSTANTIATE_TEST_SUITE_P(Words, LyingMailbox,
                         testing::Values(shm::Word{300, 0, 1}, shm::Word{65'535, 0, 1},
                                         shm::Word{2, 0, 1}, shm::Word{0, 0, 1}));

}  // namespace
}  // namespace gdrx::test

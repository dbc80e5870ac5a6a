// SPDX-License-Identifier: Apache-2.0
// From post to completion the tcp fabric takes nothing from the heap and no lock, and neither does
// what encrypts for it. Nor does its end.
#include <dlfcn.h>
#include <pthread.h>

#include <cstdlib>

#include "tests/tcp/pair.hpp"

extern "C" void* __libc_malloc(std::size_t bytes);

namespace {

bool counting = false;
bool refusing = false;    // there is no memory any more
std::uint64_t taken = 0;  // blocks of the heap
std::uint64_t locks = 0;

}  // namespace

extern "C" void* malloc(std::size_t bytes) {
  taken += counting ? 1 : 0;
  return refusing ? nullptr : __libc_malloc(bytes);
}

extern "C" __attribute__((visibility("default"))) int pthread_mutex_lock(pthread_mutex_t* mutex) {
  using Lock = int(pthread_mutex_t*);
  static Lock* real = reinterpret_cast<Lock*>(dlsym(RTLD_NEXT, "pthread_mutex_lock"));
  locks += counting ? 1 : 0;
  return real(mutex);
}

namespace gdrx::test {
namespace {

class TcpHotPath : public testing::TestWithParam<bool> {};

bool pass(TcpPair& pair, RemoteRegionId remote, std::span<const std::byte> payload) {
  const WriteOp op = write_of(payload, remote, 0);
  bool posted = false;
  bool there = false;
  bool done = false;
  std::array<Completion, 4> some;
  for (int tries = 0; !there || !done; ++tries) {
    if (tries == 1'000'000) return false;
    if (!posted) posted = *pair.endpoint->post(op) == Progress::done;
    const auto of_sender = pair.sender->poll(some);
    if (!of_sender) return false;
    done |= *of_sender > 0;
    const auto of_receiver = pair.receiver->poll(some);
    if (!of_receiver) return false;
    there |= *of_receiver > 0;
  }
  return true;
}

TEST_P(TcpHotPath, TakesNothingFromTheHeapAndNoLock) {
  TcpPair pair(GetParam());
  const RemoteRegionId remote = pair.import();
  const Blob payload(1 << 20);
  const auto all = [&](int rounds) {
    for (int i = 0; i < rounds; ++i) {
      for (const std::size_t size : {8U, 700U, 5000U, 50'000U, 1U << 20}) {
        if (!pass(pair, remote, std::span(payload).first(size))) return false;
      }
    }
    return true;
  };
  ASSERT_TRUE(all(10));
  taken = locks = 0;
  counting = true;
  const bool passed = all(100);
  counting = false;
  ASSERT_TRUE(passed);
  EXPECT_EQ(taken, 0U);
  EXPECT_EQ(locks, 0U);
  counting = true;
  ::operator delete(::operator new(8));
  counting = false;
  EXPECT_EQ(taken, 1U) << "the counter counts";
}

TEST_P(TcpHotPath, EndsAllTheSameWhereThereIsNoMemory) {
  TcpPair pair(GetParam());
  const Blob payload(100);
  ASSERT_TRUE(pass(pair, pair.import(), payload));
  ASSERT_TRUE(pair.endpoint->post(write_of(payload, pair.import(), 0)));
  refusing = true;
  pair.endpoint.reset();
  pair.region.reset();
  pair.sender.reset();
  pair.receiver.reset();
  refusing = false;
}

INSTANTIATE_TEST_SUITE_P(PlainAndEncrypted, TcpHotPath, testing::Values(true, false));

}  // namespace
}  // namespace gdrx::test

// SPDX-License-Identifier: Apache-2.0
// From post to completion the shm fabric takes nothing from the heap and no lock.
#include <dlfcn.h>
#include <pthread.h>

#include "tests/shm/pair.hpp"
#include "transport/shm/segment.hpp"

extern "C" void* __libc_malloc(std::size_t bytes);
extern "C" void __libc_free(void* block);

namespace {

bool counting = false;
std::uint64_t taken = 0;  // blocks of the heap
std::int64_t kept = 0;    // of the blocks that were taken while it counted, and given back
std::uint64_t locks = 0;

}  // namespace

extern "C" void* malloc(std::size_t bytes) {
  taken += counting ? 1 : 0;
  kept += counting ? 1 : 0;
  return __libc_malloc(bytes);
}

extern "C" void free(void* block) {
  kept -= counting && block != nullptr ? 1 : 0;
  __libc_free(block);
}

extern "C" __attribute__((visibility("default"))) int pthread_mutex_lock(pthread_mutex_t* mutex) {
  using Lock = int(pthread_mutex_t*);
  static Lock* real = reinterpret_cast<Lock*>(dlsym(RTLD_NEXT, "pthread_mutex_lock"));
  locks += counting ? 1 : 0;
  return real(mutex);
}

namespace gdrx::test {
namespace {

class ShmHotPath : public testing::TestWithParam<std::uint32_t> {};

TEST_P(ShmHotPath, TakesNothingFromTheHeapAndNoLock) {
  ShmPair pair(GetParam());
  const RemoteRegionId remote = pair.import();
  const Blob payload(1 << 20);
  std::array<Completion, 4> some;
  std::uint64_t told = 0;
  counting = true;
  for (int i = 0; i < 100; ++i) {
    for (const std::size_t size : {0U, 8U, 5000U, 1U << 20}) {
      told += *pair.endpoint->post(write_of(std::span(payload).first(size), remote, 0)) ==
              Progress::done;
      told += *pair.sender->poll(some);
      told += *pair.receiver->poll(some);
    }
  }
  counting = false;
  EXPECT_EQ(told, 1200U);
  EXPECT_EQ(taken, 0U);
  EXPECT_EQ(locks, 0U);
  counting = true;
  ::operator delete(::operator new(8));
  counting = false;
  EXPECT_EQ(taken, 1U) << "the counter counts";
  taken = 0;
}

// Else a process keeps a part of each communicator's segments until the next one is made.
TEST(ShmSegments, ThatAreGoneLeaveNothing) {
  const auto make = [](std::size_t count) {
    std::array<std::shared_ptr<shm::Segment>, 3> segments;
    for (std::size_t i = 0; i < count; ++i) segments[i] = *shm::Segment::create(4096);
  };
  make(1);  // what is made once for all
  taken = 0;
  counting = true;
  make(3);
  counting = false;
  EXPECT_EQ(kept, 0);
  EXPECT_GT(taken, 0U) << "the counter counts";
  taken = locks = 0;
}

INSTANTIATE_TEST_SUITE_P(Ranks, ShmHotPath, testing::Values(2, 9));

}  // namespace
}  // namespace gdrx::test

// SPDX-License-Identifier: Apache-2.0
#include "transport/memory/surely_host.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <thread>

namespace gdrx::test {
namespace {

// gtest_main runs tests in the process's first thread.
TEST(HeapOrStack, IsTheFirstThreadsStackAndTheHeap) {
  const int here = 0;
  EXPECT_TRUE(is_on_heap_or_stack(&here));
  const void* const more = sbrk(64);  // not of an allocator, which may map all that it has
  ASSERT_NE(more, reinterpret_cast<void*>(-1));
  EXPECT_TRUE(is_on_heap_or_stack(more));
}

// A driver's memory may be anywhere there.
TEST(HeapOrStack, IsNotWhatIsMapped) {
  void* const mapped = mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(mapped, MAP_FAILED);
  EXPECT_FALSE(is_on_heap_or_stack(mapped));
  munmap(mapped, 4096);
  std::jthread([] {
    const int there = 0;
    EXPECT_FALSE(is_on_heap_or_stack(&there)) << "the stack of another thread";
  });
  EXPECT_FALSE(is_on_heap_or_stack(nullptr));
  EXPECT_FALSE(is_on_heap_or_stack(static_cast<const std::byte*>(sbrk(0)) + 4096))
      << "behind the break";
}

}  // namespace
}  // namespace gdrx::test

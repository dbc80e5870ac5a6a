// SPDX-License-Identifier: Apache-2.0
// From post to completion gdrx allocates nothing, takes no lock and makes no system call. Counted
// by replacing operator new and pthread_mutex_lock, and by a kernel that kills at a system call.
#include <dlfcn.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <new>

#include "tests/fabric/boundary.hpp"

namespace {

// Only what runs between entering gdrx and entering the simulated NIC is counted.
std::uint64_t allocations = 0;
std::uint64_t locks = 0;

}  // namespace

using gdrx::sim::Count;

void* operator new(std::size_t bytes) {
  allocations += Count::counting ? 1 : 0;
  void* memory = std::malloc(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

extern "C" int pthread_mutex_lock(pthread_mutex_t* mutex) {
  using Lock = int(pthread_mutex_t*);
  static Lock* real = reinterpret_cast<Lock*>(dlsym(RTLD_NEXT, "pthread_mutex_lock"));
  locks += Count::counting ? 1 : 0;
  return real(mutex);
}

namespace gdrx::sim {
namespace {

struct Drive {
  Cluster cluster;
  std::vector<std::byte> data = pattern(100'000, 1);
  std::unique_ptr<MemoryRegion> registered;
  std::uint64_t delivered = 0;
  std::uint64_t wanted = 0;

  Drive() : cluster(settings()) {
    registered = *cluster[0].device->register_memory(data, MemoryKind::host);
    for (auto& host : cluster.hosts) draw_line(*host);
  }
  static ClusterSettings settings() {
    ClusterSettings made;
    made.nics = 2;
    return made;
  }
  /// Counted: nothing but post() and poll().
  bool messages(int count) {
    constexpr std::array<std::size_t, 5> kSizes{8, 700, 5000, 50'000, 100'000};
    std::array<Completion, 16> batch;
    for (int i = 0; i < count; ++i) {
      const std::size_t size = kSizes[static_cast<std::size_t>(i) % kSizes.size()];
      WriteOp op;
      op.payload = std::span(data).first(size);
      op.local = i % 2 == 0 ? registered.get() : nullptr;  // or through the staging memory
      op.remote = cluster[0].receive_rings[1];
      op.has_immediate = true;
      op.immediate = i % 3 == 0 ? 0x12345678U : 5U;
      ++wanted;
      bool posted = false;
      for (int tries = 0; delivered != wanted || !posted; ++tries) {
        if (tries == 100'000) return false;
        cluster.network.run_for(std::chrono::microseconds(1));
        const Count on(true);
        if (!posted) posted = *cluster[0].endpoints[1]->post(op) == Progress::done;
        if (!cluster[0].device->poll(batch)) return false;
        const auto arrived = cluster[1].device->poll(batch);
        if (!arrived) return false;
        for (const Completion& c : std::span(batch).first(*arrived)) {
          delivered += c.kind == CompletionKind::immediate ? 1 : 0;
        }
      }
    }
    return true;
  }
};

TEST(HotPath, AllocatesNothingAndTakesNoLock) {
  Drive run;
  ASSERT_TRUE(run.messages(1000));
  allocations = locks = 0;
  ASSERT_TRUE(run.messages(5000));
  EXPECT_EQ(allocations, 0U);
  EXPECT_EQ(locks, 0U);
  const auto before = allocations;
  {
    const Count on(true);
    ::operator delete(::operator new(8));  // the counter counts
  }
  EXPECT_EQ(allocations, before + 1);
}

// In a child, where strict seccomp allows read, write and exit alone. The simulated NIC's own
// memory comes from a heap that has been filled before.
TEST(HotPath, MakesNoSystemCall) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
    mallopt(M_MMAP_THRESHOLD, 1 << 30);
    mallopt(M_TOP_PAD, 256 << 20);
    Drive run;
    const bool warm = run.messages(1000);
    if (!warm || prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) != 0) syscall(SYS_exit, 2);
    syscall(SYS_exit, run.messages(2000) ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_FALSE(WIFSIGNALED(status)) << "killed at a system call";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace gdrx::sim

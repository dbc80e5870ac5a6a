// SPDX-License-Identifier: Apache-2.0
#include "tests/emulated/fibers.hpp"

#include <setjmp.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif

namespace gdrx::emulated {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(GDRX_THREAD_SANITIZER)
constexpr std::size_t kStack = 256 << 10;
#else
constexpr std::size_t kStack = 64 << 10;
#endif

/// Stacks, kept: every kernel needs hundreds. They lie side by side: the lowest word tells whether
/// one grew into the next.
class Stacks {
 public:
  static void* take() {
    const std::lock_guard lock(mutex_);
    if (!idle().empty()) {
      void* stack = idle().back();
      idle().pop_back();
      return stack;
    }
    void* stack = mmap(nullptr, kStack, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (stack == MAP_FAILED) std::abort();
    *static_cast<std::uint64_t*>(stack) = kUntouched;
    return stack;
  }
  static void give(void* stack) {
    if (*static_cast<std::uint64_t*>(stack) != kUntouched) {
      std::fputs("an emulated thread needs more stack than it has\n", stderr);
      std::abort();
    }
    const std::lock_guard lock(mutex_);
    idle().push_back(stack);
  }

 private:
  static constexpr std::uint64_t kUntouched = 0x5afe5afe5afe5afe;
  static constinit inline std::mutex mutex_;
  static std::vector<void*>& idle() {
    static auto& all = *new std::vector<void*>;
    return all;
  }
};

struct Fiber {
  ucontext_t first{};  // how it begins
  jmp_buf place{};     // where it is, once begun
  void* unseen[5]{};   // so, too
  void* stack = nullptr;
  bool begun = false;
  bool ended = false;
};

/// What a thread runs.
struct Scheduler {
  const std::function<void(int)>* body = nullptr;
  jmp_buf home{};
  void* unseen[5]{};
  std::vector<Fiber> fibers;
  std::size_t current = 0;
  bool moved = false;           // in this round
  const void* stack = nullptr;  // the thread's own, where a sanitizer tells it
  std::size_t stack_bytes = 0;
};
thread_local Scheduler* scheduler = nullptr;

// AddressSanitizer is told of every change of stacks.
[[maybe_unused]] void leave_stack([[maybe_unused]] void** kept, [[maybe_unused]] const void* next,
                                  [[maybe_unused]] std::size_t bytes) {
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_start_switch_fiber(kept, next, bytes);
#endif
}
void enter_stack([[maybe_unused]] void* kept, [[maybe_unused]] const void** before,
                 [[maybe_unused]] std::size_t* bytes) {
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_finish_switch_fiber(kept, before, bytes);
#endif
}

#ifdef GDRX_THREAD_SANITIZER
// To ThreadSanitizer the fibers of a thread are that thread, as they take turns: it follows libc's
// jumps within one stack alone, and does not see the compiler's.
[[noreturn, gnu::noinline]] void jump(void** place) { __builtin_longjmp(place, 1); }

[[gnu::noinline]] void go_home(Fiber& from) {
  if (__builtin_setjmp(from.unseen) == 0) jump(scheduler->unseen);
}

[[gnu::noinline]] void go_to(Fiber& to) {
  if (__builtin_setjmp(scheduler->unseen) != 0) return;
  if (to.begun) jump(to.unseen);
  to.begun = true;
  setcontext(&to.first);
}
#else
// By jumps: swapcontext() would enter the kernel at each change, for the signal mask.
void go_home(Fiber& from) {
  Scheduler& all = *scheduler;
  void* kept = nullptr;
  leave_stack(from.ended ? nullptr : &kept, all.stack, all.stack_bytes);
  if (_setjmp(from.place) == 0) _longjmp(all.home, 1);
  enter_stack(kept, &all.stack, &all.stack_bytes);
}

void go_to(Fiber& to) {
  Scheduler& all = *scheduler;
  void* kept = nullptr;
  leave_stack(&kept, to.stack, kStack);
  if (_setjmp(all.home) == 0) {
    if (to.begun) _longjmp(to.place, 1);
    to.begun = true;
    setcontext(&to.first);
  }
  enter_stack(kept, nullptr, nullptr);
}
#endif

void begin() {
  Scheduler& all = *scheduler;
  enter_stack(nullptr, &all.stack, &all.stack_bytes);
  Fiber& self = all.fibers[all.current];
  (*all.body)(static_cast<int>(all.current));
  self.ended = true;
  go_home(self);
}

}  // namespace

void run_fibers(int count, const std::function<void(int)>& body) {
  Scheduler all;
  all.body = &body;
  all.fibers.resize(static_cast<std::size_t>(count));
  for (Fiber& fiber : all.fibers) {
    fiber.stack = Stacks::take();
    getcontext(&fiber.first);
    fiber.first.uc_stack.ss_sp = fiber.stack;
    fiber.first.uc_stack.ss_size = kStack;
    makecontext(&fiber.first, begin, 0);
  }
  scheduler = &all;
  for (std::size_t left = all.fibers.size(), round = 0; left > 0; ++round) {
    left = 0;
    for (all.current = 0; all.current < all.fibers.size(); ++all.current) {
      Fiber& fiber = all.fibers[all.current];
      if (fiber.ended) continue;
      go_to(fiber);
      left += fiber.ended ? 0 : 1;
    }
    // They wait for other blocks, whose threads may be many more than the processors.
    if (left > 0 && round > 0 && !std::exchange(all.moved, false)) {
      std::this_thread::sleep_for(std::chrono::microseconds(10));
    }
  }
  scheduler = nullptr;
  for (const Fiber& fiber : all.fibers) Stacks::give(fiber.stack);
}

void switch_fiber() { go_home(scheduler->fibers[scheduler->current]); }
void moved_on() { scheduler->moved = true; }

}  // namespace gdrx::emulated

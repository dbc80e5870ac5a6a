// SPDX-License-Identifier: Apache-2.0
#include "tests/emulated/fibers.hpp"

#include <sys/mman.h>
#include <ucontext.h>

#include <chrono>
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
constexpr bool kSanitized = true;  // of which each fiber is a new one
#else
constexpr std::size_t kStack = 64 << 10;
constexpr bool kSanitized = false;
#endif
constexpr std::uint64_t kUntouched = 0x5afe5afe5afe5afe;

/// On a stack of its own. When its body has ended it waits there for another.
struct Fiber {
  void* place[5]{};  // where it is, once begun
  void* stack = nullptr;
  bool begun = false;
  bool ended = false;
  const std::uint64_t* word = nullptr;  // what it waits for: that it is no longer
  std::uint64_t value = 0;              // this
};

/// Fibers, kept: every kernel needs hundreds. Their stacks lie side by side: the lowest word tells
/// whether one grew into the next.
class Fibers {
 public:
  static std::vector<Fiber*> take(std::size_t count) {
    std::vector<Fiber*> taken;
    taken.reserve(count);
    const std::lock_guard lock(mutex_);
    while (taken.size() < count) {
      if (idle().empty()) make();
      taken.push_back(idle().back());
      idle().pop_back();
    }
    return taken;
  }
  static void give(const std::vector<Fiber*>& taken) {
    for (const Fiber* fiber : taken) {
      if (*static_cast<std::uint64_t*>(fiber->stack) == kUntouched) continue;
      std::fputs("an emulated thread needs more stack than it has\n", stderr);
      std::abort();
    }
    const std::lock_guard lock(mutex_);
    idle().insert(idle().end(), taken.rbegin(), taken.rend());
  }

 private:
  /// Many at once. Each begins at another place of its page, as else all would share a few lines of
  /// the caches, and just below the lowest word of the next, so that both are of one page.
  static void make() {
    constexpr std::size_t kMany = 64, kStride = kStack + 192;
    void* const memory = mmap(nullptr, kMany * kStride, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) std::abort();
    for (std::size_t i = kMany; i-- > 0;) {
      auto* const fiber = new Fiber;
      fiber->stack = static_cast<std::byte*>(memory) + i * kStride;
      *static_cast<std::uint64_t*>(fiber->stack) = kUntouched;
      idle().push_back(fiber);
    }
  }
  static constinit inline std::mutex mutex_;
  static std::vector<Fiber*>& idle() {
    static auto& all = *new std::vector<Fiber*>;
    return all;
  }
};

/// What a thread runs.
struct Scheduler {
  const std::function<void(int)>* body = nullptr;
  void* home[5]{};
  std::vector<Fiber*> fibers;
  std::size_t current = 0;
  bool moved = false;           // in this round
  const void* stack = nullptr;  // the thread's own, where a sanitizer tells it
  std::size_t stack_bytes = 0;
};
thread_local Scheduler* scheduler = nullptr;

/// A fiber may wake up in another thread than it fell asleep in, which the compiler does not think
/// of.
[[gnu::noinline, gnu::noipa]] Scheduler& here() { return *scheduler; }

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

void begin();

/// Does not return. The kernel is entered: who can be woken up by a jump is.
void start(Fiber& fiber) {
  ucontext_t first{};
  getcontext(&first);
  first.uc_stack.ss_sp = fiber.stack;
  first.uc_stack.ss_size = kStack;
  makecontext(&first, begin, 0);
  fiber.begun = true;
  setcontext(&first);
}

// By the compiler's jumps. swapcontext() would enter the kernel at each change, for the signal
// mask; libc's longjmp() looks for handlers to run, and ThreadSanitizer follows it within one stack
// alone.
[[noreturn, gnu::noinline]] void jump(void** place) { __builtin_longjmp(place, 1); }

[[gnu::noinline]] void go_home(Fiber& from) {
  Scheduler& all = here();
  void* kept = nullptr;
  leave_stack(from.ended ? nullptr : &kept, all.stack, all.stack_bytes);
  if (__builtin_setjmp(from.place) == 0) jump(all.home);
  Scheduler& now = here();
  enter_stack(kept, &now.stack, &now.stack_bytes);
}

[[gnu::noinline]] void go_to(Fiber& to) {
  Scheduler& all = here();
  void* kept = nullptr;
  leave_stack(&kept, to.stack, kStack);
  if (__builtin_setjmp(all.home) == 0) {
    if (to.begun) jump(to.place);
    start(to);
  }
  enter_stack(kept, nullptr, nullptr);
}

void begin() {
  enter_stack(nullptr, &here().stack, &here().stack_bytes);
  for (;;) {
    Scheduler& all = here();
    Fiber& self = *all.fibers[all.current];
    (*all.body)(static_cast<int>(all.current));
    self.ended = true;
    go_home(self);
  }
}

/// A turn of each that has something to do. Returns how many have not ended.
std::size_t take_turns(Scheduler& all) {
  std::size_t left = 0;
  for (all.current = 0; all.current < all.fibers.size(); ++all.current) {
    Fiber& fiber = *all.fibers[all.current];
    if (fiber.ended) continue;
    if (fiber.word == nullptr || *fiber.word != fiber.value) go_to(fiber);
    left += fiber.ended ? 0 : 1;
  }
  return left;
}

}  // namespace

void run_fibers(int count, const std::function<void(int)>& body) {
  Scheduler all;
  all.body = &body;
  all.fibers = Fibers::take(static_cast<std::size_t>(count));
  for (Fiber* fiber : all.fibers) {
    fiber->ended = false;
    if (kSanitized) fiber->begun = false;
  }
  scheduler = &all;
  for (std::size_t round = 0; take_turns(all) > 0; ++round) {
    // They wait for other blocks, whose threads may be many more than the processors.
    if (round > 0 && !std::exchange(all.moved, false)) {
      std::this_thread::sleep_for(std::chrono::microseconds(10));
    }
  }
  scheduler = nullptr;
  Fibers::give(all.fibers);
}

void switch_fiber() {
  Scheduler& all = here();
  go_home(*all.fibers[all.current]);
}
void wait_while(const std::uint64_t& word, std::uint64_t value) {
  Scheduler& all = here();
  Fiber& self = *all.fibers[all.current];
  self.word = &word;
  self.value = value;
  while (word == value) go_home(self);
  self.word = nullptr;
}
void moved_on() { here().moved = true; }

}  // namespace gdrx::emulated

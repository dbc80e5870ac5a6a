// SPDX-License-Identifier: Apache-2.0
#include "tests/swarm/faults.hpp"

#include <execinfo.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>

#include "tests/swarm/inject.hpp"

namespace gdrx::swarm {
namespace {

constexpr std::size_t kMostFaults = 4;
constexpr std::size_t kMostRanges = 32;

struct Range {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
};
struct Ranges {
  std::array<Range, kMostRanges> at{};
  std::size_t count = 0;
  bool hold(const void* address) const {
    const auto place = reinterpret_cast<std::uintptr_t>(address);
    return std::any_of(at.begin(), at.begin() + count,
                       [&](const Range& one) { return place >= one.begin && place < one.end; });
  }
};

struct Planned {
  Fault fault;
  std::atomic<std::uint64_t> calls{0};
};

std::array<Planned, kMostFaults> plan;
std::atomic<std::size_t> planned{0};  // 0: not armed
std::array<std::atomic<std::uint32_t>, kKinds> fired;
std::array<Fired::One, 8> told;
std::atomic<std::size_t> told_count{0};
Ranges ours;       // libgdrx and its modules, but for what simulates
Ranges simulated;  // their allocations are no allocations of gdrx
Ranges emulation;  // kernels run in it, on threads that no GPU has
std::atomic<std::uint32_t> chosen{0};
std::atomic<bool> tracing{false};
thread_local int exempt = 0;

void add_parts(const dl_phdr_info* info, Ranges& into) {
  for (int i = 0; i < info->dlpi_phnum && into.count < kMostRanges; ++i) {
    const auto& part = info->dlpi_phdr[i];
    if (part.p_type != PT_LOAD || (part.p_flags & PF_X) == 0) continue;
    const std::uintptr_t begin = info->dlpi_addr + part.p_vaddr;
    into.at[into.count++] = {begin, begin + part.p_memsz};
  }
}

int add_object(dl_phdr_info* info, std::size_t, void*) {
  const std::string_view name = info->dlpi_name == nullptr ? "" : info->dlpi_name;
  const bool sim = name.find("/sim/libgdrx") != name.npos || name.find("libcuda.so") != name.npos;
  const bool own = name.find("/libgdrx") != name.npos || name.find("/libstdc++") != name.npos;
  if (!sim && !own) return 0;
  if (name.find("/emulated/libgdrx-cuda") != name.npos) add_parts(info, emulation);
  add_parts(info, sim ? simulated : ours);
  return 0;
}

}  // namespace

std::string_view name_of(Kind kind) {
  constexpr std::array<std::string_view, kKinds> kNames{
      "allocate", "thread", "fork",       "socket",        "connect", "listen", "accept",
      "poll",     "send",   "receive",    "option",        "open",    "map",    "memory",
      "event",    "random", "interfaces", "other-process", "cuda"};
  return kNames[static_cast<std::size_t>(kind)];
}

void arm(std::span<const Fault> faults) {
  ours.count = simulated.count = emulation.count = 0;
  dl_iterate_phdr(add_object, nullptr);
  for (auto& one : fired) one = 0;
  told_count = 0;
  const std::size_t count = std::min(faults.size(), kMostFaults);
  for (std::size_t i = 0; i < count; ++i) {
    plan[i].fault = faults[i];
    plan[i].calls = 0;
  }
  planned.store(count, std::memory_order_release);
}

Fired disarm() {
  planned.store(0, std::memory_order_release);
  Fired result;
  for (std::size_t i = 0; i < kKinds; ++i) result.of[i] = fired[i];
  result.told = std::min(told_count.load(), told.size());
  result.first = told;
  return result;
}

std::string Fired::text() const {
  std::string text;
  for (std::size_t i = 0; i < told; ++i) {
    const One& one = first[i];
    if (!text.empty()) text += ", ";
    text += std::string(name_of(one.kind)) + " " + std::to_string(one.call) + " (" +
            (one.error == 0 ? "short" : strerrorname_np(one.error)) + ")";
  }
  return text;
}

std::optional<int> injected(Kind kind, const void* caller, std::initializer_list<int> errors) {
  const std::size_t count = planned.load(std::memory_order_acquire);
  if (count == 0 || exempt > 0) return std::nullopt;
  if (caller != nullptr && (simulated.hold(caller) || !ours.hold(caller))) return std::nullopt;
  for (std::size_t i = 0; i < count; ++i) {
    Planned& one = plan[i];
    if ((one.fault.kinds >> static_cast<unsigned>(kind) & 1U) == 0) continue;
    const std::uint64_t call = one.calls.fetch_add(1) + 1;
    if (call < one.fault.first || call - one.fault.first >= one.fault.times) continue;
    const int error = errors.begin()[one.fault.choice % errors.size()];
    chosen = one.fault.choice / static_cast<std::uint32_t>(errors.size());
    ++fired[static_cast<std::size_t>(kind)];
    const std::size_t at = told_count.fetch_add(1);
    if (at < told.size()) told[at] = {kind, call, error};
    if (tracing) {
      const Exempt quiet;
      std::fprintf(stderr, "-- %s fails (%s):\n", std::string(name_of(kind)).c_str(),
                   std::strerror(error));
      std::array<void*, 24> frames{};
      backtrace_symbols_fd(frames.data(), backtrace(frames.data(), 24), STDERR_FILENO);
    }
    return error;
  }
  return std::nullopt;
}

bool is_simulated(const void* caller) { return simulated.hold(caller) || emulation.hold(caller); }
std::uint32_t choice() { return chosen; }
bool fails(Kind kind) { return injected(kind, nullptr, {EAGAIN}).has_value(); }

Exempt::Exempt() { ++exempt; }
Exempt::~Exempt() { --exempt; }

// --- operator new, and what it gave

namespace {

std::atomic<std::int64_t> live{0};

constexpr int kOld = 3;  // looks that it has lived through: no cache
struct Block {
  void* memory = nullptr;
  int age = 0;  // looks at it
  int count = 0;
  std::array<void*, 16> frames{};
};
constexpr std::size_t kBlocks = std::size_t{1} << 18;
Block* blocks = nullptr;  // open addressing; made when tracing begins
std::mutex blocks_mutex;

std::size_t slot_of(const void* memory) {
  return (reinterpret_cast<std::uintptr_t>(memory) >> 4) * 0x9E3779B97F4A7C15ULL >> 46;
}

void remember(void* memory) {
  if (!tracing || exempt > 0) return;
  const Exempt quiet;
  const std::lock_guard lock(blocks_mutex);
  for (std::size_t i = 0; i < 64; ++i) {
    Block& block = blocks[(slot_of(memory) + i) % kBlocks];
    if (block.memory != nullptr) continue;
    block.memory = memory;
    block.age = 0;
    block.count = backtrace(block.frames.data(), static_cast<int>(block.frames.size()));
    return;
  }
}

void forget(void* memory) {
  if (!tracing) return;
  const std::lock_guard lock(blocks_mutex);
  for (std::size_t i = 0; i < 64; ++i) {
    Block& block = blocks[(slot_of(memory) + i) % kBlocks];
    if (block.memory == memory) block.memory = nullptr;
  }
}

void* allocate(std::size_t size, std::size_t alignment, const void* caller) {
  if (injected(Kind::allocate, caller, {ENOMEM})) return nullptr;
  void* memory = alignment == 0 ? std::malloc(size == 0 ? 1 : size)
                                : std::aligned_alloc(
                                      alignment, (size + alignment - 1) / alignment * alignment);
  if (memory == nullptr) return nullptr;
  live.fetch_add(1, std::memory_order_relaxed);
  remember(memory);
  return memory;
}

void release(void* memory) noexcept {
  if (memory == nullptr) return;
  live.fetch_sub(1, std::memory_order_relaxed);
  forget(memory);
  std::free(memory);
}

void* or_throw(void* memory) {
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

std::int64_t live_objects() { return live.load(); }

void trace() {
  blocks = static_cast<Block*>(std::calloc(kBlocks, sizeof(Block)));
  std::array<void*, 4> frames{};
  backtrace(frames.data(), 4);  // loads what it needs
  tracing = true;
}

void print_live() {
  if (!tracing) return;
  const Exempt quiet;
  const std::lock_guard lock(blocks_mutex);
  for (std::size_t i = 0; i < kBlocks; ++i) {
    if (blocks[i].memory == nullptr || ++blocks[i].age != kOld) continue;
    std::fprintf(stderr, "-- lives: %p\n", blocks[i].memory);
    backtrace_symbols_fd(blocks[i].frames.data(), blocks[i].count, STDERR_FILENO);
  }
}

}  // namespace gdrx::swarm

using gdrx::swarm::allocate;
using gdrx::swarm::or_throw;
using gdrx::swarm::release;

#define SWARM_CALLER __builtin_return_address(0)
#define SWARM_VISIBLE __attribute__((visibility("default"), noinline))

SWARM_VISIBLE void* operator new(std::size_t size) {
  return or_throw(allocate(size, 0, SWARM_CALLER));
}
SWARM_VISIBLE void* operator new[](std::size_t size) {
  return or_throw(allocate(size, 0, SWARM_CALLER));
}
SWARM_VISIBLE void* operator new(std::size_t size, std::align_val_t alignment) {
  return or_throw(allocate(size, static_cast<std::size_t>(alignment), SWARM_CALLER));
}
SWARM_VISIBLE void* operator new[](std::size_t size, std::align_val_t alignment) {
  return or_throw(allocate(size, static_cast<std::size_t>(alignment), SWARM_CALLER));
}
SWARM_VISIBLE void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return allocate(size, 0, SWARM_CALLER);
}
SWARM_VISIBLE void* operator new[](std::size_t size, const std::nothrow_t&) noexcept {
  return allocate(size, 0, SWARM_CALLER);
}
SWARM_VISIBLE void operator delete(void* memory) noexcept { release(memory); }
SWARM_VISIBLE void operator delete[](void* memory) noexcept { release(memory); }
SWARM_VISIBLE void operator delete(void* memory, std::size_t) noexcept { release(memory); }
SWARM_VISIBLE void operator delete[](void* memory, std::size_t) noexcept { release(memory); }
SWARM_VISIBLE void operator delete(void* memory, std::align_val_t) noexcept { release(memory); }
SWARM_VISIBLE void operator delete[](void* memory, std::align_val_t) noexcept { release(memory); }
SWARM_VISIBLE void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  release(memory);
}
SWARM_VISIBLE void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept {
  release(memory);
}

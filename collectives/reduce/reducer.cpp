// SPDX-License-Identifier: Apache-2.0
#include "collectives/reduce/reducer.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "collectives/reduce/kernel_table.hpp"

namespace gdrx::reduce {

namespace baseline {
extern const KernelTable kernels;
}
#if defined(__x86_64__)
namespace v3 {
extern const KernelTable kernels;
}
namespace v4 {
extern const KernelTable kernels;
}
#endif

namespace rare {
extern const KernelTable kernels;
}

namespace {

/// A table an instruction set, with the kernels that are compiled once in each.
struct Sets {
  Sets() {
#if defined(__x86_64__)
    __builtin_cpu_init();
    const bool has_v3 = __builtin_cpu_supports("avx2") != 0 &&
                        __builtin_cpu_supports("bmi2") != 0 && __builtin_cpu_supports("fma") != 0;
    const bool has_v4 =
        has_v3 && __builtin_cpu_supports("avx512f") != 0 &&
        __builtin_cpu_supports("avx512bw") != 0 && __builtin_cpu_supports("avx512dq") != 0 &&
        __builtin_cpu_supports("avx512cd") != 0 && __builtin_cpu_supports("avx512vl") != 0;
    if (has_v4) add("x86-64-v4", v4::kernels);
    if (has_v3) add("x86-64-v3", v3::kernels);
#endif
    add("baseline", baseline::kernels);
  }
  void add(const char* name, const KernelTable& kernels) {
    KernelTable& table = tables[count];
    table = kernels;
    for (std::size_t type = 0; type < kDataTypeCount; ++type) {
      for (std::size_t op = 0; op < kReduceOpCount; ++op) {
        if (table[type][op] == nullptr) table[type][op] = rare::kernels[type][op];
      }
    }
    sets[count++] = {name, &table};
  }

  std::array<KernelTable, 3> tables{};
  std::array<InstructionSet, 3> sets{};
  std::size_t count = 0;
};

const Sets& all_sets() noexcept {
  static const Sets sets;
  return sets;
}

}  // namespace

std::array<InstructionSet, 3> usable_sets(std::size_t& count) noexcept {
  count = all_sets().count;
  return all_sets().sets;
}

namespace {

const InstructionSet& best() noexcept {
  static const InstructionSet chosen = all_sets().sets[0];
  return chosen;
}

}  // namespace

std::string_view instruction_set() noexcept { return best().name; }

void reduce(void* dst, std::span<const void* const> sources, std::size_t count, DataType type,
            ReduceOp op, int finish_over) noexcept {
  const Kernel kernel =
      (*best().kernels)[static_cast<std::size_t>(type)][static_cast<std::size_t>(op)];
  kernel(dst, sources.data(), sources.size(), count, op == ReduceOp::avg ? finish_over : 0);
}

void scale(void* dst, const void* source, const void* scalar, std::size_t count,
           DataType type) noexcept {
  constexpr std::size_t kBytes = 4096;
  alignas(64) std::array<std::byte, kBytes> scalars;
  const std::size_t element = size_of(type);
  const std::size_t most = kBytes / element;
  for (std::size_t i = 0; i < std::min(most, count); ++i) {
    std::memcpy(scalars.data() + i * element, scalar, element);
  }
  for (std::size_t begin = 0; begin < count; begin += most) {
    const std::size_t offset = begin * element;
    const std::array<const void*, 2> factors{static_cast<const std::byte*>(source) + offset,
                                             scalars.data()};
    reduce(static_cast<std::byte*>(dst) + offset, factors, std::min(most, count - begin), type,
           ReduceOp::prod);
  }
}

void reduce_by(const UserOperator& op, void* dst, std::span<const void* const> sources,
               std::size_t count, DataType type) noexcept {
  constexpr std::size_t kBytes = 16384;
  alignas(64) std::array<std::byte, kBytes> first;
  alignas(64) std::array<std::byte, kBytes> second;
  const std::size_t element = size_of(type);
  for (std::size_t begin = 0; begin < count; begin += kBytes / element) {
    const std::size_t offset = begin * element;
    const std::size_t length = std::min(kBytes / element, count - begin);
    std::byte* so_far = first.data();
    std::byte* next = second.data();
    std::memcpy(so_far, static_cast<const std::byte*>(sources[0]) + offset, length * element);
    for (const void* source : sources.subspan(1)) {
      std::memcpy(next, static_cast<const std::byte*>(source) + offset, length * element);
      op.apply(op.context, so_far, next, length, type);
      std::swap(so_far, next);
    }
    std::memcpy(static_cast<std::byte*>(dst) + offset, so_far, length * element);
  }
}

}  // namespace gdrx::reduce

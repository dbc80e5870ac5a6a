// SPDX-License-Identifier: Apache-2.0
#include "collectives/reduce/reducer.hpp"

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

std::array<InstructionSet, 3> usable_sets(std::size_t& count) noexcept {
  std::array<InstructionSet, 3> sets{};
  count = 0;
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool has_v3 = __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("bmi2") != 0 &&
                      __builtin_cpu_supports("fma") != 0;
  const bool has_v4 =
      has_v3 && __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
      __builtin_cpu_supports("avx512dq") != 0 && __builtin_cpu_supports("avx512cd") != 0 &&
      __builtin_cpu_supports("avx512vl") != 0;
  if (has_v4) sets[count++] = {"x86-64-v4", &v4::kernels};
  if (has_v3) sets[count++] = {"x86-64-v3", &v3::kernels};
#endif
  sets[count++] = {"baseline", &baseline::kernels};
  return sets;
}

namespace {

const InstructionSet& best() noexcept {
  static const InstructionSet chosen = [] {
    std::size_t count = 0;
    return usable_sets(count)[0];
  }();
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

}  // namespace gdrx::reduce

// SPDX-License-Identifier: Apache-2.0
// One kernel a type and operator, one table an instruction set. What programs reduce seldom is
// compiled once and stands in all of them.
#pragma once

#include <array>
#include <cstddef>

#include "gdrx/types.hpp"

namespace gdrx::reduce {

using Kernel = void (*)(void* dst, const void* const* sources, std::size_t source_count,
                        std::size_t count, int finish_over);
/// Null: the type does not take the operator, or the operator has no kernel.
using KernelRow = std::array<Kernel, kReduceOpCount>;
using KernelTable = std::array<KernelRow, kDataTypeCount>;

constexpr Kernel& at(KernelRow& row, ReduceOp op) { return row[static_cast<std::size_t>(op)]; }
constexpr KernelRow& at(KernelTable& table, DataType type) {
  return table[static_cast<std::size_t>(type)];
}

struct InstructionSet {
  const char* name;
  const KernelTable* kernels;
};

/// Those that this processor has, the best first. Never empty.
std::array<InstructionSet, 3> usable_sets(std::size_t& count) noexcept;

}  // namespace gdrx::reduce

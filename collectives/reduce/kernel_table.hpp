// SPDX-License-Identifier: Apache-2.0
// One kernel a type and operator, one table an instruction set.
#pragma once

#include <array>
#include <cstddef>

#include "gdrx/types.hpp"

namespace gdrx::reduce {

using Kernel = void (*)(void* dst, const void* const* sources, std::size_t source_count,
                        std::size_t count, int finish_over);
using KernelTable = std::array<std::array<Kernel, kReduceOpCount>, kDataTypeCount>;

struct InstructionSet {
  const char* name;
  const KernelTable* kernels;
};

/// Those that this processor has, the best first. Never empty.
std::array<InstructionSet, 3> usable_sets(std::size_t& count) noexcept;

}  // namespace gdrx::reduce

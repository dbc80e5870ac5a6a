// SPDX-License-Identifier: Apache-2.0
// Element-wise reduction of host buffers, vectorised for the machine it runs on.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "gdrx/types.hpp"

namespace gdrx::reduce {

/// dst[i] = sources[0][i] (op) sources[1][i] (op) ... in exactly that order, `count` elements.
/// float16, bfloat16 and float8 accumulate in float and are rounded once (to nearest even).
/// Integers wrap. The type takes() the operator, which is not a user's; premul_sum only adds. min
/// and max of floats propagate a NaN operand as the second operand does not replace it; the same
/// bits on every machine and instruction set. `finish_over`: 0, or the number of contributions by
/// which an avg is divided (floats: true division in the accumulator; integers: truncation toward
/// zero). avg with 0 adds only. dst may be the same address as any source but must not overlap one
/// partly. Any alignment. No allocation. Thread-safe.
void reduce(void* dst, std::span<const void* const> sources, std::size_t count, DataType type,
            ReduceOp op, int finish_over = 0) noexcept;

/// dst[i] = scalar * source[i]. dst may be source. The type takes premul_sum.
void scale(void* dst, const void* source, const void* scalar, std::size_t count,
           DataType type) noexcept;

/// A program's own: apply() gives inout[i] = in[i] (op) inout[i], and throws nothing.
struct UserOperator {
  void (*apply)(const void* context, const void* in, void* inout, std::size_t count,
                DataType type) = nullptr;
  const void* context = nullptr;
};

/// reduce() by such an operator, whose operands are aligned to 64 bytes.
void reduce_by(const UserOperator& op, void* dst, std::span<const void* const> sources,
               std::size_t count, DataType type) noexcept;

/// Copies, by non-temporal stores where `streaming` and the size make that worth it. Any alignment.
void copy(void* dst, const void* src, std::size_t bytes, bool streaming = false) noexcept;

/// The instruction set in use: "x86-64-v4", "x86-64-v3", "baseline".
std::string_view instruction_set() noexcept;

}  // namespace gdrx::reduce

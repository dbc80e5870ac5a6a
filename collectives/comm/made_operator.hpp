// SPDX-License-Identifier: Apache-2.0
// An operator that a program has made: gdrxRedOpCreate.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "collectives/reduce/reducer.hpp"
#include "gdrx/types.hpp"

namespace gdrx {

struct MadeOperator {
  ReduceOp kind{};                                 // premul_sum or user
  DataType type{};                                 // premul_sum, as the next
  alignas(16) std::array<std::byte, 16> scalar{};  // this rank's
  /// Of GPU memory each call reads it, in its stream; null: it is above. Of a call that a stream
  /// has staged it is host memory.
  const std::byte* scalar_at = nullptr;
  reduce::UserOperator user;  // user, as the next
  bool in_rank_order = false;
  std::uint16_t number = 0;  // of the communicator's, the same on every rank; from 1 on
};

}  // namespace gdrx

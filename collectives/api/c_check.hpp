// SPDX-License-Identifier: Apache-2.0
// The checks of the C API's arguments: made here, once, and nowhere below.
#pragma once

#include <cstddef>
#include <cstdint>

#include "collectives/api/c_state.hpp"
#include "collectives/comm/known_calls.hpp"
#include "gdrx/gdrx.h"
#include "gdrx/result.hpp"
#include "gdrx/types.hpp"

namespace gdrx::c_api {

// Each of these says in words what a check has found.
tl::unexpected<Error> is_too_large(std::size_t count);
tl::unexpected<Error> is_null(const char* name);

Result<void> check_comm(const gdrxComm* comm);
Result<DataType> data_type(gdrxDataType_t type);
/// The operator of a call that reduces, which its type takes.
Result<void> set_operator(const gdrxComm* comm, gdrxRedOp_t op, Call& call);
Result<Rank> rank_of(const gdrxComm* comm, int rank, const char* what);
/// A count whose bytes, for every rank's block, stay far from overflow.
inline Result<void> check_count(const gdrxComm* comm, std::size_t count, DataType type) {
  const std::uint64_t each = size_of(type) * static_cast<std::uint64_t>(comm->impl->size());
  std::uint64_t bytes = 0;  // multiplied: a division takes longer than all the rest
  if (!__builtin_mul_overflow(count, each, &bytes) && bytes <= std::uint64_t{1} << 48) return {};
  return is_too_large(count);
}
inline Result<void> check_buffer(const void* buffer, std::uint64_t bytes, const char* name) {
  if (buffer != nullptr || bytes == 0) return {};
  return is_null(name);
}
/// In place is the same block exactly; anything else must not overlap.
Result<void> check_overlap(const std::byte* in, const std::byte* out, const Bounds& bounds);

inline const std::byte* bytes_of(const void* pointer) {
  return static_cast<const std::byte*>(pointer);
}
inline std::byte* bytes_of(void* pointer) { return static_cast<std::byte*>(pointer); }

}  // namespace gdrx::c_api

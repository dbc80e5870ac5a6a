// SPDX-License-Identifier: Apache-2.0
// The checks of the C API's arguments: made here, once, and nowhere below.
#pragma once

#include <cstddef>
#include <cstdint>

#include "collectives/comm/c_state.hpp"
#include "gdrx/gdrx.h"
#include "gdrx/result.hpp"
#include "gdrx/types.hpp"

namespace gdrx::c_api {

Result<void> check_comm(const gdrxComm* comm);
Result<DataType> data_type(gdrxDataType_t type);
/// The operator of a call that reduces, which its type takes.
Result<void> set_operator(const gdrxComm* comm, gdrxRedOp_t op, Call& call);
Result<Rank> rank_of(const gdrxComm* comm, int rank, const char* what);
/// A count whose bytes, for every rank's block, stay far from overflow.
Result<void> check_count(const gdrxComm* comm, std::size_t count, DataType type);
Result<void> check_buffer(const void* buffer, std::uint64_t bytes, const char* name);
/// In place is the same block exactly; anything else must not overlap.
Result<void> check_overlap(const std::byte* in, std::uint64_t in_bytes, const std::byte* out,
                           std::uint64_t out_bytes, const std::byte* in_place);

inline const std::byte* bytes_of(const void* pointer) {
  return static_cast<const std::byte*>(pointer);
}
inline std::byte* bytes_of(void* pointer) { return static_cast<std::byte*>(pointer); }

}  // namespace gdrx::c_api

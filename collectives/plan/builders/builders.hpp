// SPDX-License-Identifier: Apache-2.0
// What builders are made of: one function an algorithm, the program of one rank. `n` >= 2, but of
// leaves; n == 1 is build.cpp's.
#pragma once

#include <cstdint>
#include <vector>

#include "collectives/plan/builders/family.hpp"
#include "gdrx/plan.hpp"

namespace gdrx::plan::builders {

/// The largest power of two that is not greater than n.
std::int32_t power_of_two_below(std::int32_t n) noexcept;

// ---- the primitives, spelled shortly -----------------------------------------------------------

inline ChunkRef in(std::int32_t chunk) {
  return {Buffer::input, static_cast<std::uint32_t>(chunk), 0};
}
inline ChunkRef out(std::int32_t chunk) {
  return {Buffer::output, static_cast<std::uint32_t>(chunk), 0};
}
/// A scratch chunk that holds a partial result of input chunk `like`.
inline ChunkRef scratch(std::int32_t chunk, std::int32_t like) {
  return {Buffer::scratch, static_cast<std::uint32_t>(chunk), static_cast<std::uint32_t>(like)};
}
/// `count` chunks from `first` on.
inline ChunkRef range(ChunkRef first, std::int32_t count) {
  first.count = static_cast<std::uint32_t>(count);
  return first;
}
inline std::int32_t wrap(std::int32_t value, std::int32_t n) { return ((value % n) + n) % n; }

inline Op send(ChunkRef src, std::int32_t to) { return {OpKind::send, false, Rank{to}, src, {}}; }
inline Op recv_copy(ChunkRef dst, std::int32_t from) {
  return {OpKind::recv_copy, false, Rank{from}, {}, dst};
}
inline Op recv_reduce(ChunkRef dst, ChunkRef src, std::int32_t from, bool finish = false) {
  return {OpKind::recv_reduce, finish, Rank{from}, src, dst};
}
inline Op copy(ChunkRef dst, ChunkRef src) { return {OpKind::copy, false, {}, src, dst}; }
inline Op reduce(ChunkRef dst, ChunkRef src, bool finish = false) {
  return {OpKind::reduce, finish, {}, src, dst};
}
inline Op wait(ChunkRef src) { return {OpKind::wait, false, {}, src, {}}; }

inline RankProgram one_channel(Channel ops, std::uint32_t scratch_chunks = 0) {
  RankProgram program;
  program.channels.push_back(std::move(ops));
  program.scratch_chunks = scratch_chunks;
  return program;
}

/// Adds to `ops` the sum = contribution of 0 (op) 1 (op) ... (op) n - 1 in scratch chunk 0, from
/// messages; this rank's own is `own`.
inline void gather_in_rank_order(Channel& ops, std::int32_t n, std::int32_t rank, ChunkRef own) {
  const ChunkRef sum = scratch(0, static_cast<std::int32_t>(own.chunk));
  ops.push_back(rank == 0 ? copy(sum, own) : recv_copy(sum, 0));
  for (std::int32_t source = 1; source < n; ++source) {
    const bool last = source == n - 1;
    ops.push_back(source == rank ? reduce(sum, own, last) : recv_reduce(sum, sum, source, last));
  }
}

}  // namespace gdrx::plan::builders

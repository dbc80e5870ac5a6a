// SPDX-License-Identifier: Apache-2.0
#include "tests/gpu/staged_world.hpp"

#include <algorithm>

namespace gdrx::gpu {
namespace {

constexpr std::uint64_t kMost = 64;  // elements behind the result that are looked at

void put(Words& out, std::uint64_t at, const Words& from, std::uint64_t begin,
         std::uint64_t count) {
  if (out.size() < at + count) out.resize(at + count, kUntouched);
  std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(begin), count,
              out.begin() + static_cast<std::ptrdiff_t>(at));
}

/// Of the first `ranks`, and `count` elements from `begin` on.
Words sum_of(const StagedCase& what, int ranks, std::uint64_t begin, std::uint64_t count) {
  Words sums(count, 0);
  for (int rank = 0; rank < ranks; ++rank) {
    const Words input = input_of(what, rank, begin + count);
    for (std::uint64_t i = 0; i < count; ++i) sums[i] += input[begin + i];
  }
  return sums;
}

std::uint64_t before(const StagedCase& what, int rank, std::uint64_t gap) {
  std::uint64_t at = 0;
  for (int peer = 0; peer < rank; ++peer) at += part_count(what, peer, 0) + gap;
  return at;
}

/// With what each rank has for each.
exec::Parts parts_of_all_to_all(const StagedCase& what, int rank, int ranks) {
  std::vector<std::size_t> to, to_at, from, from_at;
  for (int peer = 0; peer < ranks; ++peer) {
    to_at.push_back(to.empty() ? 0 : to_at.back() + to.back() + 3);
    to.push_back(part_count(what, rank, peer));
    from_at.push_back(from.empty() ? 0 : from_at.back() + from.back() + 3);
    from.push_back(part_count(what, peer, rank));
  }
  return {parts_of(to.data(), to_at.data(), ranks), parts_of(from.data(), from_at.data(), ranks)};
}

/// Of a collective with a part for each rank in one buffer.
exec::Parts parts_of_ranks(const StagedCase& what, int rank, int ranks) {
  std::vector<std::size_t> counts, begins;
  for (int peer = 0; peer < ranks; ++peer) {
    begins.push_back(before(what, peer, 3));
    counts.push_back(part_count(what, peer, 0));
  }
  const std::vector<exec::Part> all = parts_of(counts.data(), begins.data(), ranks);
  const std::vector<exec::Part> none;
  const std::vector<exec::Part> own{{Rank{1}, {0, part_count(what, rank, 0)}}};
  const bool root = rank == 1;
  if (what.collective == Collective::all_gather_v) return {none, all};
  if (what.collective == Collective::gather_v) return {own, root ? all : none};
  if (what.collective == Collective::scatter_v) return {root ? all : none, own};
  return {parts_of(counts.data(), nullptr, ranks), none};  // reduce_scatter_v
}

}  // namespace

gdrx::Call staged_call(const StagedCase& what, int rank, int ranks) {
  gdrx::Call call;
  call.collective = what.collective;
  call.type = DataType::uint32;
  call.op = ReduceOp::sum;
  call.count = what.count;
  const plan::CollectiveTraits& traits = plan::traits_of(what.collective);
  if (traits.rooted) call.root = Rank{1};
  if (what.collective == Collective::all_to_all_v) {
    call.parts = std::make_shared<const exec::Parts>(parts_of_all_to_all(what, rank, ranks));
  } else if (traits.has_parts()) {
    call.parts = std::make_shared<const exec::Parts>(parts_of_ranks(what, rank, ranks));
    const bool known = what.collective == Collective::all_gather_v ||
                       what.collective == Collective::reduce_scatter_v;
    call.count = known ? elements_of(parts_alike(call)) : part_count(what, rank, 0);
  }
  return call;
}

Words expected_of(const StagedCase& what, int rank, int ranks) {
  Words out;
  const std::uint64_t n = what.count;
  const auto self = static_cast<std::uint64_t>(rank);
  const std::uint64_t own = part_count(what, rank, 0);
  const auto block = [&](int from, std::uint64_t at, std::uint64_t begin, std::uint64_t count) {
    put(out, at, input_of(what, from, begin + count), begin, count);
  };
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wswitch-enum"  // cases name what they test, new rows need none
  switch (what.collective) {
    case Collective::broadcast:
      block(1, 0, 0, n);
      break;
    case Collective::reduce:
      if (rank == 1) put(out, 0, sum_of(what, ranks, 0, n), 0, n);
      break;
    case Collective::all_reduce:
      put(out, 0, sum_of(what, ranks, 0, n), 0, n);
      break;
    case Collective::all_gather:
      for (int r = 0; r < ranks; ++r) block(r, static_cast<std::uint64_t>(r) * n, 0, n);
      break;
    case Collective::gather:
      for (int r = 0; rank == 1 && r < ranks; ++r)
        block(r, static_cast<std::uint64_t>(r) * n, 0, n);
      break;
    case Collective::reduce_scatter:
      put(out, 0, sum_of(what, ranks, self * n, n), 0, n);
      break;
    case Collective::all_to_all:
      for (int r = 0; r < ranks; ++r) block(r, static_cast<std::uint64_t>(r) * n, self * n, n);
      break;
    case Collective::scatter:
      block(1, 0, self * n, n);
      break;
    case Collective::scan:
      put(out, 0, sum_of(what, rank + 1, 0, n), 0, n);
      break;
    case Collective::exscan:
      if (rank > 0) put(out, 0, sum_of(what, rank, 0, n), 0, n);
      break;
    case Collective::all_to_all_v: {
      std::uint64_t at = 0;
      for (int r = 0; r < ranks; ++r) {
        std::uint64_t begin = 0;
        for (int peer = 0; peer < rank; ++peer) begin += part_count(what, r, peer) + 3;
        block(r, at, begin, part_count(what, r, rank));
        at += part_count(what, r, rank) + 3;
      }
      break;
    }
    case Collective::all_gather_v:
    case Collective::gather_v:
      if (what.collective == Collective::gather_v && rank != 1) break;
      for (int r = 0; r < ranks; ++r) block(r, before(what, r, 3), 0, part_count(what, r, 0));
      break;
    case Collective::scatter_v:
      block(1, 0, before(what, rank, 3), own);
      break;
    case Collective::reduce_scatter_v:
      put(out, 0, sum_of(what, ranks, before(what, rank, 0), own), 0, own);
      break;
    default:
      break;
  }
#pragma GCC diagnostic pop
  out.resize(out.size() + kMost, kUntouched);
  return out;
}

}  // namespace gdrx::gpu

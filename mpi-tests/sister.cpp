// SPDX-License-Identifier: Apache-2.0
#include "mpi-tests/sister.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>

namespace gdrx::bench {
namespace {

constexpr std::array<Sister, 11> kSisters{{
    {.kind = Kind::all_reduce,
     .program = "allreduce_test",
     .call = "allReduce",
     .reduces = true,
     .rounds = 2,
     .plans = Collective::all_reduce},
    {.kind = Kind::all_gather,
     .program = "allgather_test",
     .call = "allGather",
     .split = true,
     .plans = Collective::all_gather},
    {.kind = Kind::reduce_scatter,
     .program = "reducescatter_test",
     .call = "reduceScatter",
     .reduces = true,
     .split = true,
     .plans = Collective::reduce_scatter},
    {.kind = Kind::broadcast,
     .program = "broadcast_test",
     .call = "broadcast",
     .rooted = true,
     .plans = Collective::broadcast},
    {.kind = Kind::reduce,
     .program = "reduce_test",
     .call = "reduce",
     .reduces = true,
     .rooted = true,
     .plans = Collective::reduce},
    {.kind = Kind::all_to_all,
     .program = "alltoall_test",
     .call = "allToAll",
     .split = true,
     .in_place = false},
    {.kind = Kind::all_to_all_v,
     .program = "alltoallv_test",
     .call = "allToAllv",
     .split = true,
     .in_place = false},
    {.kind = Kind::gather,
     .program = "gather_test",
     .call = "gather",
     .rooted = true,
     .split = true},
    {.kind = Kind::scatter,
     .program = "scatter_test",
     .call = "scatter",
     .rooted = true,
     .split = true},
    {.kind = Kind::send_recv,
     .program = "sendrecv_test",
     .call = "send and receive",
     .in_place = false,
     .explained = "sendRecv"},
    {.kind = Kind::hypercube,
     .program = "hypercube_test",
     .call = "send and receive, a hypercube",
     .split = true,
     .explained = "sendRecv"},
}};

}  // namespace

std::uint64_t Sister::elements_of(DataType type, std::uint64_t bytes, int ranks) const noexcept {
  const std::uint64_t count = bytes / size_of(type);
  const auto parts = static_cast<std::uint64_t>(ranks);
  return split ? (count + parts - 1) / parts * parts : count;
}

std::string misfit(const Sister& sister, int ranks, int root) {
  if (root >= ranks) return fmt::format("-r {}: there is no such rank of {}", root, ranks);
  if (sister.kind == Kind::hypercube && !std::has_single_bit(static_cast<unsigned>(ranks))) {
    return fmt::format("{} ranks are no power of two, as a hypercube's are", ranks);
  }
  return "";
}

double Sister::bus_factor(int ranks) const noexcept {
  if (!split && rounds == 1) return 1;
  return rounds * static_cast<double>(ranks - 1) / ranks;
}

std::span<const Sister> sisters() noexcept { return kSisters; }

const Sister& sister_of(std::string_view path) noexcept {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  const auto found = std::find_if(kSisters.begin(), kSisters.end(),
                                  [&](const Sister& one) { return one.program == name; });
  return found == kSisters.end() ? kSisters[0] : *found;
}

std::uint64_t Place::part_between(int from, int to) const noexcept {
  return part() - part() * static_cast<std::uint64_t>((from + 2 * to) % 3) / 4;
}

std::uint64_t Place::input_count() const noexcept {
  switch (kind) {
    case Kind::all_gather:
    case Kind::gather:
    case Kind::hypercube:
      return part();
    case Kind::broadcast:
    case Kind::scatter:
      return rank == root ? count : 0;
    case Kind::all_reduce:
    case Kind::reduce_scatter:
    case Kind::reduce:
    case Kind::all_to_all:
    case Kind::all_to_all_v:
    case Kind::send_recv:
      break;
  }
  return count;
}

std::uint64_t Place::input_at() const noexcept {
  const bool in_all = kind == Kind::all_gather || kind == Kind::hypercube;
  return in_all || kind == Kind::gather ? at(rank) : 0;
}

std::uint64_t Place::output_at() const noexcept {
  const bool of_all = kind == Kind::reduce_scatter;
  return of_all || (kind == Kind::scatter && rank == root) ? at(rank) : 0;
}

std::vector<Piece> pieces_of(const Place& place) {
  std::vector<Piece> pieces;
  const auto from_all = [&](auto count_from, std::uint64_t begin) {
    for (int from = 0; from < place.ranks; ++from) {
      pieces.push_back({place.at(from), count_from(from), from, begin});
    }
  };
  const auto whole_part = [&](int) { return place.part(); };
  const std::uint64_t own = place.at(place.rank);
  switch (place.kind) {
    case Kind::all_reduce:
      return {{0, place.count, Piece::kReduced, 0}};
    case Kind::reduce:
      if (place.rank == place.root) pieces.push_back({0, place.count, Piece::kReduced, 0});
      break;
    case Kind::reduce_scatter:
      return {{0, place.part(), Piece::kReduced, own}};
    case Kind::broadcast:
      return {{0, place.count, place.root, 0}};
    case Kind::scatter:
      return {{0, place.part(), place.root, own}};
    case Kind::send_recv:
      return {{0, place.count, place.last(), 0}};
    case Kind::gather:
      if (place.rank == place.root) from_all(whole_part, 0);
      break;
    case Kind::all_gather:
    case Kind::hypercube:
      from_all(whole_part, 0);
      break;
    case Kind::all_to_all:
      from_all(whole_part, own);
      break;
    case Kind::all_to_all_v:
      from_all([&](int from) { return place.part_between(from, place.rank); }, own);
      break;
  }
  return pieces;
}

}  // namespace gdrx::bench

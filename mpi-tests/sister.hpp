// SPDX-License-Identifier: Apache-2.0
// What the program measures, by the name that it is called by: one program, a name for each
// collective. Sizes and bandwidths are those of nccl-tests: a size is that of the largest buffer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gdrx/types.hpp"

namespace gdrx::bench {

enum class Kind : std::uint8_t {
  all_reduce,
  all_gather,
  reduce_scatter,
  broadcast,
  reduce,
  all_to_all,
  all_to_all_v,
  gather,
  scatter,
  send_recv,
  hypercube
};

struct Sister {
  Kind kind{};
  std::string_view program;  // "allgather_test"
  std::string_view call;     // "allGather"
  bool reduces = false;
  bool rooted = false;
  bool split = false;    // a buffer has a part for each rank
  bool in_place = true;  // it can be
  int rounds = 1;        // times that a vector goes round
  /// Whose plans it has; empty: it runs in one hop, and --algo has nothing to choose.
  std::optional<Collective> plans{};
  /// As gdrxCommExplainCall knows it; empty: by `call`.
  std::string_view explained{};

  /// Of a buffer of so many bytes; of a split one rounded up to equal parts.
  std::uint64_t elements_of(DataType type, std::uint64_t bytes, int ranks) const noexcept;
  /// busbw / algbw.
  double bus_factor(int ranks) const noexcept;
};

std::span<const Sister> sisters() noexcept;
/// By the last part of a path; all_reduce for a name that is none of theirs.
const Sister& sister_of(std::string_view path) noexcept;

/// Why it cannot be run by so many ranks with that root; empty: it can.
std::string misfit(const Sister& sister, int ranks, int root);

/// One rank's place in a call. `count`: elements of the largest buffer, of a split one a multiple
/// of the ranks.
struct Place {
  Kind kind{};
  std::uint64_t count = 0;
  int rank = 0;
  int ranks = 1;
  int root = 0;

  std::uint64_t part() const noexcept { return count / static_cast<std::uint64_t>(ranks); }
  /// Where the part of a rank begins.
  std::uint64_t at(int of) const noexcept { return static_cast<std::uint64_t>(of) * part(); }
  /// Of an all-to-all-v: a part, three quarters or half of one.
  std::uint64_t part_between(int from, int to) const noexcept;
  int next() const noexcept { return (rank + 1) % ranks; }
  int last() const noexcept { return (rank + ranks - 1) % ranks; }
  /// Elements that the call reads of this rank's input.
  std::uint64_t input_count() const noexcept;
  /// In place: where in the one buffer that is, and where the output.
  std::uint64_t input_at() const noexcept;
  std::uint64_t output_at() const noexcept;
};

/// Of the output: these elements are those of a rank's input from `begin` on.
struct Piece {
  static constexpr int kReduced = -1;  // of all inputs, reduced
  std::uint64_t at = 0;
  std::uint64_t count = 0;
  int from = 0;
  std::uint64_t begin = 0;
};
/// What is written of it; the rest stays as it is.
std::vector<Piece> pieces_of(const Place& place);

}  // namespace gdrx::bench

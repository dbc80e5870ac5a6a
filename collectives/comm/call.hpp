// SPDX-License-Identifier: Apache-2.0
// A call as the API's arguments give it, checked.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "collectives/comm/made_operator.hpp"
#include "collectives/comm/route.hpp"
#include "collectives/exec/exchange.hpp"
#include "gdrx/types.hpp"

namespace gdrx {

/// What the caller asked for. Buffers stay his. A send_recv is one of both, with the peer as root:
/// a send has an input, a receive an output.
struct Call {
  Collective collective{};
  DataType type{};
  ReduceOp op{};
  std::shared_ptr<const MadeOperator> made;  // with a premul_sum or user; null: another
  Rank root{};
  Route route = Route::undecided;  // kept by who asks more than once
  bool sends = false;              // send_recv
  bool with_host_memory = false;  // send_recv: so are others of its group, with whom it keeps order
  const std::byte* input = nullptr;
  std::byte* output = nullptr;
  std::uint64_t count = 0;  // as the API's function defines it
  /// Where ranks' parts differ, as the caller gave them; of other collectives by messages from
  /// add_parts() on; else null.
  std::shared_ptr<const exec::Parts> parts;
  /// all_reduce_leaves: how many leaves each rank holds; null: one each.
  std::shared_ptr<const std::vector<std::int32_t>> leaves;
  void* stream = nullptr;  // CUDA's; nullptr: the legacy default stream
  std::optional<std::chrono::milliseconds> timeout = std::nullopt;  // 0: none; or the default

  /// Whether only algorithms that reduce in the order of ranks give its result.
  bool needs_rank_order() const noexcept { return made && made->in_rank_order; }
};

inline double seconds(std::chrono::milliseconds time) {
  return std::chrono::duration<double>(time).count();
}

/// For people whose call was late.
inline const char* whose_limit(const Call& call) noexcept {
  return call.timeout ? "its own timeout is the limit" : "GDRX_TIMEOUT sets the limit";
}

}  // namespace gdrx

// SPDX-License-Identifier: Apache-2.0
// What is marked in a call, and how it is called for a person.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "gdrx/clock.hpp"

namespace gdrx::trace {

enum class Kind : std::uint8_t {
  call,    // a function of the API, on the caller's thread
  plan,    // an operation, from its start to its end
  chunk,   // a slice of the vector on its way through the plan, or a stage of shared memory
  step,    // work on a chunk: a reduction, a copy, a message that leaves
  wait,    // nothing can be done until a peer has done something
  kernel,  // an operation on a GPU, by the GPU's clock
};
inline constexpr std::size_t kKinds = 6;

/// Spans of one row follow each other or lie in each other; rows run beside each other.
enum class Row : std::uint8_t { calls, plans, shared_memory, gpus, lane };
constexpr Row lane_row(std::uint32_t lane) noexcept {
  return static_cast<Row>(static_cast<std::uint32_t>(Row::lane) + lane);
}

inline constexpr std::int32_t kNobody = -1;
inline constexpr std::uint32_t kNoIndex = ~std::uint32_t{0};
inline constexpr Duration kOpen{-1};

/// Texts are literals, or live as long as the process.
struct Event {
  Kind kind{};
  Row row{};
  std::string_view name;       // below 256 characters, no quotes
  std::string_view algorithm;  // empty: none
  std::uint64_t bytes = 0;
  std::int32_t peer = kNobody;
  std::uint32_t index = kNoIndex;  // of the chunk, or the call
  std::uint16_t communicator = 0;  // of the rank, from 0
  Instant begin{};
  Duration length = kOpen;
};

std::string_view to_string(Kind kind) noexcept;
inline constexpr std::size_t kTitle = 96;
/// "plan ring", "chunk 3", "wait for rank 2": NUL-terminated, cut if it is longer than `into`.
std::string_view title(const Event& event, std::span<char, kTitle> into) noexcept;

}  // namespace gdrx::trace

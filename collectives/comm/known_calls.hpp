// SPDX-License-Identifier: Apache-2.0
// Calls that were checked and chosen before: a program makes the same few again and again, with
// other bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "collectives/comm/operation.hpp"
#include "collectives/exec/call_signature.hpp"
#include "collectives/exec/one_block.hpp"
#include "gdrx/types.hpp"

namespace gdrx {

/// A call without its buffers, as the C API's arguments have it: nobody has looked at them.
struct Asked {
  Collective collective{};
  int type = 0;
  int op = 0;
  int root = 0;
  std::uint64_t count = 0;
  friend bool operator==(const Asked&, const Asked&) = default;
};

/// Bytes of a call's buffers, of which neither has parts, and how they lie in place.
struct Bounds {
  std::uint64_t input = 0;
  std::uint64_t output = 0;
  std::int64_t in_place = 0;  // from the output's beginning to the input's; or kNever
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::min();

  bool are_there(const void* in, const void* out) const noexcept {
    return (in != nullptr || input == 0) && (out != nullptr || output == 0);
  }
  /// Or in place.
  bool are_apart(const std::byte* in, const std::byte* out) const noexcept {
    if (in == nullptr || out == nullptr || input == 0 || output == 0) return true;
    const auto a = reinterpret_cast<std::uintptr_t>(in);
    const auto b = reinterpret_cast<std::uintptr_t>(out);
    return a + input <= b || b + output <= a || a == b + static_cast<std::uintptr_t>(in_place);
  }
};
Bounds bounds_of(const Call& call, Rank self, int ranks) noexcept;

/// All that its buffers do not change.
struct KnownCall {
  Asked asked;
  Bounds bounds;
  Bytes bytes = 0;  // of the vector that all ranks have in mind
  bool rooted = false;
  exec::CallSignature signature;  // its number is given when it begins
  exec::Hop hop{};
  OperationInfo info{};  // once it has ended
};

/// Of one communicator. A new one may take another's place.
class KnownCalls {
 public:
  /// Null: it is not known, or no longer.
  const KnownCall* find(const Asked& asked) const noexcept {
    const Entry& entry = entries_[place_of(asked)];
    return entry.is_there && entry.call.asked == asked ? &entry.call : nullptr;
  }
  const KnownCall& keep(const KnownCall& call) noexcept {
    Entry& entry = entries_[place_of(call.asked)];
    entry = {true, call};
    return entry.call;
  }

 private:
  static constexpr unsigned kBits = 5;
  struct Entry {
    bool is_there = false;
    KnownCall call{};
  };
  static std::size_t place_of(const Asked& asked) noexcept {
    // Apart, for calls of several collectives, or of each root, come in turn.
    const auto kind = static_cast<std::uint64_t>(asked.type) << 5 ^
                      static_cast<std::uint64_t>(asked.op) << 10 ^
                      static_cast<std::uint64_t>(asked.collective);
    const auto all = (asked.count * 64 + static_cast<std::uint64_t>(asked.root)) << 16 ^ kind;
    const auto mixed = all * 0x9E3779B97F4A7C15;  // Fibonacci hashing: the upper bits
    return static_cast<std::size_t>(mixed >> (64 - kBits));
  }
  std::array<Entry, 1U << kBits> entries_{};
};

}  // namespace gdrx

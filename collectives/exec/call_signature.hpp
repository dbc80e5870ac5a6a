// SPDX-License-Identifier: Apache-2.0
// The call signature: what a rank believes it is calling. It stands in front of every message and
// in the arena, so that ranks with different arguments are named and not left to hang or corrupt.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>

#include "gdrx/plan.hpp"
#include "gdrx/result.hpp"
#include "gdrx/types.hpp"

namespace gdrx::exec {

inline constexpr std::uint32_t kSignatureMagic = 0x67647278;  // "gdrx"
inline constexpr std::uint8_t kSignatureVersion = 1;

struct CallSignature {
  std::uint32_t magic = kSignatureMagic;
  std::uint8_t version = kSignatureVersion;
  Collective collective{};
  DataType type{};
  ReduceOp op{};
  plan::Algorithm algorithm{};
  std::uint8_t reserved = 0;
  std::uint16_t user_op = 0;  // ReduceOp::user: which of the communicator's, from 1 on
  /// Of what has a part a rank, or leaves, and no root: a digest of their numbers.
  std::int32_t root = 0;
  std::uint64_t sequence = 0;  // of the operation on its communicator; send_recv: of the pair
  std::uint64_t count = 0;  // elements, as the caller gave them; of parts, of all that ranks share
  friend bool operator==(const CallSignature&, const CallSignature&) = default;
};
static_assert(sizeof(CallSignature) == 32 && std::is_trivially_copyable_v<CallSignature>);

/// In front of each message's payload.
struct MessageHeader {
  CallSignature signature;
  std::uint32_t instance = 0;  // slice of the plan
  std::uint32_t index = 0;     // k-th message of (source, destination, channel) in the instance
  std::uint32_t bytes = 0;     // payload
  std::int32_t source = 0;     // rank
  std::uint64_t count = 0;     // of a flow: elements of all its slices
  std::uint64_t reserved = 0;
};
static_assert(sizeof(MessageHeader) == 64 && std::is_trivially_copyable_v<MessageHeader>);

/// "allReduce #7 of 100 float, sum, ring".
std::string describe(const CallSignature& signature);

/// Checks what came from `peer` against what this rank called. Errc::mismatch names both calls,
/// Errc::protocol says that the bytes are not ours.
Result<void> check_signature(const CallSignature& theirs, Rank peer, const CallSignature& mine,
                             Rank self);
/// Of elements that `peer` sends.
Result<void> check_count(std::uint64_t theirs, Rank peer, std::uint64_t expected, Rank self,
                         const CallSignature& signature);
Result<void> check_message(const MessageHeader& theirs, Rank peer, const MessageHeader& expected,
                           Rank self);

}  // namespace gdrx::exec

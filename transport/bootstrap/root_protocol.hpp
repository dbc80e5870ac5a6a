// SPDX-License-Identifier: Apache-2.0
// The root's protocol as a state machine: frames in, frames out, no I/O and no clock.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "transport/bootstrap/frame.hpp"

namespace gdrx {

/// Longest blob of one rank in one round, in bytes; a round has kMaxFrame bytes at most.
inline constexpr std::uint32_t kMostGatheredBlob = 1 << 20;

/// Lets the right ranks in and gathers their blobs, round after round. A rank that has gone does
/// not come back: whoever waits for it is told so instead of waiting on.
class RootProtocol {
 public:
  using PeerNumber = std::uint64_t;  // one connection, the number that the caller has for it
  struct Reply {
    PeerNumber to = 0;
    std::shared_ptr<const Blob> frame;  // shared by all who get the same
    bool close = false;                 // once the frame is out
  };
  using Replies = std::vector<Reply>;

  explicit RootProtocol(const std::uint64_t (&nonce)[2]) : nonce_{nonce[0], nonce[1]} {}

  Replies take(PeerNumber number, const Frame& frame);
  /// The stream of this peer is not ours or breaks the rules.
  Replies refuse(PeerNumber number, const std::string& why);
  /// The connection of this peer has ended.
  Replies leave(PeerNumber number);

  bool is_member(PeerNumber number) const { return ranks_.contains(number); }
  std::size_t members() const noexcept { return ranks_.size(); }
  /// Every rank has come and gone.
  bool over() const noexcept;
  /// "rank 3 of 8 has not come", and who has come but takes no part; empty if nobody is waited for.
  std::string missing() const;
  const std::string& last_refusal() const noexcept { return last_refusal_; }

 private:
  struct Member {
    PeerNumber number = 0;
    std::optional<Blob> blob;  // of the round under way
  };
  Replies greet(PeerNumber number, const Frame& frame);
  Replies gather(Member& member, Blob blob);
  Replies finish_round();
  Replies break_round(const std::string& why);
  std::string who_has_gone() const;

  std::uint64_t nonce_[2];
  std::int32_t size_ = 0;  // 0 until the first has come
  std::map<std::int32_t, Member> members_;
  std::map<PeerNumber, std::int32_t> ranks_;
  std::set<std::int32_t> gone_;
  std::int32_t waiting_ = 0;  // members whose blob of this round is here
  std::string last_refusal_;
};

}  // namespace gdrx

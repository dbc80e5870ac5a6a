// SPDX-License-Identifier: Apache-2.0
// What a peer says of communicators that are not here: of one that this rank has not joined yet,
// which others may have, or of one that has ended.
#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <vector>

#include "transport/bootstrap/control_mesh.hpp"
#include "transport/bootstrap/frame.hpp"

namespace gdrx {

/// Of one link, so that no peer takes another one's room. The oldest give way, and whose they were
/// is known for a while: who waits for them would wait in vain.
class HeldFrames {
 public:
  static constexpr std::size_t kMostBytes = 256 << 10;
  static constexpr std::size_t kMostFrames = 1024;

  void hold(MeshGroupId group, FrameKind kind, std::span<const std::byte> payload) {
    frames_.push_back({group, {kind, Blob(payload.begin(), payload.end())}});
    bytes_ += payload.size();
    while (bytes_ > kMostBytes || frames_.size() > kMostFrames) {
      const MeshGroupId lost = frames_.front().group;
      bytes_ -= frames_.front().frame.payload.size();
      frames_.pop_front();
      note_lost(lost);
    }
  }
  /// Something of it was here and gave way.
  bool lost(MeshGroupId group) const noexcept {
    return std::find(lost_.begin(), lost_.end(), group) != lost_.end();
  }
  /// In the order in which they came.
  std::vector<Frame> take(MeshGroupId group) {
    std::vector<Frame> taken;
    for (Held& held : frames_) {
      if (held.group != group) continue;
      bytes_ -= held.frame.payload.size();
      taken.push_back(std::move(held.frame));
    }
    std::erase_if(frames_, [&](const Held& held) { return held.group == group; });
    return taken;
  }
  std::size_t bytes() const noexcept { return bytes_; }
  std::size_t frames() const noexcept { return frames_.size(); }

 private:
  void note_lost(MeshGroupId group) {
    if (lost(group)) return;
    lost_.push_back(group);
    if (lost_.size() > kMostFrames) lost_.pop_front();
  }

  struct Held {
    MeshGroupId group;
    Frame frame;
  };
  std::deque<Held> frames_;
  std::deque<MeshGroupId> lost_;
  std::size_t bytes_ = 0;
};

}  // namespace gdrx

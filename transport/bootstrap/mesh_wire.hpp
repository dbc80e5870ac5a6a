// SPDX-License-Identifier: Apache-2.0
// The links of a rank as one thing: what came in and is to be judged, what is to go out.
#pragma once

#include <poll.h>

#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include "transport/bootstrap/mesh_links.hpp"

namespace gdrx {

/// Threads: flood(), say_goodbye() and places are anybody's; everything else belongs to the one
/// thread that reads, the creator before ControlMesh::start() and the mesh's thread afterwards.
class MeshWire {
 public:
  /// A reason to stop, and the rank whose link it came by.
  struct Heard {
    Notice notice;
    std::int32_t from = -1;
  };

  /// Whether the data path has heard from that rank since it was last asked.
  using Heart = std::function<bool(Rank)>;

  MeshWire(MeshLinks links, Rank self, Duration heartbeat, Duration silence);

  const std::vector<MeshMember>& members() const noexcept { return members_; }
  /// Takes in all there is. A notice that can be read anywhere comes before a death that is judged
  /// here: whoever ended because it heard of a death is not the dead one.
  std::optional<Heard> pump();
  /// From now on data frames are out of turn, and a rank is lost that beat() finds silent.
  void expect_notices_only(Heart data_path);
  /// Says that this rank lives, once a heartbeat, and counts who has not said so. Own beats are the
  /// measure and not the clock: a process that was stopped blames nobody for its own silence.
  void beat();

  void send_data(std::int32_t peer, std::span<const std::byte> payload);
  /// The oldest data frame of a peer that has not been taken, if there is one.
  std::optional<Blob> take_data(std::int32_t peer);
  /// Whether the peer will send nothing more.
  bool has_left(std::int32_t peer) const { return link_to(peer).left; }
  bool has_unsent(std::int32_t peer) const;

  /// Sends the first notice that it is given to all but `except`; false for later ones.
  bool flood(const Notice& notice, std::int32_t except);
  /// Passes a place on to all, once a number: later ones have greater numbers.
  void tell_place(std::uint32_t number, std::span<const std::byte> place);
  /// What was told under the number, here or elsewhere, if it has come.
  std::optional<Blob> place(std::uint32_t number) const;
  /// Where there is no memory for a notice: the peers see the connections end.
  void hang_up() noexcept;
  /// Tells the rank 2^round after this one that this one, and those before it, want to leave.
  void send_fence(std::uint32_t round);
  /// Whether the rank 2^round before this one has said so.
  bool has_fence(std::uint32_t round) const { return (fences_ >> round & 1U) != 0; }
  /// A rank that left in order has left together with all, unless it gave up waiting for some.
  bool anyone_left() const;
  bool anyone_gave_up() const;
  /// Leaves in order; gives a full link a moment.
  void say_goodbye(bool gave_up);
  /// The same without an end: all have met, and this process may end from now on without a word.
  void say_met();

  /// Sends what had no room, and appends an entry for each link that may still say something or
  /// has something to be sent. True: something that came already waits to be read.
  bool prepare_poll(std::vector<pollfd>& entries);

 private:
  const MeshLink& link_to(std::int32_t peer) const;
  MeshLink& link_to(std::int32_t peer);
  std::optional<Notice> read(MeshLink& link);
  Result<std::size_t> receive(MeshLink& link, std::span<std::byte> piece);
  std::optional<Notice> drain(MeshLink& link);
  bool take_place(std::span<const std::byte> payload);
  bool take_fence(const MeshLink& link, std::span<const std::byte> payload);
  std::optional<Notice> look_at_process(MeshLink& link);
  std::optional<Notice> look_for_silence(MeshLink& link);
  bool data_path_hears(const MeshLink& link) const;
  std::optional<Notice> ended(MeshLink& link, const Error& how);
  Notice lost(MeshLink& link, const std::string& how);
  Notice misbehaved(MeshLink& link, const std::string& what);
  void send(MeshLink& link, std::span<const std::byte> frame);
  void push(MeshLink& link);

  std::vector<MeshLink> links_;
  std::vector<MeshMember> members_;
  Rank self_;
  Duration heartbeat_;
  Duration silence_;
  Heart data_path_;
  Instant next_beat_{};
  bool notices_only_ = false;
  std::uint32_t fences_ = 0;  // by round
  mutable std::mutex mutex_;  // of each link's socket and unsent of each link, and the rest
  bool flooded_ = false;
  bool said_met_ = false;
  std::uint32_t place_number_ = 0;
  Blob place_;
};

}  // namespace gdrx

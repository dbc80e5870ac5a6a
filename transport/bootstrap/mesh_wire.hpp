// SPDX-License-Identifier: Apache-2.0
// The links of a process and the communicators that share them: what comes in is heard by those
// that it is for, a death by all that have the rank.
#pragma once

#include <poll.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "transport/bootstrap/mesh_group.hpp"
#include "transport/bootstrap/mesh_links.hpp"

namespace gdrx {

class MeshWord;

/// Threads: what has a group is anybody's, everything else belongs to the mesh's thread.
class MeshWire {
 public:
  using Group = std::shared_ptr<MeshGroup>;

  MeshWire(MeshLinks links, Duration heartbeat, Duration silence, Socket bell);

  const std::vector<MeshMember>& members() const noexcept { return members_; }
  std::vector<MeshLink>& links() noexcept { return links_; }
  /// Ranks of the mesh by whose links nothing comes any more.
  std::vector<std::int32_t> lost() const;

  // Of a group: see ControlMesh's functions of the same names.
  /// From now on its frames are heard, and those that have come. Errc::protocol: its id is another
  /// one's.
  Result<void> add(const Group& group);
  /// Says so to those whom it has not met in leave().
  void remove(MeshGroup& group) noexcept;
  Result<std::vector<Blob>> all_gather(MeshGroup& group, std::span<const std::byte> mine,
                                       Deadline deadline);
  /// Nothing is gathered any more; what `data_path` says counts for a rank that is silent.
  void start(MeshGroup& group, std::function<bool(Rank)> data_path);
  /// Sends the first notice of the group to all; later ones are no news.
  void announce(MeshGroup& group, const FailureNotice& notice) noexcept;
  void tell_place(MeshGroup& group, std::uint32_t number, std::span<const std::byte> place);
  std::optional<Blob> place(const MeshGroup& group, std::uint32_t number) const;
  MeshGroup::Leave leave(MeshGroup& group, Deadline deadline);
  std::string awaited(const MeshGroup& group) const;
  /// Of a group that this rank was to join and cannot: those who have joined hear why. `ranks` and
  /// `self` as in MeshGroup. It hardly ever needs memory.
  void refuse(MeshGroupId group, std::span<const std::int32_t> ranks, Rank self, const Error& why);
  /// Where what they are to be told is not known: the peers see the connections end.
  void hang_up() noexcept;
  /// Wakes the mesh's thread.
  void ring() noexcept;

  /// This thread is the mesh's: what a handler waits for there it takes in itself.
  void belong_here() const noexcept;
  bool is_here() const noexcept;
  /// Takes in all there is. A notice that can be read anywhere comes before a death that is judged
  /// here: whoever ended because it heard of a death is not the dead one. What is to be passed on
  /// has been when this returns.
  void pump();
  /// Tells every group the same: this process cannot go on.
  void fail_all(const Text& why) noexcept;
  struct News {
    Group group;
    FailureNotice notice;
  };
  /// What a handler is to be told of; once.
  std::optional<News> next_news();
  void groups(std::vector<Group>& all) const;
  /// Says that this rank lives, once a heartbeat, and counts who has not said so. Own beats are the
  /// measure and not the clock: a process that was stopped blames nobody for its own silence.
  void beat();
  /// Sends what had no room, and appends an entry for the bell and each link that may still say
  /// something or has something to be sent. Returns how long to sleep at most: not at all where
  /// something that came already waits to be read.
  Duration prepare_poll(std::vector<pollfd>& entries);
  /// Of a bell that has been heard.
  void hush() noexcept;
  /// The end: gives a full link a moment, and closes all.
  void close();

 private:
  /// Of a link: nothing more comes by it.
  struct Loss {
    Errc code = Errc::peer_lost;
    std::string how;   // behind the rank's name
    bool cut = false;  // nothing is made over it any more; what is made goes on
  };

  std::optional<Loss> read(MeshLink& link);
  std::optional<Loss> drain(MeshLink& link);
  std::optional<std::string> take(MeshLink& link, const Frame& frame);
  std::optional<std::string> take(MeshGroup& group, GroupPeer& peer, FrameKind kind,
                                  std::span<const std::byte> payload);
  static void promise_last_words(MeshGroup& group);
  void take_held(MeshGroup& group);
  static std::optional<std::string> take_data(MeshGroup& group, GroupPeer& peer,
                                              std::span<const std::byte> payload);
  std::optional<std::string> take_notice(MeshGroup& group, const GroupPeer& peer,
                                         std::span<const std::byte> payload);
  std::optional<std::string> take_fence(MeshGroup& group, GroupPeer& peer);
  std::optional<std::string> take_place(MeshGroup& group, std::span<const std::byte> payload);
  static Loss misbehaved(MeshLink& link, const std::string& what);
  static Loss lost(MeshLink& link, std::string how);
  static Loss unreachable(bool cut);
  std::optional<Loss> ended(MeshLink& link, const Error& how);
  std::optional<Loss> look_at_process(MeshLink& link);
  std::optional<Loss> look_for_silence(MeshLink& link);
  bool data_path_hears(const MeshLink& link) const;
  void tell_of(const Loss& loss, const MeshLink& link);
  void tell_of(const Loss& loss, MeshGroup& group, GroupPeer& peer);

  Result<std::vector<Blob>> gather(std::unique_lock<std::mutex>& lock, MeshGroup& group,
                                   std::span<const std::byte> mine, Deadline deadline);
  void pause(std::unique_lock<std::mutex>& lock, Deadline deadline);
  Result<Blob> await(std::unique_lock<std::mutex>& lock, MeshGroup& group, GroupPeer& peer,
                     Deadline deadline);
  void send_data(const MeshGroup& group, GroupPeer& peer, std::span<const std::byte> payload);
  bool hear(MeshGroup& group, const FailureNotice& notice, const MeshLink* from) noexcept;
  void pass_place(MeshGroup& group, std::uint32_t number, std::span<const std::byte> place);
  void go_on_leaving(MeshGroup& group);
  void say_goodbye(MeshGroup& group, bool gave_up) noexcept;
  void send(MeshLink& link, std::span<const std::byte> frame);
  void send(MeshLink& link, const MeshWord& word) noexcept;
  void push_or_ring(MeshLink& link);
  static void shut(MeshLink& link, const Error& why) noexcept;
  static void push(MeshLink& link);
  static void push_all(MeshLink& link);

  std::vector<MeshLink> links_;
  std::vector<MeshMember> members_;
  Duration heartbeat_;
  Duration silence_;
  Socket bell_;
  Instant next_beat_{};
  mutable std::mutex mutex_;  // of all that is below, and of the links
  std::condition_variable changed_;
  std::vector<Group> groups_;
};

}  // namespace gdrx

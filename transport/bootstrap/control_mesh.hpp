// SPDX-License-Identifier: Apache-2.0
// Stream sockets to the ranks at distance +-2^k, and a thread that listens on them. While a
// communicator is made they carry what its ranks gather, in log n hops; afterwards a dead rank, an
// abort or a mismatch reaches every rank in as many. Communicators that are split from another
// share its sockets and its thread.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "gdrx/bootstrap.hpp"
#include "gdrx/clock.hpp"
#include "gdrx/config.hpp"
#include "gdrx/log.hpp"
#include "gdrx/result.hpp"
#include "transport/bootstrap/secret.hpp"

namespace gdrx {

/// Of a communicator among those that share connections.
enum class MeshGroupId : std::uint64_t {};

/// Why a communicator stopped. The first one wins on each rank.
struct FailureNotice {
  Errc code = Errc::aborted;  // peer_lost, aborted, mismatch, timeout, protocol, ...
  Rank origin{};              // who found it
  Rank subject{};             // whom it is about
  Text text;                  // one line for a person
};

/// A communicator's part of a mesh, whose connections and thread end with the last of its parts.
/// A dead process is noticed at once, by each communicator that has the rank: its socket ends, and
/// on one host the kernel tells of the process itself, so that no child that holds the socket hides
/// it. A rank elsewhere that has said nothing for `silence`, not even its heartbeats, is lost,
/// unless the data path has heard from it.
class ControlMesh {
 public:
  struct Options {
    std::string socket_ifname;  // empty: chosen by route
    Duration heartbeat{std::chrono::seconds(1)};
    std::string host_id;  // ranks with equal ids talk over loopback
    Secret secret{};
    Duration silence{std::chrono::seconds(30)};
    PortRange ports{};
    friend bool operator==(const Options& a, const Options& b) {
      const auto of = [](const Options& o) {
        return std::tie(o.socket_ifname, o.heartbeat, o.host_id, o.secret, o.silence, o.ports.first,
                        o.ports.last);
      };
      return of(a) == of(b);
    }
  };
  /// Collective over `bootstrap`, which is not kept. Every wait ends by `deadline`.
  static Result<std::unique_ptr<ControlMesh>> create(Bootstrap& bootstrap, const Options& options,
                                                     const Log& log, Deadline deadline);
  virtual ~ControlMesh() = default;  // leaves in order; then no handler runs, nor will

  virtual Rank rank() const noexcept = 0;
  virtual int size() const noexcept = 0;
  /// Up a tree of the ranks and down again. Before start() only.
  virtual Result<std::vector<Blob>> all_gather(std::span<const std::byte> mine,
                                               Deadline deadline) = 0;

  struct Handlers {
    std::function<void(const FailureNotice&)> on_notice;  // from the thread; at most once
    /// From the thread, between sleeps; returns how long it may sleep at most.
    std::function<Duration()> on_tick;
    /// From the thread: whether the data path has heard from that rank since it was last asked.
    std::function<bool(Rank)> data_path_hears{};
  };
  /// Nothing is gathered any more: from now on the handlers are called, of what has come before,
  /// too.
  virtual void start(Handlers handlers) = 0;
  /// Whether the connections among `members`, ranks of this communicator, lead from each of them to
  /// each other one, without any third one, too: then they can split(), and hear of a death. The
  /// same on every rank.
  virtual bool connects(std::span<const std::int32_t> members) const = 0;
  /// Of a communicator of `members`, in the order of its ranks, this one among them. All of them
  /// call it before any of them uses what it returns. `id`: the same on all of them, and new.
  virtual Result<std::unique_ptr<ControlMesh>> split(MeshGroupId id,
                                                     std::span<const std::int32_t> members) = 0;
  /// From now on ranks of this one that meet anew may share its connections (see MeshMeeting). Each
  /// of its ranks does it. `facts`: what they know of each other that holds for `knows`, a
  /// configuration. Of a communicator for which the mesh was made; others share that one's.
  virtual void share(std::string knows, std::uint32_t facts) = 0;
  /// Whether others that share the thread have work for it, too: on_tick is to return soon.
  virtual bool is_crowded() const noexcept = 0;
  /// Floods a notice of this rank's own and wakes the thread. Any thread. Does not call on_notice.
  virtual void announce(const FailureNotice& notice) noexcept = 0;
  /// Where some of the ranks meet anew, told to all that can be reached, also after a failure. Any
  /// thread, after start(). Each has a greater `number` than the last.
  virtual Result<void> tell_place(std::uint32_t number, std::span<const std::byte> place) = 0;
  /// What some rank tells under that number. Blocks.
  virtual Result<Blob> await_place(std::uint32_t number, Deadline deadline) const = 0;
  /// A barrier before the end: returns true once every rank has called it, false when the deadline
  /// passes, here or on a rank that gives up, or when a notice comes. After start(); again to wait
  /// for longer.
  virtual bool leave(Deadline deadline) = 0;
  /// For people: the rank whose word leave() lacks, though that may wait for another itself. Empty:
  /// there is nothing to wait for any more.
  virtual std::string awaited() const = 0;
  /// Whether the thread calls this: then it is in a handler, and hears of nothing but by serve(),
  /// which calls on_notice of all that share it.
  virtual bool is_own_thread() const noexcept = 0;
  virtual void serve() = 0;
  /// Calls `place` with the thread, for the first who asks of all that share it: they are one
  /// process's, and it stays where that one puts it.
  virtual void place_thread(const std::function<void(pthread_t)>& place) = 0;
  /// Makes the thread call on_tick soon. Any thread; a system call only if the thread sleeps.
  virtual void wake() noexcept = 0;
  /// "eth0 10.0.0.3:41234" or "loopback": for the log.
  virtual std::string describe() const = 0;
  /// Of this communicator, for connections beside the mesh's: the same on every rank. Of a split
  /// the ranks of its parent can work it out, and nobody else. GDRX_SECRET_FILE is mixed in.
  virtual const Key& key() const noexcept = 0;
};

}  // namespace gdrx

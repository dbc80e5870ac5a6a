// SPDX-License-Identifier: Apache-2.0
// Stream sockets to the ranks at distance +-2^k. While a communicator is made they carry an
// all-gather of log n rounds; afterwards a thread listens on them, so that a dead rank, an abort or
// a mismatch reaches every rank in log n hops.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gdrx/bootstrap.hpp"
#include "gdrx/clock.hpp"
#include "gdrx/config.hpp"
#include "gdrx/log.hpp"
#include "gdrx/result.hpp"
#include "transport/bootstrap/secret.hpp"

namespace gdrx {

/// Why a communicator stopped. The first one wins on each rank.
struct Notice {
  Errc code = Errc::aborted;  // peer_lost, aborted, mismatch, timeout, protocol, ...
  Rank origin{};              // who found it
  Rank subject{};             // whom it is about
  Text text;                  // one line for a person
};

/// A dead process is noticed at once: its socket ends, and on one host the kernel tells of the
/// process itself, so that no child that holds the socket hides it. A rank elsewhere that has said
/// nothing for `silence`, not even its heartbeats, is lost, unless the data path has heard from it.
class ControlMesh {
 public:
  struct Options {
    std::string socket_ifname;  // empty: chosen by route
    Duration heartbeat{std::chrono::seconds(1)};
    std::string host_id;  // ranks with equal ids talk over loopback
    Secret secret{};
    Duration silence{std::chrono::seconds(30)};
    PortRange ports{};
  };
  /// Collective over `bootstrap`, which is not kept. Every wait ends by `deadline`.
  static Result<std::unique_ptr<ControlMesh>> create(Bootstrap& bootstrap, const Options& options,
                                                     const Log& log, Deadline deadline);
  virtual ~ControlMesh() = default;  // leaves in order, joins the thread

  virtual Rank rank() const noexcept = 0;
  virtual int size() const noexcept = 0;
  /// Dissemination over the mesh, log n rounds. Before start() only.
  virtual Result<std::vector<Blob>> all_gather(std::span<const std::byte> mine,
                                               Deadline deadline) = 0;

  struct Handlers {
    std::function<void(const Notice&)> on_notice;  // from the thread; at most once
    /// From the thread, between sleeps; returns how long it may sleep at most.
    std::function<Duration()> on_tick;
    /// From the thread: whether the data path has heard from that rank since it was last asked.
    std::function<bool(Rank)> data_path_hears{};
  };
  /// The last meeting of ranks that make something together: returns when every rank has called it.
  /// Makes the thread, which waits for start(), so that nothing fails after it. Before start(), at
  /// most once.
  virtual Result<void> meet_ready(Deadline deadline) = 0;
  /// Starts the thread, and makes it where meet_ready() has not. From now on a peer's end without a
  /// goodbye is peer_lost, and is flooded.
  virtual void start(Handlers handlers) = 0;
  /// Floods a notice of this rank's own and wakes the thread. Any thread. Does not call on_notice.
  virtual void announce(const Notice& notice) noexcept = 0;
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
  /// Makes the thread call on_tick soon. Any thread; a system call only if the thread sleeps.
  virtual void wake() noexcept = 0;
  /// "eth0 10.0.0.3:41234" or "loopback": for the log.
  virtual std::string describe() const = 0;
  /// Of this communicator, for connections beside the mesh's: the same on every rank, and nobody
  /// else has it. GDRX_SECRET_FILE is mixed in.
  virtual const Key& key() const noexcept = 0;
};

}  // namespace gdrx

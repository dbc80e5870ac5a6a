// SPDX-License-Identifier: Apache-2.0
// Where connections begin: the listener, strangers until they have shown who they are, and this
// side's own calls. A stranger costs a descriptor and a short message, and takes nobody's place.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "gdrx/clock.hpp"
#include "gdrx/config.hpp"
#include "transport/bootstrap/strangers.hpp"
#include "transport/tcp/greeting.hpp"
#include "transport/tcp/stream.hpp"

struct epoll_event;

namespace gdrx::tcp {

class Door {
 public:
  /// What becomes of callers. Called from serve().
  class Host {
   public:
    virtual ~Host() = default;
    /// Of one who has the key. `welcome` is followed by joined() or left().
    virtual Verdict judge(Rank from, const Nonce& tag) = 0;
    virtual void left(Rank from) noexcept = 0;
    virtual void joined(Rank peer, Stream stream) = 0;
    /// The call to `peer` has ended: its own is on its way.
    virtual void crossed(Rank peer) = 0;
    virtual void unreachable(Rank peer, Error error) = 0;
  };
  /// A connection that is not one yet.
  class PendingPeer {
   public:
    enum class Next : std::uint8_t { stay, gone };
    virtual ~PendingPeer() = default;
    virtual int fd() const noexcept = 0;
    virtual Next step(Instant now) = 0;
    /// Without anything having come.
    virtual Next look_at_clock(Instant now) = 0;
    /// Its step threw; it goes.
    virtual void lost() noexcept {}
    virtual bool is_call() const noexcept { return false; }
    virtual bool is_call_to(Rank) const noexcept { return false; }
    /// Never, for those who must stay.
    virtual Instant silent_since() const noexcept { return Instant::max(); }
    /// Has not shown that he is of this job.
    virtual bool is_stranger() const noexcept { return false; }
  };

  static Result<std::unique_ptr<Door>> open(const Identity& self, const Config& config, Host& host);
  ~Door();
  Door(const Door&) = delete;
  Door& operator=(const Door&) = delete;

  const SocketAddress& address() const noexcept { return address_; }
  const std::string& interface() const noexcept { return interface_; }
  /// Starts a call, which serve() goes on with until it has an end.
  Result<void> call(const Address& to);
  void cancel(Rank peer);
  /// One system call where nothing happens.
  void serve(Instant now);
  /// How long strangers may wait after the last serve(), so that they take a fiftieth of the
  /// caller's time at most: each rank's loss is the whole job's. Who comes meanwhile stands in the
  /// kernel's queue.
  Duration rest() const noexcept { return rest_; }
  bool is_calling() const noexcept { return calls_ > 0; }

  // For pending peers.
  const Identity& self() const noexcept { return self_; }
  Host& host() noexcept { return host_; }
  void watch(PendingPeer& pending, bool for_writing) noexcept;
  /// Before it is closed or handed on: where a forked child holds it, too, the kernel would go on.
  void unwatch(int fd) noexcept;
  Duration patience() const noexcept { return patience_; }

 private:
  Door(const Identity& self, Host& host, Duration patience);
  void accept(Instant now);
  template <class Step>
  void let(PendingPeer* pending, Step step);
  void sweep();
  Duration handle(std::span<const epoll_event> events, Instant now);

  const Identity& self_;
  Host& host_;
  Duration patience_;  // with a peer that does not let us in
  Socket epoll_;
  Socket listener_;
  SocketAddress address_;
  std::string interface_;
  std::vector<std::unique_ptr<PendingPeer>> pending_;  // oldest first
  std::vector<PendingPeer*> gone_;
  Admission admission_;
  std::size_t calls_ = 0;
  Instant next_look_{};
  Duration rest_{};
};

}  // namespace gdrx::tcp

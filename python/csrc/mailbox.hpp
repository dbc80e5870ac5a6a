// SPDX-License-Identifier: Apache-2.0
// Sends and receives by tag, and from any source.
//
// gdrx matches the messages of a pair in their order and knows no tags. So a message is a packet
// that says tag and size, with the bytes in it if they are few, and behind it the bytes if they are
// more. A packet of a peer is received only while somebody waits for a message that may come from
// it. What was not asked for yet is kept in memory until it is. So any order of tags and of peers
// works, also from any source; it costs a packet of 128 bytes for each message, and a copy for one
// that came too early.
#pragma once

#include <array>
#include <cstddef>
#include <deque>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "work.hpp"

namespace gdrx_torch {

constexpr int kAnySource = -1;

/// What a message is for: barriers that name who is missing have tags of their own.
enum class Purpose : std::uint16_t { user = 1, barrier = 2 };

struct Key {
  int tag = 0;
  Purpose purpose = Purpose::user;
  bool operator==(const Key&) const = default;
};

/// Used with the engine's lock held. `ended` gets the calls that are done.
class Mailbox {
 public:
  Mailbox(gdrxComm_t comm, int rank, int size);
  ~Mailbox();
  Mailbox(const Mailbox&) = delete;
  Mailbox& operator=(const Mailbox&) = delete;

  void send(const WorkPtr& work, int peer, Key key, std::vector<WorkPtr>& ended);
  void receive(const WorkPtr& work, int peer, Key key, std::vector<WorkPtr>& ended);
  void advance(std::vector<WorkPtr>& ended, Clock::time_point now);
  /// Nothing is on its way here, and no peer is listened to.
  bool idle() const { return quiet() && listening_ == 0; }
  /// Nobody waits for anything.
  bool quiet() const { return outgoing_.empty() && receipts_.empty() && arriving_ == 0; }
  /// Nobody waits for this peer: a packet of his would be kept.
  bool only_listens_to(int peer) const { return peer_of(peer).listening && !wanted(peer); }
  /// Seconds for which the oldest call has waited here.
  double oldest(Clock::time_point now) const;
  /// Why the communicator failed; empty: it has not.
  const std::string& failure() const { return failure_; }
  /// Ends every call with this error.
  void fail(const std::string& why, std::vector<WorkPtr>& ended);
  /// The communicator has ended: takes back its requests.
  void take_back();

 private:
  static constexpr std::size_t kBody = 112;
  struct Packet {
    std::uint64_t bytes = 0;
    std::int32_t tag = 0;
    Purpose purpose = Purpose::user;
    std::uint16_t inside = 0;  // 1: the bytes are in the packet
    std::array<std::byte, kBody> body{};
  };
  static_assert(sizeof(Packet) == 128);
  struct Peer {
    Packet packet;
    gdrxRequest_t request = nullptr;
    bool listening = false;
  };
  struct Outgoing {
    Packet packet;
    WorkPtr work;       // null: it has ended before its message has
    at::Tensor tensor;  // alive until the message has left
    std::array<gdrxRequest_t, 2> requests{};
  };
  struct Receipt {
    WorkPtr work;
    int source = kAnySource;
    Key key;
  };
  struct Arrival {
    int source = 0;
    Key key;
    std::uint64_t bytes = 0;
    std::vector<std::byte> body;
    at::Tensor tensor;  // where it goes, if that was known when it came
    gdrxRequest_t request = nullptr;
    bool arriving = false;
    WorkPtr work;  // whom it is for
  };

  const Peer& peer_of(int rank) const { return peers_[static_cast<std::size_t>(rank)]; }
  void listen(int peer);
  void listen_to(int source);
  bool wanted(int peer) const;
  void open(int peer, std::vector<WorkPtr>& ended);
  bool deliver(Arrival& arrival, std::vector<WorkPtr>& ended);
  bool test(gdrxRequest_t& request);
  void advance_outgoing(std::vector<WorkPtr>& ended, Clock::time_point now);
  void advance_arrivals(std::vector<WorkPtr>& ended, Clock::time_point now);
  std::string late(const Work& work, const std::string& peer) const;

  gdrxComm_t comm_;
  int rank_;
  std::deque<Peer> peers_;
  int listening_ = 0;
  std::size_t arriving_ = 0;
  std::list<Outgoing> outgoing_;
  std::list<Receipt> receipts_;  // asked for, and not come
  std::list<Arrival> arrivals_;  // come, and not asked for or not whole
  std::string failure_;
};

}  // namespace gdrx_torch

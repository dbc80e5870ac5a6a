// SPDX-License-Identifier: Apache-2.0
// What joins the simulated networks of several processes of one machine into one: packets and
// answers over Unix sockets, in order. A process that ends is a host without power.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "gdrx/result.hpp"

namespace gdrx::sim {

/// What goes between processes, in front of a payload.
struct Frame {
  enum class Kind : std::uint8_t { packet, acknowledged, refused, not_ready };
  using Gid = std::array<std::uint8_t, 16>;
  std::uint32_t magic = 0x73696d31;
  Kind kind{};
  std::uint8_t opcode = 0;  // ibv_wr_opcode
  std::uint8_t status = 0;  // ibv_wc_status, of what is refused
  std::uint8_t reserved = 0;
  Gid to{};                 // the NIC it is for
  Gid from{};               // the NIC that answers go to
  std::uint32_t asker = 0;  // QP that sent the packet
  std::uint32_t asked = 0;  // QP that it was for
  std::uint32_t psn = 0;
  std::uint32_t imm = 0;
  std::uint32_t rkey = 0;
  std::uint32_t to_key = 0;
  std::uint32_t bytes = 0;    // of the request; a read's come with its answer
  std::uint32_t payload = 0;  // bytes behind this frame
  std::uint64_t address = 0;
};
static_assert(sizeof(Frame) == 80);

/// Hosts of a network have numbers, the fifteenth byte of their GIDs. send() may be called with any
/// lock held; `take` is called by the bridge's own thread.
class Bridge {
 public:
  using Take = std::function<void(const Frame&, std::vector<std::byte>)>;
  static Result<std::unique_ptr<Bridge>> create(std::string network, Take take);
  ~Bridge();
  Bridge(const Bridge&) = delete;
  Bridge& operator=(const Bridge&) = delete;

  /// A number that no living process has.
  Result<int> claim();
  void release(int host);
  /// Lost without a word where nobody is.
  void send(const Frame& frame, const std::vector<std::byte>& payload);

 private:
  struct Incoming {
    int fd = -1;
    int host = -1;  // of ours
    Frame frame;
    std::vector<std::byte> payload;
    std::size_t got = 0;  // of the frame, then of the payload
  };
  struct Outgoing {
    int fd = -1;
    std::deque<std::vector<std::byte>> waiting;
    std::size_t sent = 0;  // of the first
  };
  Bridge(std::string network, Take take, int wake)
      : network_(std::move(network)), take_(std::move(take)), wake_(wake) {}
  void run();
  bool read(Incoming& from);
  void accept_on(int host, int listener, std::vector<Incoming>& into);
  void flush_all();
  static bool flush(Outgoing& to);
  Outgoing* reach(int host);

  std::string network_;
  Take take_;
  int wake_;
  std::mutex mutex_;              // of what follows
  std::map<int, int> listeners_;  // descriptors of hosts of ours
  std::vector<int> unheard_;      // of released ones, for the thread to close
  std::map<int, Outgoing> outgoing_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace gdrx::sim

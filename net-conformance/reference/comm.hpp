// SPDX-License-Identifier: Apache-2.0
// The reference plugin's communicators: one TCP connection each, receives announced to the sender.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <utility>

#include "plugin/abi/types.hpp"

namespace gdrx::reference {

using nccl::NetResult;

inline constexpr int kMaxRecvs = 8;

/// An open socket or -1.
class Socket {
 public:
  explicit Socket(int fd = -1) noexcept : fd_(fd) {}
  Socket(Socket&& other) noexcept;
  Socket& operator=(Socket&& other) noexcept;
  ~Socket();
  int fd() const noexcept { return fd_; }
  explicit operator bool() const noexcept { return fd_ >= 0; }
  int release() noexcept { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

/// From the receiver: what a posted group of receives expects.
struct Announcement {
  std::uint64_t group = 0;
  std::uint32_t count = 0;
  std::uint32_t reserved = 0;
  struct Part {
    std::uint64_t size = 0;
    std::int32_t tag = 0;
    std::uint32_t matched = 0;  // the sender's own note
  };
  std::array<Part, kMaxRecvs> parts{};
};
static_assert(sizeof(Announcement) == 16 + 16 * kMaxRecvs);

/// From the sender, before the bytes of a message.
struct Header {
  std::uint64_t group = 0;
  std::uint64_t size = 0;
  std::uint32_t part = 0;
  std::uint32_t reserved = 0;
};
static_assert(sizeof(Header) == 24);

class Comm;

struct Request {
  Comm* comm = nullptr;
  bool used = false;
  bool is_send = false;
  Header header{};               // a send's
  std::byte* payload = nullptr;  // a send's
  std::size_t written = 0;       // of header and payload
  Announcement announcement{};   // a receive's
  std::array<std::byte*, kMaxRecvs> buffers{};
  std::array<int, kMaxRecvs> sizes{};
  std::uint32_t finished = 0;  // parts
  bool done = false;
};

/// One thread at a time. Nothing blocks. What one end does to its memory is done when test() runs.
class Comm {
 public:
  Comm(Socket socket, bool is_send) : socket_(std::move(socket)), is_send_(is_send) {}

  /// Null: no receive of that tag is announced yet, or too much is under way.
  NetResult isend(std::byte* data, std::size_t size, int tag, Request** request);
  NetResult irecv(std::span<void* const> data, const std::size_t* sizes, const int* tags,
                  Request** request);
  /// Moves what can be moved now.
  NetResult progress();

 private:
  Request* take();
  bool read_some(void* to, std::size_t want, std::size_t* have);
  void read_announcements();
  void read_messages();
  void write_announcements();
  void write_messages();
  bool finish_message();

  Socket socket_;
  bool is_send_;
  bool failed_ = false;
  bool ended_ = false;  // the peer closed; what it sent before has been read
  std::array<Request, kMaxRecvs * nccl::kMaxRequests> requests_{};
  std::deque<Request*> queue_;         // sends to write, receives to announce
  std::size_t announced_ = 0;          // bytes written of the front announcement
  std::deque<Announcement> expected_;  // by the peer
  Announcement incoming_{};
  std::size_t incoming_have_ = 0;
  std::deque<Request*> posted_;  // receives that are not done, in order
  std::uint64_t next_group_ = 0;
  Header header_{};
  std::size_t header_have_ = 0;
  std::size_t payload_have_ = 0;
};

}  // namespace gdrx::reference

// SPDX-License-Identifier: Apache-2.0
// Bytes between two processes of the suite, beside the plugin: what NCCL's bootstrap does.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <type_traits>

#include "gdrx/clock.hpp"
#include "gdrx/result.hpp"

namespace gdrx::conformance {

/// A connected stream socket. Owns it. One thread.
class Channel {
 public:
  explicit Channel(int fd) noexcept : fd_(fd) {}
  Channel(Channel&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  Channel& operator=(Channel&&) = delete;
  ~Channel();

  /// "blocked" when the other side is gone or late.
  Result<void> send_bytes(std::span<const std::byte> bytes);
  Result<void> receive_bytes(std::span<std::byte> bytes, Duration limit);
  /// True if a message is there to be received.
  bool readable() const noexcept { return wait(Duration::zero()); }
  /// True once something has come, or the other side's end.
  bool wait(Duration limit) const noexcept;
  /// Nothing more will be sent.
  void half_close() noexcept;
  int fd() const noexcept { return fd_; }

  template <class T>
  Result<void> send(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    return send_bytes(std::as_bytes(std::span(&value, 1)));
  }
  template <class T>
  Result<T> receive(Duration limit) {
    static_assert(std::is_trivially_copyable_v<T>);
    T value{};
    GDRX_TRY(receive_bytes(std::as_writable_bytes(std::span(&value, 1)), limit));
    return value;
  }

 private:
  int fd_;
};

/// Listens on a port of any address.
class Server {
 public:
  static Result<Server> listen(int port);
  /// Errc::timeout when nobody has come.
  Result<Channel> accept(Duration limit);

 private:
  Server(int port, int fd) : port_(port), socket_(fd) {}
  int port_;
  Channel socket_;
};

/// Waits for one connection on `port` of any address / connects to "host:port".
Result<Channel> serve(int port, Duration limit);
Result<Channel> dial(const std::string& host_and_port, Duration limit);

}  // namespace gdrx::conformance

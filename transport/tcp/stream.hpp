// SPDX-License-Identifier: Apache-2.0
// A connection's bytes, plain or through TLS. Never waits.
#pragma once

#include <sys/uio.h>

#include <optional>
#include <span>

#include "gdrx/result.hpp"
#include "transport/bootstrap/socket.hpp"
#include "transport/secure/tls_session.hpp"

namespace gdrx::tcp {

class Stream {
 public:
  /// Of ciphertext: what one system call moves. Memory that is not used is not touched.
  static constexpr TlsSession::Options kTls{.buffer = 256 << 10, .received = 256 << 10};
  Stream(Socket socket, std::optional<TlsSession> tls);

  int fd() const noexcept { return socket_.fd(); }
  /// Takes bytes off the front of `parts`, as many as there is room for, and says how many.
  Result<std::size_t> send(std::span<const iovec> parts);
  /// How many of the bytes that send() took need no further call to arrive.
  std::uint64_t settled() const noexcept { return settled_; }
  bool has_unsent() const noexcept { return settled_ != taken_; }
  bool encrypted() const noexcept { return tls_.has_value(); }
  /// Not of an encrypted stream. Fills `first`, then `second`, as far as what has come goes.
  /// Errc::peer_lost at the end.
  Result<std::size_t> receive(std::span<std::byte> first, std::span<std::byte> second);
  /// Of an encrypted stream. Fills `to` likewise; what lies behind that may be overwritten.
  Result<std::size_t> read(std::span<std::byte> to);
  /// Of an encrypted stream: what has come, where it was opened, until it is take()n. Valid until
  /// the next call that is not const.
  Result<std::span<const std::byte>> peek();
  void take(std::size_t bytes) noexcept { tls_->take(bytes); }
  /// True if the last receive() has left nothing behind, as far as one can know.
  bool dry() const noexcept { return dry_ && !has_unread(); }
  /// Bytes have been taken from the socket that receive() has not given: no event tells of them.
  bool has_unread() const noexcept { return tls_ && tls_->pending(); }
  /// What follows are no bytes of ours.
  void close() noexcept;

 private:
  Result<std::size_t> send_tls(std::span<const iovec> parts);
  Result<bool> flush();  // false: the socket is full
  Result<bool> fetch();  // false: nothing has come

  Socket socket_;
  std::optional<TlsSession> tls_;
  std::uint64_t taken_ = 0;
  std::uint64_t settled_ = 0;
  bool dry_ = true;
};

}  // namespace gdrx::tcp

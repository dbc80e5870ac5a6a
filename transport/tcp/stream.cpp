// SPDX-License-Identifier: Apache-2.0
#include "transport/tcp/stream.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

namespace gdrx::tcp {
namespace {

tl::unexpected<Error> ended() {
  return fail(Errc::peer_lost, "the other side closed the connection");
}

// Nothing now, or why nothing ever.
Result<std::size_t> nothing(int error) {
  if (error == EAGAIN || error == EINTR || error == ENOBUFS) return std::size_t{0};
  return fail(Errc::peer_lost, "the connection broke", error);
}

}  // namespace

Stream::Stream(Socket socket, std::optional<TlsSession> tls)
    : socket_(std::move(socket)), tls_(std::move(tls)) {}

Result<std::size_t> Stream::send(std::span<const iovec> parts) {
  if (tls_) return send_tls(parts);
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(parts.data());
  message.msg_iovlen = parts.size();
  const ssize_t sent = sendmsg(socket_.fd(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent < 0) return nothing(errno);
  taken_ += static_cast<std::size_t>(sent);
  settled_ = taken_;
  return static_cast<std::size_t>(sent);
}

Result<bool> Stream::flush() {
  while (!tls_->unsent().empty()) {
    const std::size_t sent = GDRX_TRY(socket_.send_some(tls_->unsent()));
    if (sent == 0) return false;
    tls_->sent(sent);
  }
  settled_ = taken_;
  return true;
}

// Encrypts what TLS's buffer holds, then sends it with one call: the peer decrypts it while the
// next is encrypted here.
Result<std::size_t> Stream::send_tls(std::span<const iovec> parts) {
  if (!GDRX_TRY(flush())) return std::size_t{0};
  const std::size_t taken = GDRX_TRY(tls_->write(parts));
  taken_ += taken;
  GDRX_TRY(flush());
  return taken;
}

Result<std::size_t> Stream::receive(std::span<std::byte> first, std::span<std::byte> second) {
  ssize_t received = 0;
  if (first.empty()) {
    received = recv(socket_.fd(), second.data(), second.size(), MSG_DONTWAIT);
  } else {
    const iovec parts[2] = {{first.data(), first.size()}, {second.data(), second.size()}};
    received = readv(socket_.fd(), parts, 2);
  }
  dry_ = received < static_cast<ssize_t>(first.size() + second.size());
  if (received > 0) return static_cast<std::size_t>(received);
  if (received == 0) return ended();
  return nothing(errno);
}

Result<std::size_t> Stream::read(std::span<std::byte> to) {
  while (true) {
    const std::size_t got = GDRX_TRY(tls_->read(to));
    if (got > 0 || !GDRX_TRY(fetch())) return got;
  }
}

Result<std::span<const std::byte>> Stream::peek() {
  while (true) {
    const auto opened = GDRX_TRY(tls_->peek());
    if (!opened.empty() || !GDRX_TRY(fetch())) return opened;
  }
}

Result<bool> Stream::fetch() {
  const std::span<std::byte> space = tls_->space();
  const std::size_t came = GDRX_TRY(socket_.receive_some(space));
  dry_ = came < space.size();
  if (came == 0) tls_->prepare();
  tls_->received(came);
  return came > 0;
}

void Stream::close() noexcept {
  if (tls_) {
    tls_->close();
    try {
      (void)flush();
    } catch (const std::bad_alloc&) {  // the connection ends all the same
    }
  }
  // Bytes that nobody reads would make the kernel throw away what is on its way to the peer.
  std::byte rest[4096];
  for (int i = 0; i < 64 && recv(socket_.fd(), rest, sizeof rest, MSG_DONTWAIT) > 0; ++i) {
  }
  shutdown(socket_.fd(), SHUT_RDWR);
  socket_ = Socket();
}

}  // namespace gdrx::tcp

// SPDX-License-Identifier: Apache-2.0
// One TLS 1.3 connection without its socket: ciphertext in and out, plaintext in and out, nothing
// waits. Both ends hold one key (an external PSK); the key exchange is ephemeral, so that a key
// that leaks later opens nothing that was recorded. A connection's key is derived for its two ends
// and its direction: an impostor that passes a greeting on to a third gets no further. OpenSSL does
// the handshake and goes; tls_records.hpp carries on from there.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "gdrx/result.hpp"
#include "transport/secure/key.hpp"

namespace gdrx {

class TlsSession {
 public:
  /// The key of a client's identity; nothing for one that is not expected.
  using FindKey = std::function<std::optional<Key>(std::string_view identity)>;
  struct Options {
    std::size_t buffer = 16 << 10;          // bytes of ciphertext kept for sending
    std::size_t received = 16 << 10;        // and of what came
    std::uint64_t records_a_key = 1 << 23;  // AES-GCM's limit is 2^24.5 (RFC 8446, 5.5)
  };

  /// `identity` goes over the wire in clear text: it says whose connection this is.
  static Result<TlsSession> client(std::string identity, const Key& key, const Options& options);
  static Result<TlsSession> server(FindKey find, const Options& options);
  static Result<TlsSession> client(std::string identity, const Key& key);
  static Result<TlsSession> server(FindKey find);
  /// Over a connection within this host that nobody can record: without the key exchange, and both
  /// know `identity`. See ShortHandshake.
  static TlsSession client_here(std::string identity, const Key& key);
  static TlsSession server_here(std::string identity, const Key& key);
  TlsSession(TlsSession&&) noexcept;
  TlsSession& operator=(TlsSession&&) noexcept;
  ~TlsSession();

  /// Done once both ends have shown that they hold the key. Errc::protocol is final; what unsent()
  /// holds then tells the peer.
  Result<Progress> handshake();
  bool established() const noexcept;
  /// What the client said that it is.
  const std::string& identity() const noexcept;

  /// Where ciphertext is to be put; empty while what came before has not been read.
  std::span<std::byte> space() noexcept;
  void received(std::size_t bytes) noexcept;
  /// Copies what fits, and says how much that was.
  std::size_t feed(std::span<const std::byte> ciphertext) noexcept;
  /// Ciphertext to be sent. Valid until the next call that is not const.
  std::span<const std::byte> unsent() const noexcept;
  void sent(std::size_t bytes) noexcept;

  /// Takes as much as its buffer has room for, many records at once; 0 when it is full or before
  /// the handshake is done. A long part's last record holds nothing else: the reader may open it
  /// where the part belongs.
  Result<std::size_t> write(std::span<const iovec> parts);
  Result<std::size_t> write(std::span<const std::byte> plaintext);
  /// Fills `plaintext` as far as what came goes; 0 if nothing whole came. Errc::peer_lost after the
  /// peer's close(), Errc::protocol for anything forged, changed, repeated or left out. Whole
  /// records are opened in `plaintext` itself: what lies behind the bytes that it says may be
  /// overwritten.
  Result<std::size_t> read(std::span<std::byte> plaintext);
  /// The plaintext that lies here, at most a record's, to be take()n; empty if nothing whole came.
  /// Valid until the next call that is not const. Errors as read()'s.
  Result<std::span<const std::byte>> peek();
  void take(std::size_t plaintext) noexcept;
  /// Whether read() yields something, or an error, although nothing new came.
  bool pending() const noexcept;
  /// Does what the next records need ahead of them: for whoever finds that nothing has come.
  void prepare() noexcept;
  /// Tells the peer that nothing follows.
  void close() noexcept;

 private:
  struct Impl;
  explicit TlsSession(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gdrx

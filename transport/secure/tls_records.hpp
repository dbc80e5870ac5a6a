// SPDX-License-Identifier: Apache-2.0
// One direction's records of a TLS 1.3 connection after its handshake (RFC 8446, 5). OpenSSL's
// handshake makes the secret and its ciphers do the work, so what goes over the wire is TLS; its
// SSL_write() and SSL_read() would take three times as long over a small record.
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "gdrx/result.hpp"
#include "transport/secure/key.hpp"

using EVP_CIPHER_CTX = struct evp_cipher_ctx_st;

namespace gdrx {

/// What is in a record (RFC 8446, 5.1).
enum class TlsContent : std::uint8_t { alert = 21, handshake = 22, data = 23 };

/// RFC 8446, B.4. Both have SHA-256, numbers of 12 and tags of 16 bytes.
enum class TlsSuite : std::uint16_t { aes_128_gcm = 0x1301, chacha20_poly1305 = 0x1303 };

class TlsRecords {
 public:
  static constexpr std::size_t kHeader = 5;
  static constexpr std::size_t kTag = 16;
  static constexpr std::size_t kMostPlain = 16384;
  static constexpr std::size_t kMostSealed = kMostPlain + 256;  // behind the header
  static constexpr std::size_t kOverhead = kHeader + 1 + kTag;

  /// `secret`: the direction's traffic secret (RFC 8446, 7.1). One that seals does not open.
  static Result<TlsRecords> to_seal(TlsSuite suite, const Key& secret);
  static Result<TlsRecords> to_open(TlsSuite suite, const Key& secret);

  /// The parts, kMostPlain bytes at most, as one record at `to`, which has kOverhead bytes more.
  /// Returns the record's bytes.
  Result<std::size_t> seal(TlsContent type, std::span<const iovec> parts, std::byte* to);

  struct Opened {
    TlsContent type;
    std::size_t size;  // of the plaintext, which lies behind the header now
  };
  /// The bytes of the record that begins at `from`, header and all; 0 while its header is not
  /// whole. Nothing for what is no record of this phase.
  static std::optional<std::size_t> size_of(std::span<const std::byte> from) noexcept;
  /// In its place. Errc::protocol for one that was forged, changed, repeated or left out before.
  Result<Opened> open(std::span<std::byte> record);
  /// Bytes that a plaintext of `record`'s length has at most.
  static std::size_t most_of(std::span<const std::byte> record) noexcept {
    return record.size() - kOverhead;
  }
  /// To `to`, which has most_of(record) bytes or more: all of them may be overwritten, by nonsense
  /// where it fails.
  Result<Opened> open(std::span<std::byte> record, std::span<std::byte> to);

  /// What the next record needs if it is as long as the last one, done ahead: a quarter of a small
  /// one's time. Once a record; to be called where nothing else is to be done.
  void prepare() noexcept;
  /// Records so far under the key in use.
  std::uint64_t count() const noexcept { return sequence_; }
  /// The next key (RFC 8446, 7.2).
  Result<void> renew();

 private:
  using Header = std::array<std::byte, kHeader>;
  struct Free {
    void operator()(EVP_CIPHER_CTX* cipher) const noexcept;
  };
  TlsRecords(TlsSuite suite, bool seals, const Key& secret);
  static Result<TlsRecords> create(TlsSuite suite, bool seals, const Key& secret);
  Result<void> use_secret();
  bool set_number() noexcept;
  bool update(std::span<const std::byte> from, std::byte* to) noexcept;
  bool show(const Header& header) noexcept;
  bool begin(const Header& header) noexcept;
  bool begin_open(std::span<const std::byte> record) noexcept;
  bool end_open(std::span<std::byte> record) noexcept;

  TlsSuite suite_;
  bool seals_;
  Key secret_;
  std::unique_ptr<EVP_CIPHER_CTX, Free> cipher_;
  std::array<std::byte, 12> iv_{};
  std::uint64_t sequence_ = 0;
  Header header_{};        // what the cipher was shown last
  bool prepared_ = false;  // it has the next record's number, and header_
};

}  // namespace gdrx

// SPDX-License-Identifier: Apache-2.0
#include "transport/secure/tls_records.hpp"

#include <openssl/evp.h>

#include "transport/secure/tls_context.hpp"

namespace gdrx {
namespace {

const unsigned char* octets(const void* bytes) { return static_cast<const unsigned char*>(bytes); }
unsigned char* octets(void* bytes) { return static_cast<unsigned char*>(bytes); }

const EVP_CIPHER* cipher_of(TlsSuite suite) {
  return suite == TlsSuite::aes_128_gcm ? EVP_aes_128_gcm() : EVP_chacha20_poly1305();
}

tl::unexpected<Error> not_theirs() {
  return fail(Errc::protocol, "a TLS record that was changed on its way, or is not its turn's");
}

}  // namespace

void TlsRecords::Free::operator()(EVP_CIPHER_CTX* cipher) const noexcept {
  EVP_CIPHER_CTX_free(cipher);
}

TlsRecords::TlsRecords(TlsSuite suite, bool seals, const Key& secret)
    : suite_(suite), seals_(seals), secret_(secret), cipher_(EVP_CIPHER_CTX_new()) {}

Result<TlsRecords> TlsRecords::create(TlsSuite suite, bool seals, const Key& secret) {
  TlsRecords made(suite, seals, secret);
  GDRX_TRY(made.use_secret());
  return made;
}

Result<TlsRecords> TlsRecords::to_seal(TlsSuite suite, const Key& secret) {
  return create(suite, true, secret);
}
Result<TlsRecords> TlsRecords::to_open(TlsSuite suite, const Key& secret) {
  return create(suite, false, secret);
}

Result<void> TlsRecords::use_secret() {
  const EVP_CIPHER* cipher = cipher_of(suite_);
  std::array<std::byte, 32> key{};
  const auto used =
      std::span(key).first(static_cast<std::size_t>(EVP_CIPHER_get_key_length(cipher)));
  GDRX_TRY(expand_label(secret_, "key", used));
  GDRX_TRY(expand_label(secret_, "iv", iv_));
  const int set = !cipher_ ? 0
                           : EVP_CipherInit_ex(cipher_.get(), cipher, nullptr, octets(key.data()),
                                               octets(iv_.data()), seals_ ? 1 : 0);
  wipe(key);
  sequence_ = 0;
  if (set != 1) return fail(Errc::system, openssl_error("a TLS cipher"));
  return {};
}

Result<void> TlsRecords::renew() {
  std::array<std::byte, Key::kBytes> next{};
  GDRX_TRY(expand_label(secret_, "traffic upd", next));
  secret_ = Key(next);
  wipe(next);
  return use_secret();
}

// The record's own number (RFC 8446, 5.3), and its header as what is only shown to be right.
bool TlsRecords::begin(std::span<const std::byte, kHeader> header) noexcept {
  std::array<std::byte, 12> number = iv_;
  for (std::size_t i = 0; i < 8; ++i) {
    number[number.size() - 1 - i] ^= static_cast<std::byte>(sequence_ >> (8 * i));
  }
  ++sequence_;
  int done = 0;
  return EVP_CipherInit_ex(cipher_.get(), nullptr, nullptr, nullptr, octets(number.data()), -1) ==
             1 &&
         EVP_CipherUpdate(cipher_.get(), nullptr, &done, octets(header.data()), kHeader) == 1;
}

Result<std::size_t> TlsRecords::seal(TlsContent type, std::span<const iovec> parts, std::byte* to) {
  std::size_t size = 1;
  for (const iovec& part : parts) size += part.iov_len;
  const std::size_t sealed = size + kTag;
  const std::array<std::byte, kHeader> header{
      static_cast<std::byte>(TlsContent::data), std::byte{3}, std::byte{3},
      static_cast<std::byte>(sealed >> 8), static_cast<std::byte>(sealed)};
  std::copy(header.begin(), header.end(), to);
  bool good = begin(header);
  unsigned char* at = octets(to) + kHeader;
  int done = 0;
  for (const iovec& part : parts) {
    if (part.iov_len == 0) continue;
    good = good && EVP_CipherUpdate(cipher_.get(), at, &done, octets(part.iov_base),
                                    static_cast<int>(part.iov_len)) == 1;
    at += part.iov_len;
  }
  const auto inner = static_cast<unsigned char>(type);
  good = good && EVP_CipherUpdate(cipher_.get(), at, &done, &inner, 1) == 1 &&
         EVP_CipherFinal_ex(cipher_.get(), at + 1, &done) == 1 &&
         EVP_CIPHER_CTX_ctrl(cipher_.get(), EVP_CTRL_AEAD_GET_TAG, kTag, at + 1) == 1;
  if (!good) return fail(Errc::system, openssl_error("a TLS record"));
  return kHeader + sealed;
}

std::optional<std::size_t> TlsRecords::size_of(std::span<const std::byte> from) noexcept {
  if (from.size() < kHeader) return std::size_t{0};
  const std::size_t sealed =
      std::to_integer<std::size_t>(from[3]) << 8 | std::to_integer<std::size_t>(from[4]);
  if (from[0] != static_cast<std::byte>(TlsContent::data) || sealed <= kTag ||
      sealed > kMostSealed) {
    return std::nullopt;
  }
  return kHeader + sealed;
}

Result<TlsRecords::Opened> TlsRecords::open(std::span<std::byte> record) {
  const auto inner = record.subspan(kHeader, record.size() - kHeader - kTag);
  std::byte* const tag = inner.data() + inner.size();
  int done = 0;
  const bool good = begin(record.first<kHeader>()) &&
                    EVP_CipherUpdate(cipher_.get(), octets(inner.data()), &done,
                                     octets(inner.data()), static_cast<int>(inner.size())) == 1 &&
                    EVP_CIPHER_CTX_ctrl(cipher_.get(), EVP_CTRL_AEAD_SET_TAG, kTag, tag) == 1 &&
                    EVP_CipherFinal_ex(cipher_.get(), octets(tag), &done) == 1;
  if (!good) return not_theirs();
  std::size_t size = inner.size();
  while (size > 0 && inner[size - 1] == std::byte{0}) --size;  // padding
  if (size == 0 || size - 1 > kMostPlain) return not_theirs();
  return Opened{static_cast<TlsContent>(inner[size - 1]), size - 1};
}

}  // namespace gdrx

// SPDX-License-Identifier: Apache-2.0
#include "transport/secure/tls_records.hpp"

#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/params.h>

#include <algorithm>
#include <utility>

#include "transport/secure/copy_apart.hpp"
#include "transport/secure/tls_context.hpp"

namespace gdrx {
namespace {

// A record of several parts is brought together where it is sealed, up to this size: each further
// call of the cipher costs more than that.
constexpr std::size_t kGathered = 8 << 10;

const unsigned char* octets(const void* bytes) { return static_cast<const unsigned char*>(bytes); }
unsigned char* octets(void* bytes) { return static_cast<unsigned char*>(bytes); }

const EVP_CIPHER* cipher_of(TlsSuite suite) {
  return suite == TlsSuite::aes_128_gcm ? EVP_aes_128_gcm() : EVP_chacha20_poly1305();
}

std::array<OSSL_PARAM, 2> tag_at(std::byte* tag) {
  return {OSSL_PARAM_construct_octet_string(OSSL_CIPHER_PARAM_AEAD_TAG, tag, TlsRecords::kTag),
          OSSL_PARAM_construct_end()};
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
  prepared_ = false;
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

// The record's own number (RFC 8446, 5.3).
bool TlsRecords::set_number() noexcept {
  std::array<std::byte, 12> number = iv_;
  for (std::size_t i = 0; i < 8; ++i) {
    number[number.size() - 1 - i] ^= static_cast<std::byte>(sequence_ >> (8 * i));
  }
  return EVP_CipherInit_ex(cipher_.get(), nullptr, nullptr, nullptr, octets(number.data()), -1) ==
         1;
}

// Setting the number anew forgets what was shown before: no two headers are of one record.
bool TlsRecords::show(const Header& header) noexcept {
  header_ = header;
  return set_number() && update(header, nullptr);
}

void TlsRecords::prepare() noexcept {
  if (!prepared_) prepared_ = show(header_);
}

// No number is used twice, whatever fails.
bool TlsRecords::begin(const Header& header) noexcept {
  const bool good = (std::exchange(prepared_, false) && header == header_) || show(header);
  ++sequence_;
  return good;
}

// As OpenSSL's own TLS does it: EVP_CipherUpdate() asks first what is so anyway, 10 ns of a small
// record's 150. At least 1 where it succeeds; whether a record is right the end alone says.
bool TlsRecords::update(std::span<const std::byte> from, std::byte* to) noexcept {
  return from.empty() || EVP_Cipher(cipher_.get(), octets(to), octets(from.data()),
                                    static_cast<unsigned>(from.size())) > 0;
}

Result<std::size_t> TlsRecords::seal(TlsContent type, std::span<const iovec> parts, std::byte* to) {
  std::size_t size = 1;
  for (const iovec& part : parts) size += part.iov_len;
  const std::size_t sealed = size + kTag;
  const Header header{static_cast<std::byte>(TlsContent::data), std::byte{3}, std::byte{3},
                      static_cast<std::byte>(sealed >> 8), static_cast<std::byte>(sealed)};
  std::copy(header.begin(), header.end(), to);
  const auto inner = static_cast<std::byte>(type);
  const auto last = std::span(&inner, 1);
  bool good = begin(header);
  std::byte* at = to + kHeader;
  if (size <= kGathered) {
    for (const iovec& part : parts) {
      copy_apart(at, static_cast<const std::byte*>(part.iov_base), part.iov_len);
      at += part.iov_len;
    }
    *at++ = inner;
    good = good && update({at - size, size}, at - size);
  } else {
    for (const iovec& part : parts) {
      good = good && update({static_cast<const std::byte*>(part.iov_base), part.iov_len}, at);
      at += part.iov_len;
    }
    good = good && update(last, at++);
  }
  int done = 0;
  auto tag = tag_at(at);
  good = good && EVP_CipherFinal_ex(cipher_.get(), octets(at), &done) == 1 &&
         EVP_CIPHER_CTX_get_params(cipher_.get(), tag.data()) == 1;
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

bool TlsRecords::begin_open(std::span<const std::byte> record) noexcept {
  Header header;
  std::copy_n(record.begin(), kHeader, header.begin());
  return begin(header);
}

bool TlsRecords::end_open(std::span<std::byte> record) noexcept {
  std::byte* const behind = record.data() + record.size() - kTag;
  const auto tag = tag_at(behind);
  int done = 0;
  return EVP_CIPHER_CTX_set_params(cipher_.get(), tag.data()) == 1 &&
         EVP_CipherFinal_ex(cipher_.get(), octets(behind), &done) == 1;
}

Result<TlsRecords::Opened> TlsRecords::open(std::span<std::byte> record) {
  const auto inner = record.subspan(kHeader, record.size() - kHeader - kTag);
  if (!begin_open(record) || !update(inner, inner.data()) || !end_open(record)) return not_theirs();
  std::size_t size = inner.size();
  while (size > 0 && inner[size - 1] == std::byte{0}) --size;  // padding
  if (size == 0 || size - 1 > kMostPlain) return not_theirs();
  return Opened{static_cast<TlsContent>(inner[size - 1]), size - 1};
}

Result<TlsRecords::Opened> TlsRecords::open(std::span<std::byte> record, std::span<std::byte> to) {
  std::size_t size = most_of(record);
  const auto inner = std::span<const std::byte>(record).subspan(kHeader, size + 1);
  std::byte last{};
  if (to.size() > size) {  // a call of the cipher less
    if (!begin_open(record) || !update(inner, to.data()) || !end_open(record)) return not_theirs();
    last = to[size];
  } else if (!begin_open(record) || !update(inner.first(size), to.data()) ||
             !update(inner.subspan(size), &last) || !end_open(record)) {
    return not_theirs();
  }
  while (size > 0 && last == std::byte{0}) last = to[--size];  // padding
  if (last == std::byte{0} || size > kMostPlain) return not_theirs();
  return Opened{static_cast<TlsContent>(last), size};
}

}  // namespace gdrx

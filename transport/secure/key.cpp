// SPDX-License-Identifier: Apache-2.0
#include "transport/secure/key.hpp"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include "transport/secure/tls_context.hpp"

namespace gdrx {
namespace {

OSSL_PARAM octets(const char* name, std::span<const std::byte> bytes) {
  // OpenSSL reads it; its type has no const.
  return OSSL_PARAM_construct_octet_string(name, const_cast<std::byte*>(bytes.data()),
                                           bytes.size());
}

Result<void> run_kdf(const char* name, const OSSL_PARAM* parameters, std::span<std::byte> out) {
  start_openssl();
  const std::unique_ptr<EVP_KDF, decltype(&EVP_KDF_free)> kdf(EVP_KDF_fetch(nullptr, name, nullptr),
                                                              &EVP_KDF_free);
  const std::unique_ptr<EVP_KDF_CTX, decltype(&EVP_KDF_CTX_free)> state(
      kdf ? EVP_KDF_CTX_new(kdf.get()) : nullptr, &EVP_KDF_CTX_free);
  if (!state || EVP_KDF_derive(state.get(), reinterpret_cast<unsigned char*>(out.data()),
                               out.size(), parameters) <= 0) {
    return fail(Errc::system, openssl_error(name));
  }
  return {};
}

Result<Key> key_by_kdf(const char* name, const OSSL_PARAM* parameters) {
  std::array<std::byte, Key::kBytes> out{};
  GDRX_TRY(run_kdf(name, parameters, out));
  Key key{std::span<const std::byte, Key::kBytes>(out)};
  wipe(out);
  return key;
}

}  // namespace

void wipe(std::span<std::byte> bytes) noexcept { OPENSSL_cleanse(bytes.data(), bytes.size()); }

Key::Key(std::span<const std::byte, kBytes> bytes) noexcept {
  std::copy(bytes.begin(), bytes.end(), bytes_.begin());
}

Result<Key> Key::random() {
  Key key;
  if (getrandom(key.bytes_.data(), kBytes, 0) != static_cast<ssize_t>(kBytes)) {
    return fail(Errc::system, "getrandom", errno);
  }
  return key;
}

bool operator==(const Key& a, const Key& b) noexcept {
  return CRYPTO_memcmp(a.bytes_.data(), b.bytes_.data(), Key::kBytes) == 0;
}

KeyContext& KeyContext::append(std::uint64_t length, std::span<const std::byte> bytes) {
  const auto size = std::as_bytes(std::span(&length, 1));
  append(size);
  append(bytes);
  return *this;
}

void KeyContext::append(std::span<const std::byte> bytes) {
  if (many_.empty() && bytes.size() <= few_.size() - size_) {
    std::copy(bytes.begin(), bytes.end(), few_.begin() + size_);
    size_ += bytes.size();
    return;
  }
  if (many_.empty()) many_.assign(few_.begin(), few_.begin() + size_);
  many_.insert(many_.end(), bytes.begin(), bytes.end());
}

namespace {

// OpenSSL 3.0 takes at most 2048 bytes. What many ranks have said is longer: its digest stands for
// it.
constexpr std::size_t kMostContext = 1024;

Result<KeyContext> info_of(std::string_view label, const KeyContext& context) {
  KeyContext info;
  info.add(label);
  if (context.bytes().size() <= kMostContext) return info.add(context.bytes());
  std::array<std::byte, 32> digest{};
  if (EVP_Digest(context.bytes().data(), context.bytes().size(),
                 reinterpret_cast<unsigned char*>(digest.data()), nullptr, EVP_sha256(),
                 nullptr) != 1) {
    return fail(Errc::system, openssl_error("SHA-256"));
  }
  return info.add(std::string_view("digest")).add(std::span<const std::byte>(digest));
}

}  // namespace

Result<Key> derive(std::span<const std::byte> from, std::string_view label,
                   const KeyContext& context) {
  static constexpr std::string_view kSalt = "gdrx 1";
  const KeyContext info = GDRX_TRY(info_of(label, context));
  char digest[] = "SHA256";
  const OSSL_PARAM parameters[] = {
      OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest, 0),
      octets(OSSL_KDF_PARAM_KEY, from),
      octets(OSSL_KDF_PARAM_SALT, std::as_bytes(std::span(kSalt))),
      octets(OSSL_KDF_PARAM_INFO, info.bytes()), OSSL_PARAM_construct_end()};
  return key_by_kdf("HKDF", parameters);
}

Result<void> expand_label(const Key& secret, std::string_view label, std::span<std::byte> out) {
  static constexpr std::string_view kPrefix = "tls13 ";
  std::array<std::byte, 64> room{};  // no memory: a key that has been announced is to come
  const std::size_t size = 4 + kPrefix.size() + label.size();
  if (size > room.size()) return fail(Errc::internal, "a TLS label that is too long");
  room[1] = static_cast<std::byte>(out.size());
  room[2] = static_cast<std::byte>(kPrefix.size() + label.size());
  auto at = room.begin() + 3;
  for (const std::string_view text : {kPrefix, label}) {
    at = std::ranges::copy(std::as_bytes(std::span(text)), at).out;
  }
  const auto info = std::span<const std::byte>(room).first(size);  // the last: no context
  char digest[] = "SHA256";
  int mode = EVP_KDF_HKDF_MODE_EXPAND_ONLY;
  const OSSL_PARAM parameters[] = {
      OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest, 0),
      OSSL_PARAM_construct_int(OSSL_KDF_PARAM_MODE, &mode),
      octets(OSSL_KDF_PARAM_KEY, secret.bytes()), octets(OSSL_KDF_PARAM_INFO, info),
      OSSL_PARAM_construct_end()};
  return run_kdf("HKDF", parameters, out);
}

Result<Key> stretch(std::span<const std::byte> secret, std::string_view label) {
  std::uint64_t n = 1 << 14;
  std::uint32_t r = 8;
  std::uint32_t p = 1;
  const OSSL_PARAM parameters[] = {octets(OSSL_KDF_PARAM_PASSWORD, secret),
                                   octets(OSSL_KDF_PARAM_SALT, std::as_bytes(std::span(label))),
                                   OSSL_PARAM_construct_uint64(OSSL_KDF_PARAM_SCRYPT_N, &n),
                                   OSSL_PARAM_construct_uint32(OSSL_KDF_PARAM_SCRYPT_R, &r),
                                   OSSL_PARAM_construct_uint32(OSSL_KDF_PARAM_SCRYPT_P, &p),
                                   OSSL_PARAM_construct_end()};
  return key_by_kdf("SCRYPT", parameters);
}

}  // namespace gdrx

// SPDX-License-Identifier: Apache-2.0
#include "transport/secure/key.hpp"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
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
  bytes_.insert(bytes_.end(), size.begin(), size.end());
  bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  return *this;
}

Result<Key> derive(std::span<const std::byte> from, std::string_view label,
                   const KeyContext& context) {
  start_openssl();
  const std::unique_ptr<EVP_KDF, decltype(&EVP_KDF_free)> kdf(
      EVP_KDF_fetch(nullptr, "HKDF", nullptr), &EVP_KDF_free);
  if (!kdf) return fail(Errc::system, openssl_error("HKDF"));
  const std::unique_ptr<EVP_KDF_CTX, decltype(&EVP_KDF_CTX_free)> state(EVP_KDF_CTX_new(kdf.get()),
                                                                        &EVP_KDF_CTX_free);
  KeyContext info;
  info.add(label).add(context.bytes());
  char digest[] = "SHA256";
  static constexpr std::string_view kSalt = "gdrx 1";
  const OSSL_PARAM parameters[] = {
      OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest, 0),
      octets(OSSL_KDF_PARAM_KEY, from),
      octets(OSSL_KDF_PARAM_SALT, std::as_bytes(std::span(kSalt))),
      octets(OSSL_KDF_PARAM_INFO, info.bytes()), OSSL_PARAM_construct_end()};
  std::array<std::byte, Key::kBytes> out{};
  if (!state || EVP_KDF_derive(state.get(), reinterpret_cast<unsigned char*>(out.data()),
                               out.size(), parameters) <= 0) {
    return fail(Errc::system, openssl_error("HKDF"));
  }
  Key key{std::span<const std::byte, Key::kBytes>(out)};
  wipe(out);
  return key;
}

}  // namespace gdrx

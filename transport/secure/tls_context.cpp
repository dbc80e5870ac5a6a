// SPDX-License-Identifier: Apache-2.0
#include "transport/secure/tls_context.hpp"

#include <openssl/err.h>
#include <openssl/ssl.h>

#include <array>

namespace gdrx {
namespace {

// Both ciphers' hash is SHA-256, which an external key is bound to.
constexpr const char* kCiphers = "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256";
constexpr const char* kGroups = "X25519:P-256";

Result<SSL_CTX*> make(bool server, void (*hear)(const SSL*, const char*)) {
  start_openssl();
  SSL_CTX* context = SSL_CTX_new(server ? TLS_server_method() : TLS_client_method());
  if (context == nullptr || SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) != 1 ||
      SSL_CTX_set_max_proto_version(context, TLS1_3_VERSION) != 1 ||
      SSL_CTX_set_ciphersuites(context, kCiphers) != 1 ||
      SSL_CTX_set1_groups_list(context, kGroups) != 1 || SSL_CTX_set_num_tickets(context, 0) != 1) {
    const std::string why = openssl_error("TLS 1.3 with AES-128-GCM");
    SSL_CTX_free(context);
    return fail(Errc::unsupported, why);
  }
  SSL_CTX_set_options(context, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  SSL_CTX_clear_options(context, SSL_OP_ENABLE_MIDDLEBOX_COMPAT);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_keylog_callback(context, hear);
  SSL_CTX_set_mode(context, SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_AUTO_RETRY);
  // A server without the key would have to show a certificate, which nobody here believes.
  if (!server) SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
  return context;
}

}  // namespace

void start_openssl() noexcept { OPENSSL_init_ssl(OPENSSL_INIT_NO_ATEXIT, nullptr); }

std::string openssl_error(const std::string& what) {
  const unsigned long code = ERR_peek_error();
  ERR_clear_error();
  std::array<char, 256> text{};
  if (const char* reason = ERR_reason_error_string(code); reason != nullptr) {
    return what + ": " + reason;
  }
  ERR_error_string_n(code, text.data(), text.size());
  return what + ": " + text.data();
}

Result<SSL_CTX*> tls_context(bool server, void (*hear)(const SSL*, const char*)) {
  static const Result<SSL_CTX*> of_servers = make(true, hear);
  static const Result<SSL_CTX*> of_clients = make(false, hear);
  return server ? of_servers : of_clients;
}

}  // namespace gdrx

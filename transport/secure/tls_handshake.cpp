// SPDX-License-Identifier: Apache-2.0
#include "transport/secure/tls_handshake.hpp"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "transport/secure/tls_context.hpp"

namespace gdrx {
namespace {

// The form in which OpenSSL takes a key from outside.
SSL_SESSION* as_session(SSL* ssl, const Key& key) {
  static constexpr unsigned char kAes128GcmSha256[] = {0x13, 0x01};
  SSL_SESSION* session = SSL_SESSION_new();
  const SSL_CIPHER* cipher = SSL_CIPHER_find(ssl, kAes128GcmSha256);
  const auto* bytes = reinterpret_cast<const unsigned char*>(key.bytes().data());
  if (session != nullptr && cipher != nullptr &&
      SSL_SESSION_set1_master_key(session, bytes, Key::kBytes) == 1 &&
      SSL_SESSION_set_cipher(session, cipher) == 1 &&
      SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) == 1) {
    return session;
  }
  SSL_SESSION_free(session);
  return nullptr;
}

// The secret of a line of NSS's key log: "`label` random secret", in hexadecimal digits.
std::optional<Key> secret_in(std::string_view line, std::string_view label) {
  if (!line.starts_with(label) || line.size() < 2 * Key::kBytes) return std::nullopt;
  const std::string_view digits = line.substr(line.size() - 2 * Key::kBytes);
  std::array<std::byte, Key::kBytes> bytes{};
  for (std::size_t i = 0; i < digits.size(); ++i) {
    const char c = digits[i];
    const bool decimal = c >= '0' && c <= '9';
    if (!decimal && !(c >= 'a' && c <= 'f')) return std::nullopt;
    bytes[i / 2] = bytes[i / 2] << 4 | static_cast<std::byte>(decimal ? c - '0' : c - 'a' + 10);
  }
  const Key secret(bytes);
  wipe(bytes);
  return secret;
}

}  // namespace

// Nothing may be thrown through OpenSSL: a hook that cannot do its work fails the handshake.
struct TlsHandshake::Hooks {
  static TlsHandshake& of(BIO* bio) { return *static_cast<TlsHandshake*>(BIO_get_data(bio)); }
  static TlsHandshake& of(const SSL* ssl) {
    return *static_cast<TlsHandshake*>(SSL_get_ex_data(ssl, 0));
  }

  static int take_in(BIO* bio, char* to, std::size_t most, std::size_t* taken) noexcept {
    ByteWindow& in = of(bio).wire_.in;
    BIO_clear_retry_flags(bio);
    *taken = std::min(most, in.size());
    if (*taken == 0) {
      BIO_set_retry_read(bio);
      return 0;
    }
    std::memcpy(to, in.full().data(), *taken);
    in.take(*taken);
    return 1;
  }

  static int put_out(BIO* bio, const char* from, std::size_t size, std::size_t* put) noexcept {
    BIO_clear_retry_flags(bio);
    *put = of(bio).wire_.out.append(std::as_bytes(std::span(from, size)));
    if (*put == 0) BIO_set_retry_write(bio);
    return *put > 0 ? 1 : 0;
  }

  static long control(BIO*, int command, long, void*) noexcept {
    return command == BIO_CTRL_FLUSH ? 1 : 0;
  }

  static BIO_METHOD* method() {
    static BIO_METHOD* const made = [] {
      BIO_METHOD* method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "gdrx");
      if (method == nullptr) return method;
      BIO_meth_set_read_ex(method, &take_in);
      BIO_meth_set_write_ex(method, &put_out);
      BIO_meth_set_ctrl(method, &control);
      return method;
    }();
    return made;
  }

  static int use_key(SSL* ssl, const EVP_MD* digest, const unsigned char** id, std::size_t* id_size,
                     SSL_SESSION** session) noexcept {
    const Client& self = of(ssl).client_;
    *session = nullptr;
    // A second greeting may ask for another hash, which the key is not for.
    if (digest != nullptr && EVP_MD_get_type(digest) != NID_sha256) return 1;
    *id = reinterpret_cast<const unsigned char*>(self.identity.data());
    *id_size = self.identity.size();
    *session = as_session(ssl, self.key);
    return *session != nullptr ? 1 : 0;
  }

  static int find_key(SSL* ssl, const unsigned char* id, std::size_t id_size,
                      SSL_SESSION** session) noexcept try {
    TlsHandshake& self = of(ssl);
    *session = nullptr;
    if (id_size > kMostIdentity) return 1;
    const std::string_view identity(reinterpret_cast<const char*>(id), id_size);
    const std::optional<Key> key = self.find_(identity);
    if (!key) return 1;
    self.client_.identity = identity;
    *session = as_session(ssl, *key);
    return *session != nullptr ? 1 : 0;
  } catch (...) {
    return 0;
  }

  static void hear_secret(const SSL* ssl, const char* line) noexcept {
    TlsHandshake& self = of(ssl);
    if (auto key = secret_in(line, "CLIENT_TRAFFIC_SECRET_0 ")) self.secret_of_client_ = key;
    if (auto key = secret_in(line, "SERVER_TRAFFIC_SECRET_0 ")) self.secret_of_server_ = key;
  }
};

Result<std::unique_ptr<TlsHandshake>> TlsHandshake::open(std::unique_ptr<TlsHandshake> made,
                                                         bool server) {
  SSL_CTX* context = GDRX_TRY(tls_context(server, &Hooks::hear_secret));
  made->ssl_ = SSL_new(context);
  BIO* bio = Hooks::method() == nullptr ? nullptr : BIO_new(Hooks::method());
  if (made->ssl_ == nullptr || bio == nullptr || SSL_set_ex_data(made->ssl_, 0, made.get()) != 1) {
    BIO_free(bio);
    return fail(Errc::system, openssl_error("a TLS session"));
  }
  BIO_set_data(bio, made.get());
  BIO_set_init(bio, 1);
  SSL_set_bio(made->ssl_, bio, bio);
  if (server) {
    SSL_set_psk_find_session_callback(made->ssl_, &Hooks::find_key);
    SSL_set_accept_state(made->ssl_);
  } else {
    SSL_set_psk_use_session_callback(made->ssl_, &Hooks::use_key);
    SSL_set_connect_state(made->ssl_);
  }
  return made;
}

Result<std::unique_ptr<TlsHandshake>> TlsHandshake::of_client(const Wire& wire, Client client) {
  std::unique_ptr<TlsHandshake> made(new TlsHandshake(wire));
  made->client_ = std::move(client);
  return open(std::move(made), false);
}

Result<std::unique_ptr<TlsHandshake>> TlsHandshake::of_server(const Wire& wire, FindKey find) {
  std::unique_ptr<TlsHandshake> made(new TlsHandshake(wire));
  made->find_ = std::move(find);
  return open(std::move(made), true);
}

TlsHandshake::~TlsHandshake() { SSL_free(ssl_); }

Result<Progress> TlsHandshake::step() {
  ERR_clear_error();
  const int code = SSL_do_handshake(ssl_);
  if (code == 1) {
    // Only a session by the shared key counts as one resumed.
    if (SSL_session_reused(ssl_) == 1) return Progress::done;
    return fail(Errc::protocol, "TLS handshake: the peer did not show the key");
  }
  const int why = SSL_get_error(ssl_, code);
  if (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE) return Progress::pending;
  return fail(Errc::protocol, openssl_error("TLS handshake (is the key another there?)"));
}

Result<TlsHandshake::Outcome> TlsHandshake::outcome() const {
  const SSL_CIPHER* cipher = SSL_get_current_cipher(ssl_);
  // What it has read beyond its own records would be lost.
  if (cipher == nullptr || !secret_of_client_ || !secret_of_server_ || SSL_has_pending(ssl_) == 1) {
    return fail(Errc::internal, "TLS handshake: OpenSSL leaves no secrets");
  }
  return Outcome{TlsSuite{SSL_CIPHER_get_protocol_id(cipher)}, *secret_of_client_,
                 *secret_of_server_};
}

}  // namespace gdrx

// SPDX-License-Identifier: Apache-2.0
#include "transport/secure/tls_session.hpp"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <utility>

#include "transport/secure/byte_window.hpp"
#include "transport/secure/tls_context.hpp"

namespace gdrx {
namespace {

constexpr std::size_t kRecord = SSL3_RT_MAX_PLAIN_LENGTH;
// Beyond Options::buffer: one whole record, and what OpenSSL says of its own accord.
constexpr std::size_t kReserve = kRecord + 4096;
constexpr std::size_t kMostIdentity = 256;
constexpr unsigned char kAes128GcmSha256[] = {0x13, 0x01};

// The form in which OpenSSL takes a key from outside.
SSL_SESSION* as_session(SSL* ssl, const Key& key) {
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

}  // namespace

struct TlsSession::Impl {
  Impl(const Options& chosen, bool is_server)
      : options(chosen), server(is_server), in(chosen.buffer), out(chosen.buffer + kReserve) {}

  Options options;
  bool server;
  ByteWindow in;
  ByteWindow out;
  std::string identity;
  Key key;  // a client's
  FindKey find;
  bool established = false;
  std::uint64_t records = 0;  // written under the key in use
  std::optional<Error> failed;
  std::unique_ptr<SSL, decltype(&SSL_free)> ssl{nullptr, &SSL_free};  // goes first: uses the above

  static Impl* of(BIO* bio) { return static_cast<Impl*>(BIO_get_data(bio)); }
  static Impl* of(const SSL* ssl) { return static_cast<Impl*>(SSL_get_ex_data(ssl, 0)); }
  static BIO_METHOD* method();
  static int take_in(BIO* bio, char* to, std::size_t most, std::size_t* taken);
  static int put_out(BIO* bio, const char* from, std::size_t size, std::size_t* put);
  static long control(BIO* bio, int command, long number, void* pointer);
  static int use_key(SSL* ssl, const EVP_MD* digest, const unsigned char** id, std::size_t* id_size,
                     SSL_SESSION** session);
  static int find_key(SSL* ssl, const unsigned char* id, std::size_t id_size,
                      SSL_SESSION** session);

  Result<void> open();
  // 0 where more ciphertext has to come, or room for some; else the reason why nothing ever will.
  Result<std::size_t> judge(int code, const char* what);
  tl::unexpected<Error> broken(Errc code, const std::string& what);
  Result<void> renew_key();
};

int TlsSession::Impl::take_in(BIO* bio, char* to, std::size_t most, std::size_t* taken) {
  Impl& self = *of(bio);
  BIO_clear_retry_flags(bio);
  *taken = std::min(most, self.in.size());
  if (*taken == 0) {
    BIO_set_retry_read(bio);
    return 0;
  }
  std::memcpy(to, self.in.full().data(), *taken);
  self.in.take(*taken);
  return 1;
}

int TlsSession::Impl::put_out(BIO* bio, const char* from, std::size_t size, std::size_t* put) {
  BIO_clear_retry_flags(bio);
  *put = of(bio)->out.append(std::as_bytes(std::span(from, size)));
  if (*put == 0) BIO_set_retry_write(bio);
  return *put > 0 ? 1 : 0;
}

long TlsSession::Impl::control(BIO*, int command, long, void*) {
  return command == BIO_CTRL_FLUSH ? 1 : 0;
}

BIO_METHOD* TlsSession::Impl::method() {
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

int TlsSession::Impl::use_key(SSL* ssl, const EVP_MD* digest, const unsigned char** id,
                              std::size_t* id_size, SSL_SESSION** session) {
  Impl& self = *of(ssl);
  *session = nullptr;
  // A second greeting may ask for another hash, which the key is not for.
  if (digest != nullptr && EVP_MD_get_type(digest) != NID_sha256) return 1;
  *id = reinterpret_cast<const unsigned char*>(self.identity.data());
  *id_size = self.identity.size();
  *session = as_session(ssl, self.key);
  return *session != nullptr ? 1 : 0;
}

int TlsSession::Impl::find_key(SSL* ssl, const unsigned char* id, std::size_t id_size,
                               SSL_SESSION** session) {
  Impl& self = *of(ssl);
  *session = nullptr;
  if (id_size > kMostIdentity) return 1;
  const std::string_view identity(reinterpret_cast<const char*>(id), id_size);
  const std::optional<Key> key = self.find(identity);
  if (!key) return 1;
  self.identity = identity;
  *session = as_session(ssl, *key);
  return *session != nullptr ? 1 : 0;
}

Result<void> TlsSession::Impl::open() {
  SSL_CTX* context = GDRX_TRY(tls_context(server));
  ssl.reset(SSL_new(context));
  BIO* bio = method() == nullptr ? nullptr : BIO_new(method());
  if (!ssl || bio == nullptr || SSL_set_ex_data(ssl.get(), 0, this) != 1) {
    BIO_free(bio);
    return fail(Errc::system, openssl_error("a TLS session"));
  }
  BIO_set_data(bio, this);
  BIO_set_init(bio, 1);
  SSL_set_bio(ssl.get(), bio, bio);
  if (!options.bulk) SSL_set_mode(ssl.get(), SSL_MODE_RELEASE_BUFFERS);
  if (server) {
    SSL_set_psk_find_session_callback(ssl.get(), &find_key);
    SSL_set_accept_state(ssl.get());
  } else {
    SSL_set_psk_use_session_callback(ssl.get(), &use_key);
    SSL_set_connect_state(ssl.get());
  }
  return {};
}

tl::unexpected<Error> TlsSession::Impl::broken(Errc code, const std::string& what) {
  failed = Error{code, what};
  return tl::unexpected(*failed);
}

Result<std::size_t> TlsSession::Impl::judge(int code, const char* what) {
  switch (SSL_get_error(ssl.get(), code)) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE:
      return 0;
    case SSL_ERROR_ZERO_RETURN:
      return broken(Errc::peer_lost, "the peer has closed the connection");
    default:
      return broken(Errc::protocol, openssl_error(what));
  }
}

Result<void> TlsSession::Impl::renew_key() {
  if (SSL_key_update(ssl.get(), SSL_KEY_UPDATE_NOT_REQUESTED) != 1) {
    return broken(Errc::system, openssl_error("a new TLS key"));
  }
  records = 0;
  return {};
}

TlsSession::TlsSession(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
TlsSession::TlsSession(TlsSession&&) noexcept = default;
TlsSession& TlsSession::operator=(TlsSession&&) noexcept = default;
TlsSession::~TlsSession() = default;

Result<TlsSession> TlsSession::client(std::string identity, const Key& key,
                                      const Options& options) {
  if (identity.empty() || identity.size() > kMostIdentity) {
    return fail(Errc::invalid_argument, "a TLS identity has 1 to 256 bytes");
  }
  auto impl = std::make_unique<Impl>(options, false);
  impl->identity = std::move(identity);
  impl->key = key;
  GDRX_TRY(impl->open());
  return TlsSession(std::move(impl));
}

Result<TlsSession> TlsSession::server(FindKey find, const Options& options) {
  auto impl = std::make_unique<Impl>(options, true);
  impl->find = std::move(find);
  GDRX_TRY(impl->open());
  return TlsSession(std::move(impl));
}

Result<TlsSession> TlsSession::client(std::string identity, const Key& key) {
  return client(std::move(identity), key, Options());
}
Result<TlsSession> TlsSession::server(FindKey find) { return server(std::move(find), Options()); }

Result<Progress> TlsSession::handshake() {
  Impl& self = *impl_;
  if (self.failed) return tl::unexpected(*self.failed);
  if (self.established) return Progress::done;
  ERR_clear_error();
  const int code = SSL_do_handshake(self.ssl.get());
  if (code != 1) {
    GDRX_TRY(self.judge(code, "TLS handshake (is the key another there?)"));
    return Progress::pending;
  }
  // Only a session by the shared key counts as one resumed.
  if (SSL_session_reused(self.ssl.get()) != 1) {
    return self.broken(Errc::protocol, "TLS handshake: the peer did not show the key");
  }
  self.established = true;
  self.find = nullptr;  // with the key that it may hold
  self.key = Key();
  return Progress::done;
}

bool TlsSession::established() const noexcept { return impl_->established; }
const std::string& TlsSession::identity() const noexcept { return impl_->identity; }

std::span<std::byte> TlsSession::space() noexcept { return impl_->in.space(); }
void TlsSession::received(std::size_t bytes) noexcept { impl_->in.put(bytes); }
std::size_t TlsSession::feed(std::span<const std::byte> ciphertext) noexcept {
  return impl_->in.append(ciphertext);
}
std::span<const std::byte> TlsSession::unsent() const noexcept { return impl_->out.full(); }
void TlsSession::sent(std::size_t bytes) noexcept { impl_->out.take(bytes); }

Result<std::size_t> TlsSession::write(std::span<const std::byte> plaintext) {
  Impl& self = *impl_;
  if (GDRX_TRY(handshake()) == Progress::pending) return 0;
  std::size_t written = 0;
  ERR_clear_error();
  while (written < plaintext.size() && self.out.size() < self.options.buffer) {
    if (self.records == self.options.records_a_key) GDRX_TRY(self.renew_key());
    const std::size_t piece = std::min(plaintext.size() - written, kRecord);
    std::size_t some = 0;
    const int code = SSL_write_ex(self.ssl.get(), plaintext.data() + written, piece, &some);
    if (code != 1) {
      GDRX_TRY(self.judge(code, "TLS write"));
      // There is room for a record: what OpenSSL keeps, it keeps for lack of sense.
      return self.broken(Errc::internal, "TLS write: a record did not fit");
    }
    written += some;
    ++self.records;
  }
  return written;
}

Result<std::size_t> TlsSession::read(std::span<std::byte> plaintext) {
  Impl& self = *impl_;
  if (self.failed) return tl::unexpected(*self.failed);
  if (GDRX_TRY(handshake()) == Progress::pending) return 0;
  std::size_t got = 0;
  ERR_clear_error();
  while (got < plaintext.size()) {
    std::size_t some = 0;
    const int code =
        SSL_read_ex(self.ssl.get(), plaintext.data() + got, plaintext.size() - got, &some);
    got += some;
    if (code == 1) {
      // Another call would only find that nothing more has come.
      if (self.in.size() == 0 && SSL_pending(self.ssl.get()) == 0) break;
      continue;
    }
    const auto more = self.judge(code, "TLS read");
    // What came before the end is the caller's; the next call says why it ended.
    if (!more && got == 0) return tl::unexpected(more.error());
    break;
  }
  return got;
}

bool TlsSession::pending() const noexcept {
  return impl_->in.size() > 0 || SSL_pending(impl_->ssl.get()) > 0;
}

void TlsSession::close() noexcept {
  if (!impl_->established) return;
  ERR_clear_error();
  SSL_shutdown(impl_->ssl.get());
  ERR_clear_error();
}

}  // namespace gdrx

// SPDX-License-Identifier: Apache-2.0
// A session whose other end is OpenSSL alone: what gdrx seals and opens by itself is TLS.
#include <gtest/gtest.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "transport/secure/tls_session.hpp"

namespace gdrx {
namespace {

using Bytes = std::vector<std::byte>;
constexpr std::string_view kName = "link 3 5";

Key key() {
  std::array<std::byte, Key::kBytes> bytes{};
  bytes.fill(std::byte{1});
  return Key(bytes);
}

SSL_SESSION* session_of(SSL* ssl) {
  constexpr unsigned char kSuite[] = {0x13, 0x01};
  SSL_SESSION* session = SSL_SESSION_new();
  SSL_SESSION_set1_master_key(session, reinterpret_cast<const unsigned char*>(key().bytes().data()),
                              Key::kBytes);
  SSL_SESSION_set_cipher(session, SSL_CIPHER_find(ssl, kSuite));
  SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION);
  return session;
}

int use_key(SSL* ssl, const EVP_MD*, const unsigned char** id, std::size_t* size,
            SSL_SESSION** session) {
  *id = reinterpret_cast<const unsigned char*>(kName.data());
  *size = kName.size();
  *session = session_of(ssl);
  return 1;
}

int find_key(SSL* ssl, const unsigned char*, std::size_t, SSL_SESSION** session) {
  *session = session_of(ssl);
  return 1;
}

// Its ciphertext is in memory.
class Openssl {
 public:
  Openssl(bool server, const char* suites)
      : context_(SSL_CTX_new(TLS_method()), &SSL_CTX_free), ssl_(nullptr, &SSL_free) {
    SSL_CTX_set_min_proto_version(context_.get(), TLS1_3_VERSION);
    SSL_CTX_set_ciphersuites(context_.get(), suites);
    SSL_CTX_set_num_tickets(context_.get(), 0);
    ssl_.reset(SSL_new(context_.get()));
    SSL_set_bio(ssl_.get(), BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    if (server) {
      SSL_set_psk_find_session_callback(ssl_.get(), &find_key);
      SSL_set_accept_state(ssl_.get());
    } else {
      SSL_set_psk_use_session_callback(ssl_.get(), &use_key);
      SSL_set_connect_state(ssl_.get());
    }
  }
  SSL* ssl() { return ssl_.get(); }

  void swap(TlsSession& other) {
    BIO_write(SSL_get_rbio(ssl()), other.unsent().data(), static_cast<int>(other.unsent().size()));
    other.sent(other.unsent().size());
    std::array<std::byte, 1024> some;
    while (!other.space().empty()) {
      const auto most = std::min(some.size(), other.space().size());
      const int got = BIO_read(SSL_get_wbio(ssl()), some.data(), static_cast<int>(most));
      if (got <= 0) return;
      other.feed(std::span(some).first(static_cast<std::size_t>(got)));
    }
  }
  Bytes read() {
    Bytes bytes(1 << 20);
    std::size_t all = 0;
    std::size_t got = 0;
    while (SSL_read_ex(ssl(), bytes.data() + all, bytes.size() - all, &got) == 1) all += got;
    bytes.resize(all);
    return bytes;
  }

 private:
  std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context_;
  std::unique_ptr<SSL, decltype(&SSL_free)> ssl_;
};

struct Case {
  bool openssl_serves;
  const char* suites;
};

class TlsBesideOpenssl : public testing::TestWithParam<Case> {
 protected:
  TlsBesideOpenssl()
      : theirs(GetParam().openssl_serves, GetParam().suites),
        ours(GetParam().openssl_serves
                 ? TlsSession::client(std::string(kName), key(), {.records_a_key = 3}).value()
                 : TlsSession::server([](std::string_view) { return std::optional(key()); },
                                      {.records_a_key = 3})
                       .value()) {}
  void SetUp() override {
    for (int i = 0; i < 4; ++i) {
      ASSERT_TRUE(ours.handshake());
      theirs.swap(ours);
      SSL_do_handshake(theirs.ssl());
      theirs.swap(ours);
    }
    ASSERT_TRUE(ours.handshake());
    ASSERT_TRUE(ours.established());
    ASSERT_TRUE(SSL_is_init_finished(theirs.ssl()));
  }
  Bytes sent_by_us(std::size_t size) {
    Bytes message(size);
    for (std::size_t i = 0; i < size; ++i) message[i] = static_cast<std::byte>(i * 7);
    Bytes got;
    for (std::size_t written = 0; written < size;) {
      written += ours.write(std::span<const std::byte>(message).subspan(written)).value();
      theirs.swap(ours);
      const Bytes more = theirs.read();
      got.insert(got.end(), more.begin(), more.end());
    }
    EXPECT_EQ(got, message);
    return got;
  }
  // Read into as much memory as it has, or into more, where records are opened at once.
  void sent_by_them(std::string_view text) {
    sent_by_them(text, text.size());
    sent_by_them(text, text.size() + 2000);
  }
  void sent_by_them(std::string_view text, std::size_t room) {
    ASSERT_EQ(SSL_write(theirs.ssl(), text.data(), static_cast<int>(text.size())),
              static_cast<int>(text.size()));
    theirs.swap(ours);
    Bytes got(room);
    ASSERT_EQ(ours.read(got).value(), text.size());
    got.resize(text.size());
    EXPECT_TRUE(std::ranges::equal(got, std::as_bytes(std::span(text))));
  }

  Openssl theirs;
  TlsSession ours;
};

TEST_P(TlsBesideOpenssl, IsUnderstoodAndUnderstands) {
  sent_by_us(1);
  sent_by_us(200'000);  // a new key after each third record
  sent_by_them("the ranks' addresses");
}

TEST_P(TlsBesideOpenssl, ChangesKeysWhenItIsTold) {
  ASSERT_EQ(SSL_key_update(theirs.ssl(), SSL_KEY_UPDATE_REQUESTED), 1);
  sent_by_them("under a new key");
  sent_by_us(100);
  sent_by_them("and again");
  sent_by_us(100);
}

TEST_P(TlsBesideOpenssl, TakesPaddingOff) {
  SSL_set_block_padding(theirs.ssl(), 512);
  sent_by_them("short");
  sent_by_them("and shorter");
}

TEST_P(TlsBesideOpenssl, EndsAsTlsDoes) {
  ours.close();
  theirs.swap(ours);
  EXPECT_TRUE(theirs.read().empty());
  EXPECT_EQ(SSL_get_shutdown(theirs.ssl()), SSL_RECEIVED_SHUTDOWN);
  SSL_shutdown(theirs.ssl());
  theirs.swap(ours);
  Bytes got(1);
  EXPECT_EQ(ours.read(got).error().code, Errc::peer_lost);
}

INSTANTIATE_TEST_SUITE_P(, TlsBesideOpenssl,
                         testing::Values(Case{true, "TLS_AES_128_GCM_SHA256"},
                                         Case{false, "TLS_AES_128_GCM_SHA256"},
                                         Case{true, "TLS_CHACHA20_POLY1305_SHA256"},
                                         Case{false, "TLS_CHACHA20_POLY1305_SHA256"}));

}  // namespace
}  // namespace gdrx

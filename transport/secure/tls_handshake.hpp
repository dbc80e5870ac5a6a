// SPDX-License-Identifier: Apache-2.0
// TLS 1.3's handshake, by OpenSSL: both ends show that they hold one key, and leave with the
// secrets of what follows.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "gdrx/result.hpp"
#include "transport/secure/byte_window.hpp"
#include "transport/secure/key.hpp"
#include "transport/secure/tls_records.hpp"

using SSL = struct ssl_st;

namespace gdrx {

class TlsHandshake {
 public:
  using FindKey = std::function<std::optional<Key>(std::string_view identity)>;
  static constexpr std::size_t kMostIdentity = 256;
  /// Ciphertext goes through the windows, which outlive it.
  struct Wire {
    ByteWindow& in;
    ByteWindow& out;
  };
  struct Client {
    std::string identity;
    Key key;
  };
  static Result<std::unique_ptr<TlsHandshake>> of_client(const Wire& wire, Client client);
  static Result<std::unique_ptr<TlsHandshake>> of_server(const Wire& wire, FindKey find);
  ~TlsHandshake();

  /// Errc::protocol is final.
  Result<Progress> step();
  /// Of the client.
  const std::string& identity() const noexcept { return client_.identity; }

  struct Outcome {
    TlsSuite suite;
    Key of_client;  // the traffic secrets of what each sends
    Key of_server;
  };
  /// After Progress::done.
  Result<Outcome> outcome() const;

 private:
  struct Hooks;  // what OpenSSL calls
  explicit TlsHandshake(const Wire& wire) : wire_(wire) {}
  static Result<std::unique_ptr<TlsHandshake>> open(std::unique_ptr<TlsHandshake> made,
                                                    bool server);

  Wire wire_;
  Client client_;
  FindKey find_;
  std::optional<Key> secret_of_client_;
  std::optional<Key> secret_of_server_;
  SSL* ssl_ = nullptr;
};

}  // namespace gdrx

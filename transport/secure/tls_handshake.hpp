// SPDX-License-Identifier: Apache-2.0
// TLS 1.3's handshake, by OpenSSL: both ends show that they hold one key, and leave with the
// secrets of what follows.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "transport/secure/handshake.hpp"

using SSL = struct ssl_st;

namespace gdrx {

class TlsHandshake final : public Handshake {
 public:
  static constexpr std::size_t kMostIdentity = 256;
  struct Client {
    std::string identity;
    Key key;
  };
  static Result<std::unique_ptr<TlsHandshake>> of_client(const Wire& wire, Client client);
  static Result<std::unique_ptr<TlsHandshake>> of_server(const Wire& wire, FindKey find);
  ~TlsHandshake() override;

  Result<Progress> step() override;
  const std::string& identity() const noexcept override { return client_.identity; }
  Result<Outcome> outcome() const override;

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

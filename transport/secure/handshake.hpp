// SPDX-License-Identifier: Apache-2.0
// How both ends of a connection show each other that they hold one key, and come to the secrets of
// what follows.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "gdrx/result.hpp"
#include "transport/secure/byte_window.hpp"
#include "transport/secure/key.hpp"
#include "transport/secure/tls_records.hpp"

namespace gdrx {

class Handshake {
 public:
  using FindKey = std::function<std::optional<Key>(std::string_view identity)>;
  /// What is said goes through the windows, which outlive it.
  struct Wire {
    ByteWindow& in;
    ByteWindow& out;
  };
  struct Outcome {
    TlsSuite suite;
    Key of_client;  // the traffic secrets of what each sends
    Key of_server;
  };
  virtual ~Handshake() = default;
  /// Errc::protocol is final.
  virtual Result<Progress> step() = 0;
  /// Of the client.
  virtual const std::string& identity() const noexcept = 0;
  /// After Progress::done.
  virtual Result<Outcome> outcome() const = 0;
};

}  // namespace gdrx

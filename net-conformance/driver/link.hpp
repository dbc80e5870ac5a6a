// SPDX-License-Identifier: Apache-2.0
// A send and a receive communicator of one process, connected to each other or to another process.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "gdrx/clock.hpp"
#include "gdrx/result.hpp"
#include "net-conformance/driver/session.hpp"

namespace gdrx::conformance {

inline std::chrono::seconds g_patience{8};  // for what has to come to an end

/// NCCL's 128 bytes, which its bootstrap copies between hosts, and a guard behind them.
struct Handle {
  alignas(64) std::array<std::byte, nccl::kHandleMaxSize> bytes{};
  std::array<std::byte, 64> guard{};
};

/// A communicator of one kind, closed at the end. Not after the Session.
class Comm {
 public:
  enum class Kind : std::uint8_t { listen, send, recv };
  Comm() = default;
  Comm(Session& session, Kind kind, void* comm) : session_(&session), kind_(kind), comm_(comm) {}
  Comm(Comm&& other) noexcept
      : session_(other.session_), kind_(other.kind_), comm_(std::exchange(other.comm_, nullptr)) {}
  Comm& operator=(Comm&& other) noexcept;
  ~Comm() { close(); }
  void* get() const noexcept { return comm_; }
  explicit operator bool() const noexcept { return comm_ != nullptr; }
  NetResult close() noexcept;  // success if there is none

 private:
  Session* session_ = nullptr;
  Kind kind_ = Kind::listen;
  void* comm_ = nullptr;
};

Result<Comm> listen(Session& session, Handle& handle);
/// One attempt: an empty Comm means "call again". `handle` is the same buffer each time.
Result<Comm> try_connect(Session& session, Handle& handle);
Result<Comm> try_accept(Session& session, const Comm& listener);
/// Attempts until `limit`.
Result<Comm> connect(Session& session, Handle& handle, Duration limit = g_patience);
Result<Comm> accept(Session& session, const Comm& listener, Duration limit = g_patience);

/// Both ends in this process. A failure to open one is "blocked".
struct Link {
  Comm send;
  Comm recv;
  static Result<Link> open(Session& session);  // polled by the calling thread alone
};

}  // namespace gdrx::conformance

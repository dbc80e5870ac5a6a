// SPDX-License-Identifier: Apache-2.0
// Messages under way, driven as NCCL's proxy drives them: isend and irecv called again while they
// yield no request, requests tested in turn by one thread.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <span>
#include <vector>

#include "gdrx/clock.hpp"
#include "gdrx/result.hpp"
#include "net-conformance/driver/link.hpp"
#include "net-conformance/driver/session.hpp"

namespace gdrx::conformance {

struct Message {
  std::byte* data = nullptr;
  std::size_t size = 0;
  int tag = 0;
  void* mhandle = nullptr;
};

inline constexpr int kPoison = -77;  // in ints that the plugin has not written

/// What test() wrote: more room than it may use.
using Sizes = std::array<int, 40>;

struct Transfer {
  std::vector<Message> parts;  // one for a send
  bool is_send = false;
  bool optional = false;  // irecv gets the optional-completion sentinel
  void* request = nullptr;
  bool posted = false;
  bool done = false;
  Sizes sizes{};

  int size_of(std::size_t part) const noexcept { return sizes[part]; }
};

/// Sends are posted in order among themselves, receives likewise, no more of them under way than
/// NCCL has. One thread.
class Exchange {
 public:
  /// `send`, `recv`: either may be null, if nothing is posted there.
  Exchange(Session& session, void* send, void* recv)
      : session_(session), send_(send), recv_(recv) {}
  Exchange(Session& session, const Link& link)
      : Exchange(session, link.send.get(), link.recv.get()) {}

  std::size_t send(const Message& message);
  std::size_t receive(const Message& message) { return receive(std::vector{message}); }
  std::size_t receive(std::vector<Message> group);
  std::size_t receive_optional(const Message& message);

  /// A send that yields no request does not hold up the ones behind it: they are other peers'.
  void sends_in_any_order() noexcept { any_order_ = true; }

  /// Of all that is under way the oldest send and the oldest receive alone are tested.
  void test_oldest_only() noexcept { oldest_only_ = true; }

  /// Posts and tests what is left, once.
  Result<void> step();
  /// Steps until all is done; a "broken" Result when it is not in time.
  Result<void> finish(Duration limit = g_patience);
  /// Steps until transfer `index` is posted (has a request).
  Result<void> until_posted(std::size_t index, Duration limit = g_patience);

  const Transfer& operator[](std::size_t index) const { return transfers_[index]; }
  std::size_t under_way(bool sends) const noexcept;  // posted and not done
  bool done() const noexcept;

 private:
  Result<void> post(Transfer& transfer);
  Result<void> test(Transfer& transfer);

  Session& session_;
  void* send_;
  void* recv_;
  bool any_order_ = false;
  bool oldest_only_ = false;
  std::vector<Transfer> transfers_;
};

}  // namespace gdrx::conformance

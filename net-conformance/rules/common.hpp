// SPDX-License-Identifier: Apache-2.0
// What the checks share.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <utility>

#include "gdrx/clock.hpp"
#include "net-conformance/driver/exchange.hpp"
#include "net-conformance/driver/link.hpp"
#include "net-conformance/driver/region.hpp"
#include "net-conformance/driver/session.hpp"
#include "net-conformance/driver/verdict.hpp"
#include "net-conformance/suite/rule.hpp"

namespace gdrx::conformance {

/// What a call that "does not block" may take (--at-once). Generous: the machine may be busy. A
/// call that waits for its peer takes for ever. Set once, before the first rule.
inline std::chrono::milliseconds g_at_once{1000};

/// The session, initialised, as preparation.
inline Result<void> ready(Session& session) { return prepared(session.init()); }

/// How long this thread has been kept from a processor that it could have used; 0 where the kernel
/// does not say.
inline Duration kept_waiting() {
  std::ifstream file("/proc/thread-self/schedstat");
  std::int64_t ran = 0;
  std::int64_t waited = 0;
  return file >> ran >> waited ? Duration(std::chrono::nanoseconds(waited)) : Duration();
}

/// What the call took, less what others on a busy machine took of it.
template <class F>
Duration timed(F&& call) {
  const Duration before = kept_waiting();
  const Instant start = steady_clock().now();
  call();
  const Duration took = steady_clock().now() - start;
  return std::max(Duration(), took - (kept_waiting() - before));
}

inline long long ms(Duration duration) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
}

/// The rule "this call does not block".
inline Result<void> at_once(const char* call, Duration took) {
  if (took > g_at_once) {
    return broken(fmt::format("{} took {} ms", call, ms(took)));
  }
  return {};
}

inline Message part(const Region& region, std::size_t offset, std::size_t size, int tag = 0) {
  return {region.data() + offset, size, tag, region.mhandle()};
}
inline Message whole(const Region& region, int tag = 0) {
  return part(region, 0, region.size(), tag);
}

/// A link and one region at each end of it.
struct Wired {
  Link link;
  Region from;
  Region to;
  static Result<Wired> open(Session& session, std::size_t send_size, std::size_t recv_size,
                            std::size_t skew = 0) {
    GDRX_TRY(ready(session));
    Link link = GDRX_TRY(Link::open(session));
    Region from = GDRX_TRY(prepared(Region::make(session, link.send.get(), send_size, skew)));
    Region to = GDRX_TRY(prepared(Region::make(session, link.recv.get(), recv_size, skew)));
    return Wired{std::move(link), std::move(from), std::move(to)};
  }
};

/// Bytes `region[offset...]` hold the message `seed`.
inline Result<void> holds(const Region& region, std::size_t offset, std::size_t size,
                          std::uint64_t seed) {
  const auto wrong = first_wrong(region.bytes().subspan(offset, size), seed);
  if (wrong) {
    return broken(fmt::format("byte {} of {} received is wrong", *wrong, size));
  }
  return {};
}

/// One message of all of it arrives.
inline Result<void> carries(Session& session, const Wired& wired) {
  fill(wired.from.bytes(), 1);
  Exchange exchange(session, wired.link);
  exchange.receive(whole(wired.to));
  exchange.send(whole(wired.from));
  GDRX_TRY(exchange.finish());
  return holds(wired.to, 0, wired.to.size(), 1);
}

}  // namespace gdrx::conformance

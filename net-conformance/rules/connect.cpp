// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "net-conformance/rules/common.hpp"

namespace gdrx::conformance {

namespace {

Result<void> listen_at_once(Session& session) {
  GDRX_TRY(ready(session));
  Handle handle;
  handle.guard.fill(kUntouched);
  Result<Comm> listener = fail(Errc::internal, "");
  const Duration took = timed([&] { listener = listen(session, handle); });
  GDRX_TRY(std::move(listener));
  GDRX_TRY(at_once("listen", took));
  return expect(untouched(handle.guard), "listen writes beyond the 128 bytes of the handle");
}

Result<void> connect_at_once(Session& session) {
  GDRX_TRY(ready(session));
  Handle handle;
  const Comm listener = GDRX_TRY(prepared(listen(session, handle)));
  const Deadline deadline = Deadline::after(steady_clock(), std::chrono::milliseconds(200));
  Comm comm;
  while (!comm && !deadline.passed(steady_clock().now())) {
    Result<Comm> attempt = fail(Errc::internal, "");
    const Duration took = timed([&] { attempt = try_connect(session, handle); });
    comm = GDRX_TRY(std::move(attempt));
    GDRX_TRY(at_once("connect, with nobody accepting,", took));
  }
  return {};
}

Result<void> accept_at_once(Session& session) {
  GDRX_TRY(ready(session));
  Handle handle;
  const Comm listener = GDRX_TRY(prepared(listen(session, handle)));
  for (int round = 0; round < 20; ++round) {
    Result<Comm> attempt = fail(Errc::internal, "");
    const Duration took = timed([&] { attempt = try_accept(session, listener); });
    const Comm comm = GDRX_TRY(std::move(attempt));
    GDRX_TRY(at_once("accept, with nobody connecting,", took));
    GDRX_TRY(expect(!comm, "accept yielded a communicator, and nobody connects"));
  }
  return {};
}

Result<void> self_loop(Session& session) {
  GDRX_TRY(ready(session));
  const auto link = Link::open(session);
  return link ? Result<void>{} : broken(link.error().what);
}

/// What the bootstrap hands to the other side is a copy; the listener's own bytes are gone by then.
Result<void> copied_handle(Session& session) {
  GDRX_TRY(ready(session));
  Handle original;
  const Comm listener = GDRX_TRY(prepared(listen(session, original)));
  Handle copy;
  copy.bytes = original.bytes;
  std::ranges::fill(original.bytes, std::byte{0});
  Comm send, recv;
  const Deadline deadline = Deadline::after(steady_clock(), g_patience);
  while (!send || !recv) {
    if (!send) send = GDRX_TRY(try_connect(session, copy));
    if (!recv) recv = GDRX_TRY(try_accept(session, listener));
    if (deadline.passed(steady_clock().now())) {
      return broken("with a copy of the handle they do not connect");
    }
  }
  return {};
}

/// `size` bytes that say `value` over a link, both ends polled by this thread.
Result<void> send_value(Session& session, const Comm& send, const Comm& recv, std::uint64_t value) {
  constexpr std::size_t kSize = 64;
  Region from = GDRX_TRY(prepared(Region::make(session, send.get(), kSize)));
  Region to = GDRX_TRY(prepared(Region::make(session, recv.get(), kSize)));
  fill(from.bytes(), value);
  Exchange exchange(session, send.get(), recv.get());
  exchange.receive(whole(to));
  exchange.send(whole(from));
  GDRX_TRY(exchange.finish());
  return holds(to, 0, kSize, value);
}

Result<void> early_close(Session& session) {
  GDRX_TRY(ready(session));
  Handle handle;
  Comm listener = GDRX_TRY(prepared(listen(session, handle)));
  Comm send, recv;
  const Deadline deadline = Deadline::after(steady_clock(), g_patience);
  while (!send || !recv) {
    if (!send) send = GDRX_TRY(try_connect(session, handle));
    if (listener) {
      recv = GDRX_TRY(try_accept(session, listener));
      if (recv) {
        GDRX_TRY(succeeds(listener.close(), "closeListen"));
      }
    }
    if (deadline.passed(steady_clock().now())) {
      return broken("with the listener closed after accept, connect comes to no end");
    }
  }
  return send_value(session, send, recv, 1);
}

/// Connections begun together reach the listener whose handle they have.
Result<void> many(Session& session) {
  constexpr std::size_t kLinks = 24;
  GDRX_TRY(ready(session));
  struct Pending {
    Handle handle;
    Comm listener, send, recv;
  };
  std::vector<Pending> pending(kLinks);
  for (Pending& each : pending) {
    each.listener = GDRX_TRY(prepared(listen(session, each.handle)));
  }
  const Deadline deadline = Deadline::after(steady_clock(), 2 * g_patience);
  const auto open = [](const Pending& each) { return each.send && each.recv; };
  while (!std::ranges::all_of(pending, open)) {
    for (Pending& each : pending) {
      if (!each.send) each.send = GDRX_TRY(try_connect(session, each.handle));
    }
    for (auto each = pending.rbegin(); each != pending.rend(); ++each) {
      if (!each->recv) each->recv = GDRX_TRY(try_accept(session, each->listener));
    }
    if (deadline.passed(steady_clock().now())) {
      return broken(fmt::format("of {} connections begun together {} are open", kLinks,
                                std::ranges::count_if(pending, open)));
    }
  }
  for (std::size_t i = 0; i < kLinks; ++i) {
    if (auto sent = send_value(session, pending[i].send, pending[i].recv, i); !sent) {
      return broken(fmt::format("connection {} of {}: {}", i, kLinks, sent.error().what));
    }
  }
  return {};
}

Result<void> no_device_handle(Session& session) {
  GDRX_TRY(ready(session));
  Handle handle;
  const Comm listener = GDRX_TRY(prepared(listen(session, handle)));
  Comm send, recv;
  const Deadline deadline = Deadline::after(steady_clock(), g_patience);
  while (!send || !recv) {
    void* comm = nullptr;
    if (!send) {
      GDRX_TRY(succeeds(session.net().connect(session.context(), session.device(),
                                              handle.bytes.data(), &comm, nullptr),
                        "connect with a null device handle"));
      send = Comm(session, Comm::Kind::send, comm);
    }
    if (!recv) {
      comm = nullptr;
      GDRX_TRY(succeeds(session.net().accept(listener.get(), &comm, nullptr),
                        "accept with a null device handle"));
      recv = Comm(session, Comm::Kind::recv, comm);
    }
    if (deadline.passed(steady_clock().now())) {
      return broken("with null device handles they do not connect");
    }
  }
  return {};
}

Result<void> abandoned(Session& session) {
  GDRX_TRY(ready(session));
  const Duration took = timed([&] {
    for (int round = 0; round < 3; ++round) {
      Handle handle;
      auto listener = listen(session, handle);
      if (listener) {
        const auto send = try_connect(session, handle);  // closed if it is there already
        listener->close();
      }
    }
  });
  GDRX_TRY(at_once("three times listen, connect once, close", took / 3));
  const auto link = Link::open(session);
  return link ? Result<void>{} : broken("after abandoned attempts: " + link.error().what);
}

constexpr Severity kMust = Severity::must;
constexpr const char* kInit = "load.init";
constexpr const char* kLoop = "connect.self-loop";
constexpr const char* kDeadlock = "polls both ends from one thread at times, and deadlocks";

constexpr Rule kRules[] = {
    {"connect.listen", kMust, "listen yields a communicator at once, the handle has 128 bytes",
     "allocates 128 bytes for it, and waits for nobody", kInit, listen_at_once},
    {"connect.connect-at-once", kMust, "connect does not wait for accept", kDeadlock, kInit,
     connect_at_once},
    {"connect.accept-at-once", kMust, "accept does not wait for connect", kDeadlock,
     "connect.connect-at-once", accept_at_once},
    {"connect.self-loop", kMust, "one thread that polls connect and accept in turn connects them",
     "does so to probe GPUDirect, to register buffers and to send to itself; it hangs",
     "connect.accept-at-once", self_loop},
    {"connect.copied-handle", kMust, "a copy of the handle is as good as the original",
     "sends the bytes through its bootstrap", kLoop, copied_handle},
    {"connect.close-listener", kMust, "closing the listener right after accept harms nothing",
     "does so each time", kLoop, early_close},
    {"connect.many", kMust, "connections begun together reach their own listeners, in any order",
     "opens those of all channels and peers at once; data goes to the wrong rank", kLoop, many},
    {"connect.null-device-handle", kMust, "connect and accept take a null device handle",
     "may pass one, for plugins without device code", kLoop, no_device_handle},
    {"connect.abandoned", kMust, "a connection given up half-way leaves the next one alone",
     "gives up when a communicator is aborted, and opens the next one in the same process", kLoop,
     abandoned},
};

}  // namespace

std::span<const Rule> connect_rules() { return kRules; }

}  // namespace gdrx::conformance

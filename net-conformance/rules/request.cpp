// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <vector>

#include "net-conformance/rules/common.hpp"

namespace gdrx::conformance {

namespace {

constexpr std::size_t kSize = 2048;

/// isend once; null for "try later".
Result<void*> send_once(Session& session, const Wired& wired, std::size_t offset) {
  void* request = nullptr;
  GDRX_TRY(succeeds(session.net().isend(wired.link.send.get(), wired.from.data() + offset, kSize, 0,
                                        wired.from.mhandle(), &request),
                    "isend"));
  return request;
}

Result<void> no_request(Session& session) {
  Wired wired = GDRX_TRY(Wired::open(session, 2 * kSize, kSize));
  fill(wired.from.bytes().first(kSize), 1);
  fill(wired.from.bytes().subspan(kSize), 2);
  if (GDRX_TRY(send_once(session, wired, 0)) != nullptr) {
    return skipped("isend yields a request before the receive is posted");
  }
  Exchange exchange(session, wired.link);
  exchange.receive(whole(wired.to));
  exchange.send(part(wired.from, kSize, kSize));
  GDRX_TRY(exchange.finish());
  return expect(!first_wrong(wired.to.bytes(), 2),
                "an isend that yielded no request sent its message all the same");
}

/// One receive that is posted and has no send.
Result<void*> pending_receive(Session& session, const Wired& wired) {
  void* data = wired.to.data();
  std::size_t size = wired.to.size();
  int tag = 0;
  void* mhandle = wired.to.mhandle();
  void* request = nullptr;
  const Deadline deadline = Deadline::after(steady_clock(), g_patience);
  while (request == nullptr && !deadline.passed(steady_clock().now())) {
    GDRX_TRY(succeeds(
        session.net().irecv(wired.link.recv.get(), 1, &data, &size, &tag, &mhandle, &request),
        "irecv"));
  }
  return request != nullptr ? Result<void*>(request) : broken("irecv yields no request");
}

Result<void> done_flag(Session& session) {
  const Wired wired = GDRX_TRY(Wired::open(session, kSize, kSize));
  void* request = GDRX_TRY(prepared(pending_receive(session, wired)));
  for (int round = 0; round < 20; ++round) {
    int done = 77;
    Sizes sizes{};
    GDRX_TRY(succeeds(session.net().test(request, &done, sizes.data()), "test"));
    if (done != 0) {
      return broken(fmt::format("test left {} in *done of a receive that has no send", done));
    }
  }
  return {};
}

Result<void> test_at_once(Session& session) {
  const Wired wired = GDRX_TRY(Wired::open(session, kSize, kSize));
  void* request = nullptr;
  const Duration posting = timed([&] {
    if (auto posted = pending_receive(session, wired)) {
      request = *posted;
    }
  });
  GDRX_TRY(at_once("irecv", posting));
  if (request == nullptr) {
    return blocked("irecv yields no request");
  }
  Result<void> result;
  const Duration took = timed([&] {
    int done = 0;
    Sizes sizes{};
    result = succeeds(session.net().test(request, &done, sizes.data()), "test");
  });
  GDRX_TRY(std::move(result));
  return at_once("test of a receive without a send", took);
}

Result<void> isend_at_once(Session& session) {
  const Wired wired = GDRX_TRY(Wired::open(session, kSize, kSize));
  const Duration took = timed([&] { static_cast<void>(send_once(session, wired, 0)); });
  return at_once("isend without a receive", took);
}

Result<void> written_sizes(Session& session) {
  Wired wired = GDRX_TRY(Wired::open(session, kSize, kSize));
  Exchange exchange(session, wired.link);
  const std::size_t indices[] = {exchange.receive(whole(wired.to)),
                                 exchange.send(whole(wired.from))};
  GDRX_TRY(exchange.finish());
  for (const std::size_t index : indices) {
    const Transfer& transfer = exchange[index];
    const bool clean = std::ranges::all_of(transfer.sizes.begin() + 1, transfer.sizes.end(),
                                           [](int size) { return size == kPoison; });
    if (!clean) {
      return broken(fmt::format("test of a {} wrote more than one size",
                                transfer.is_send ? "send" : "single receive"));
    }
  }
  return {};
}

Result<void> null_sizes(Session& session) {
  Wired wired = GDRX_TRY(Wired::open(session, kSize, kSize));
  void* requests[] = {GDRX_TRY(prepared(pending_receive(session, wired))), nullptr};
  const Deadline deadline = Deadline::after(steady_clock(), g_patience);
  bool done[] = {false, false};
  while (!done[0] || !done[1]) {
    if (requests[1] == nullptr) {
      requests[1] = GDRX_TRY(send_once(session, wired, 0));
    }
    for (int i = 0; i < 2; ++i) {
      int now = 0;
      if (requests[i] != nullptr && !done[i]) {
        GDRX_TRY(succeeds(session.net().test(requests[i], &now, nullptr), "test without sizes"));
      }
      done[i] = done[i] || now != 0;
    }
    GDRX_TRY(
        expect(!deadline.passed(steady_clock().now()), "tested without sizes, they never end"));
  }
  return {};
}

/// Receives in groups of `group`, then all their sends, as many as NCCL may have under way.
Result<void> flood(Session& session, int groups, int group, bool sends_first) {
  const auto per_group = static_cast<std::size_t>(group);
  const std::size_t count = static_cast<std::size_t>(groups) * per_group;
  Wired wired = GDRX_TRY(Wired::open(session, count * kSize, count * kSize));
  fill(wired.from.bytes(), 1);
  Exchange exchange(session, wired.link);
  const auto receives = [&] {
    for (std::size_t i = 0; i < count; i += per_group) {
      std::vector<Message> parts;
      for (std::size_t j = 0; j < per_group; ++j) {
        parts.push_back(part(wired.to, (i + j) * kSize, kSize, static_cast<int>(j)));
      }
      exchange.receive(std::move(parts));
    }
  };
  if (!sends_first) receives();
  for (std::size_t i = 0; i < count; ++i) {
    exchange.send(part(wired.from, i * kSize, kSize, static_cast<int>(i % per_group)));
  }
  for (int round = 0; round < 50; ++round) {
    GDRX_TRY(exchange.step());
  }
  if (sends_first) receives();
  GDRX_TRY(exchange.finish());
  return holds(wired.to, 0, count * kSize, 1);
}

Result<void> budget(Session& session) {
  GDRX_TRY(ready(session));
  const int group = std::clamp(session.max_recvs(), 1, 8);
  GDRX_TRY(flood(session, nccl::kMaxRequests, group, false));
  return flood(session, nccl::kMaxRequests, group, true);
}

Result<void> depth(Session& session) {
  constexpr std::size_t kDepth = nccl::kMaxRequests;
  Wired wired = GDRX_TRY(Wired::open(session, kSize, kSize * kDepth));
  Exchange exchange(session, wired.link);
  for (std::size_t i = 0; i < kDepth; ++i) {
    exchange.receive(part(wired.to, i * kSize, kSize));
  }
  const Deadline deadline = Deadline::after(steady_clock(), std::chrono::seconds(1));
  while (exchange.under_way(false) < kDepth && !deadline.passed(steady_clock().now())) {
    GDRX_TRY(exchange.step());
  }
  if (exchange.under_way(false) < kDepth) {
    return broken(fmt::format("only {} receives could be posted", exchange.under_way(false)));
  }
  return {};
}

/// NCCL tests the oldest request of a peer and no other until it is done.
Result<void> oldest_first(Session& session) {
  constexpr std::size_t kMessages = 16;
  Wired wired = GDRX_TRY(Wired::open(session, kSize * kMessages, kSize * kMessages));
  fill(wired.from.bytes(), 1);
  Exchange exchange(session, wired.link);
  exchange.test_oldest_only();
  for (std::size_t i = 0; i < kMessages; ++i) {
    exchange.receive(part(wired.to, i * kSize, kSize));
    exchange.send(part(wired.from, i * kSize, kSize));
  }
  GDRX_TRY(exchange.finish());
  return holds(wired.to, 0, kSize * kMessages, 1);
}

Result<void> optional_completion(Session& session) {
  GDRX_TRY(ready(session));
  if (session.net().version() < 9) {
    return skipped("the hint came with v9");
  }
  Wired wired = GDRX_TRY(Wired::open(session, kSize, kSize));
  for (std::uint64_t round = 0; round < 20; ++round) {
    fill(wired.from.bytes(), round);
    Exchange exchange(session, wired.link);
    exchange.receive_optional(whole(wired.to));
    exchange.send(whole(wired.from));
    GDRX_TRY(exchange.finish());
    const Deadline deadline = Deadline::after(steady_clock(), g_patience);
    while (first_wrong(wired.to.bytes(), round) && !deadline.passed(steady_clock().now())) {
    }  // the receive may be reported before its data
    GDRX_TRY(holds(wired.to, 0, kSize, round));
  }
  return {};
}

Result<void> consumed(Session& session) {
  GDRX_TRY(ready(session));
  if (!session.net().has(Optional::irecv_consumed)) {
    return skipped("no irecvConsumed");
  }
  Wired wired = GDRX_TRY(Wired::open(session, kSize, kSize));
  for (int round = 0; round < 3; ++round) {
    Exchange exchange(session, wired.link);
    const auto receive = exchange.receive(whole(wired.to));
    exchange.send(whole(wired.from));
    GDRX_TRY(exchange.finish());
    GDRX_TRY(
        succeeds(session.net().irecv_consumed(wired.link.recv.get(), 1, exchange[receive].request),
                 "irecvConsumed"));
  }
  return {};
}

constexpr Severity kMust = Severity::must;
constexpr const char* kOne = "transfer.one";

constexpr Rule kRules[] = {
    {"request.none", kMust, "an isend that yields no request sent nothing",
     "calls it again with the same message, which then arrives twice", kOne, no_request},
    {"request.done-flag", kMust, "test sets *done each time, to 0 while there is no end",
     "takes a leftover for an end, and hands memory on too early", kOne, done_flag},
    {"request.test-at-once", kMust, "irecv and test do not wait for the peer",
     "polls all of its peers from one thread: one that is late stops all, or deadlocks", kOne,
     test_at_once},
    {"request.isend-at-once", kMust, "isend does not wait for the receive",
     "polls all of its peers from one thread: one that is late stops all, or deadlocks", kOne,
     isend_at_once},
    {"request.one-size", kMust, "test writes one size for a send and for a single receive",
     "sums the array: what is too much decides on flushes", kOne, written_sizes},
    {"request.null-sizes", kMust, "test takes null sizes", "passes null for sends", kOne,
     null_sizes},
    {"request.budget", kMust, "32 groups of receives, and the sends to all of them, may be posted",
     "treats any error as fatal; no request means later", kOne, budget},
    {"request.depth", Severity::should, "32 receives can be posted before the first send",
     "has that many steps under way; fewer cost speed", kOne, depth},
    {"request.oldest-first", kMust, "requests end though only the oldest of each side is tested",
     "tests no other", kOne, oldest_first},
    {"request.optional", kMust, "irecv overwrites the optional-completion sentinel; data arrives",
     "calls test on 0x1 and crashes", kOne, optional_completion},
    {"request.consumed", kMust, "irecvConsumed, if there is one, takes a request that is done",
     "calls it for each receive", kOne, consumed},
};

}  // namespace

std::span<const Rule> request_rules() { return kRules; }

}  // namespace gdrx::conformance

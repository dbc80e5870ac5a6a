// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <thread>
#include <vector>

#include "net-conformance/rules/common.hpp"

namespace gdrx::conformance {

namespace {

constexpr std::size_t kThreads = 4;

/// Runs `part(i)` in as many threads; the first failure of them.
template <class Part>
Result<void> in_threads(Part part) {
  std::array<Result<void>, kThreads> results;
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < kThreads; ++i) {
      threads.emplace_back([&, i] { results[i] = part(i); });
    }
  }
  for (auto& result : results) {
    GDRX_TRY(std::move(result));
  }
  return {};
}

Result<void> traffic(Session& session, Wired& wired, std::size_t size, std::uint64_t rounds,
                     std::uint64_t seed) {
  for (std::uint64_t round = 0; round < rounds; ++round) {
    fill(wired.from.bytes().first(size), seed + round);
    Exchange exchange(session, wired.link);
    exchange.receive(part(wired.to, 0, size));
    exchange.send(part(wired.from, 0, size));
    GDRX_TRY(exchange.finish());
    GDRX_TRY(holds(wired.to, 0, size, seed + round));
  }
  return {};
}

Result<void> links(Session& session) {
  constexpr std::size_t kSize = 30'000;
  GDRX_TRY(ready(session));
  return in_threads([&](std::size_t i) -> Result<void> {
    Wired wired = GDRX_TRY(Wired::open(session, kSize, kSize));
    return traffic(session, wired, kSize >> i, 200, i << 20);
  });
}

Result<void> ends(Session& session) {
  constexpr std::size_t kSize = 30'000;
  constexpr std::uint64_t kRounds = 200;
  Wired wired = GDRX_TRY(Wired::open(session, kSize, kSize));
  Result<void> sent;
  std::jthread sender([&] {
    for (std::uint64_t round = 0; round < kRounds && sent; ++round) {
      fill(wired.from.bytes(), round);
      Exchange exchange(session, wired.link.send.get(), nullptr);
      exchange.send(whole(wired.from));
      sent = exchange.finish();
    }
  });
  Result<void> received;
  for (std::uint64_t round = 0; round < kRounds && received; ++round) {
    Exchange exchange(session, nullptr, wired.link.recv.get());
    exchange.receive(whole(wired.to));
    received = exchange.finish();
    if (received) {
      received = holds(wired.to, 0, kSize, round);
    }
  }
  sender.join();
  GDRX_TRY(std::move(received));
  return sent;
}

Result<void> connecting(Session& session) {
  GDRX_TRY(ready(session));
  return in_threads([&](std::size_t i) -> Result<void> {
    for (std::uint64_t round = 0; round < 5; ++round) {
      auto wired = Wired::open(session, 100, 100);
      if (!wired) {
        return broken("of several threads one failed: " + wired.error().what);
      }
      GDRX_TRY(traffic(session, *wired, 100, 1, i * 100 + round));
    }
    return {};
  });
}

constexpr Severity kMust = Severity::must;
constexpr const char* kOne = "transfer.one";

constexpr Rule kRules[] = {
    {"thread.links", kMust, "threads with communicators of their own do not disturb each other",
     "has a progress thread for each communicator", kOne, links},
    {"thread.ends", kMust, "the two ends of a link may be polled by two threads",
     "has them in different processes, or threads of one", kOne, ends},
    {"thread.connecting", kMust, "several threads may connect, register and close at once",
     "has a service thread for each communicator", kOne, connecting},
};

}  // namespace

std::span<const Rule> thread_rules() { return kRules; }

}  // namespace gdrx::conformance

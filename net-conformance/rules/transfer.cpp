// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <thread>
#include <vector>

#include "net-conformance/rules/common.hpp"

namespace gdrx::conformance {

namespace {

Result<void> one(Session& session) {
  constexpr std::size_t kSize = 1000;
  Wired wired = GDRX_TRY(Wired::open(session, kSize, kSize));
  return carries(session, wired);
}

Result<void> sizes(Session& session) {
  constexpr std::size_t kMost = (std::size_t{4} << 20) + 1;
  Wired wired = GDRX_TRY(Wired::open(session, kMost, kMost));
  std::vector<std::size_t> matrix;
  for (std::size_t size = 1; size <= kMost; size *= 4) {
    for (const std::size_t near : {size - 1, size, size + 1}) {
      if (near > 0) matrix.push_back(near);
    }
  }
  for (const std::size_t size : matrix) {
    fill(wired.from.bytes().first(size), size);
    Exchange exchange(session, wired.link);
    exchange.receive(part(wired.to, 0, size));
    exchange.send(part(wired.from, 0, size));
    GDRX_TRY(exchange.finish());
    GDRX_TRY(holds(wired.to, 0, size, size));
  }
  return expect(wired.to.guards_hold(), "bytes outside of the receive were written");
}

Result<void> zero(Session& session) {
  Wired wired = GDRX_TRY(Wired::open(session, 64, 64));
  constexpr int kRounds = 8;
  for (int round = 0; round < kRounds; ++round) {
    Exchange exchange(session, wired.link);
    const auto receive = exchange.receive(part(wired.to, 0, 64));
    exchange.send(part(wired.from, 0, 0));
    GDRX_TRY(exchange.finish());
    if (exchange[receive].size_of(0) != 0) {
      return broken(fmt::format("a receive of 0 bytes reports {}", exchange[receive].size_of(0)));
    }
  }
  return expect(untouched(wired.to.bytes()), "a message of 0 bytes wrote some");
}

Result<void> reported(Session& session) {
  constexpr std::size_t kMost = 300'000;
  Wired wired = GDRX_TRY(Wired::open(session, kMost, kMost));
  for (const std::size_t size : {1UL, 4096UL, 65'537UL, kMost}) {
    Exchange exchange(session, wired.link);
    const auto receive = exchange.receive(whole(wired.to));
    exchange.send(part(wired.from, 0, size));
    GDRX_TRY(exchange.finish());
    if (exchange[receive].size_of(0) != static_cast<int>(size)) {
      return broken(fmt::format("{} bytes were sent, the receive of {} reports {}", size, kMost,
                                exchange[receive].size_of(0)));
    }
  }
  return {};
}

Result<void> shorter(Session& session) {
  constexpr std::size_t kMost = 200'000;
  Wired wired = GDRX_TRY(Wired::open(session, kMost, kMost));
  for (const std::size_t size : {1UL, 100UL, 8193UL, 131'073UL}) {
    std::memset(wired.to.data(), static_cast<int>(kUntouched), kMost);
    fill(wired.from.bytes().first(size), size);
    Exchange exchange(session, wired.link);
    exchange.receive(whole(wired.to));
    exchange.send(part(wired.from, 0, size));
    GDRX_TRY(exchange.finish());
    GDRX_TRY(holds(wired.to, 0, size, size));
    GDRX_TRY(expect(untouched(wired.to.bytes().subspan(size)),
                    "bytes behind a message shorter than its receive were written"));
  }
  return {};
}

Result<void> longer(Session& session) {
  constexpr std::size_t kSent = 50'000, kPosted = 20'000;
  Wired wired = GDRX_TRY(Wired::open(session, kSent, kPosted));
  if (session.properties().reg_is_global == 0) {
    return skipped("regIsGlobal is 0: NCCL never sends more than is posted");
  }
  fill(wired.from.bytes(), 1);
  Exchange exchange(session, wired.link);
  const auto receive = exchange.receive(whole(wired.to));
  exchange.send(whole(wired.from));
  GDRX_TRY(exchange.finish());
  GDRX_TRY(expect(wired.to.guards_hold(), "bytes behind the receive were written"));
  GDRX_TRY(holds(wired.to, 0, kPosted, 1));
  if (exchange[receive].size_of(0) != static_cast<int>(kPosted)) {
    return broken(
        fmt::format("a receive of {} bytes reports {}", kPosted, exchange[receive].size_of(0)));
  }
  return {};
}

Result<void> order(Session& session) {
  constexpr std::size_t kSize = 256, kMessages = 400;
  Wired wired = GDRX_TRY(Wired::open(session, kSize * kMessages, kSize * kMessages));
  Exchange exchange(session, wired.link);
  for (std::size_t i = 0; i < kMessages; ++i) {
    // Sizes alternate between small and whole, so that a fast path may not overtake a slow one.
    fill(wired.from.bytes().subspan(i * kSize, kSize), i);
    exchange.receive(part(wired.to, i * kSize, kSize, 7));
    exchange.send(part(wired.from, i * kSize, i % 2 == 0 ? kSize : 16, 7));
  }
  GDRX_TRY(exchange.finish());
  for (std::size_t i = 0; i < kMessages; ++i) {
    if (!holds(wired.to, i * kSize, 16, i)) {
      return broken(fmt::format("receive {} of {} did not get message {}", i, kMessages, i));
    }
  }
  return {};
}

Result<void> mixed_order(Session& session) {
  constexpr std::size_t kSize = 400'000, kMessages = 24;
  Wired wired = GDRX_TRY(Wired::open(session, kSize * kMessages, kSize * kMessages));
  Exchange exchange(session, wired.link);
  const auto size_of = [](std::size_t i) { return i % 3 == 0 ? kSize : i % 3 == 1 ? 8 : 9000; };
  for (std::size_t i = 0; i < kMessages; ++i) {
    fill(wired.from.bytes().subspan(i * kSize, size_of(i)), i);
    exchange.receive(part(wired.to, i * kSize, kSize));
    exchange.send(part(wired.from, i * kSize, size_of(i)));
  }
  GDRX_TRY(exchange.finish());
  for (std::size_t i = 0; i < kMessages; ++i) {
    GDRX_TRY(holds(wired.to, i * kSize, size_of(i), i));
  }
  return {};
}

/// A send that is reported as done is the sender's to write again.
Result<void> reuse(Session& session) {
  constexpr std::size_t kSize = 150'000, kMessages = 16;
  Wired wired = GDRX_TRY(Wired::open(session, kSize, kSize * kMessages));
  Exchange receives(session, wired.link);
  for (std::size_t i = 0; i < kMessages; ++i) {
    receives.receive(part(wired.to, i * kSize, kSize));
  }
  GDRX_TRY(receives.step());
  for (std::size_t i = 0; i < kMessages; ++i) {
    fill(wired.from.bytes(), i);
    Exchange sends(session, wired.link);
    sends.send(whole(wired.from));
    const Deadline deadline = Deadline::after(steady_clock(), g_patience);
    GDRX_TRY(sends.step());
    while (!sends.done()) {
      GDRX_TRY(receives.step());
      GDRX_TRY(sends.step());  // last, so that nothing is called between its end and the memset
      GDRX_TRY(expect(!deadline.passed(steady_clock().now()), "a send did not complete in time"));
    }
    std::memset(wired.from.data(), 0xee, kSize);
  }
  GDRX_TRY(receives.finish());
  for (std::size_t i = 0; i < kMessages; ++i) {
    GDRX_TRY(holds(wired.to, i * kSize, kSize, i));
  }
  return {};
}

Result<void> late_receive(Session& session) {
  constexpr std::size_t kSize = 20'000;
  Wired wired = GDRX_TRY(Wired::open(session, kSize, kSize));
  fill(wired.from.bytes(), 1);
  Exchange exchange(session, wired.link);
  exchange.send(whole(wired.from));
  for (int round = 0; round < 50; ++round) {
    GDRX_TRY(exchange.step());
    std::this_thread::yield();
  }
  exchange.receive(whole(wired.to));
  GDRX_TRY(exchange.finish());
  return holds(wired.to, 0, kSize, 1);
}

/// The same buffer in several receives: NCCL's ring of slots does so for zero-byte steps.
Result<void> same_buffer(Session& session) {
  constexpr std::size_t kMessages = 6;
  Wired wired = GDRX_TRY(Wired::open(session, 64, 64));
  Exchange exchange(session, wired.link);
  for (std::size_t i = 0; i < kMessages; ++i) {
    exchange.receive(whole(wired.to));
  }
  for (std::size_t i = 0; i < kMessages; ++i) {
    exchange.send(whole(wired.from));
  }
  return exchange.finish();
}

Result<void> both_ways(Session& session) {
  constexpr std::size_t kSize = std::size_t{8} << 20;  // more than any socket holds
  Wired there = GDRX_TRY(Wired::open(session, kSize, kSize));
  Wired back = GDRX_TRY(Wired::open(session, kSize, kSize));
  for (std::uint64_t round = 0; round < 2; ++round) {
    fill(there.from.bytes(), 2 * round);
    fill(back.from.bytes(), 2 * round + 1);
    Exchange one(session, there.link);
    Exchange other(session, back.link);
    one.receive(whole(there.to));
    other.receive(whole(back.to));
    one.send(whole(there.from));
    other.send(whole(back.from));
    const Deadline deadline = Deadline::after(steady_clock(), g_patience);
    while (!one.done() || !other.done()) {
      GDRX_TRY(one.step());
      GDRX_TRY(other.step());
      GDRX_TRY(expect(!deadline.passed(steady_clock().now()), "no end in time"));
    }
    GDRX_TRY(holds(there.to, 0, kSize, 2 * round));
    GDRX_TRY(holds(back.to, 0, kSize, 2 * round + 1));
  }
  return {};
}

constexpr Severity kMust = Severity::must;
constexpr const char* kOne = "transfer.one";
constexpr const char* kWrong = "computes with wrong data";

constexpr Rule kRules[] = {
    {"transfer.one", kMust, "a message arrives", "hangs or computes with wrong data",
     "connect.close-listener", one},
    {"transfer.sizes", kMust, "messages of 1 byte to 4 MiB arrive as they were sent", kWrong, kOne,
     sizes},
    {"transfer.zero", kMust, "a message of 0 bytes completes at both ends and reports 0",
     "sends one for each empty step; it hangs", kOne, zero},
    {"transfer.reported", kMust, "a receive reports how much was sent",
     "takes it as the size of the step", kOne, reported},
    {"transfer.shorter", kMust, "what is shorter than its receive leaves the rest alone",
     "posts the largest step; the rest may be in use", kOne, shorter},
    {"transfer.longer", kMust, "with regIsGlobal, what is longer than its receive is cut there",
     "may send more than was posted with registered buffers; memory is overwritten", kOne, longer},
    {"transfer.order", kMust, "receives get messages in the order of posting", kWrong, kOne, order},
    {"transfer.mixed-order", kMust, "small messages do not overtake large ones", kWrong, kOne,
     mixed_order},
    {"transfer.reuse", kMust, "a send is done when its memory may be written again",
     "writes the next step there", kOne, reuse},
    {"transfer.late-receive", kMust, "a send may come before its receive",
     "calls isend again while it yields no request; an error is fatal", kOne, late_receive},
    {"transfer.same-buffer", kMust, "each receive is one, those of the same memory too",
     "posts the same slot more than once", kOne, same_buffer},
    {"transfer.both-ways", kMust, "messages go both ways at once", "rings do", kOne, both_ways},
};

}  // namespace

std::span<const Rule> transfer_rules() { return kRules; }

}  // namespace gdrx::conformance

// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "net-conformance/rules/common.hpp"

namespace gdrx::conformance {

namespace {

constexpr std::size_t kSize = 4096;

struct Flush {
  int calls = 0;
  Sizes written{};
};

/// Flushes `sizes` of one buffer after a message has come, to the end.
Result<Flush> flush_once(Session& session, Wired& wired, std::array<int, 2> sizes) {
  Net& net = session.net();
  std::array<void*, 2> data{wired.to.data(), wired.to.data() + kSize / 2};
  std::array<void*, 2> mhandles{wired.to.mhandle(), wired.to.mhandle()};
  const int n = std::min(session.max_recvs(), 2);
  void* request = nullptr;
  GDRX_TRY(succeeds(
      net.iflush(wired.link.recv.get(), n, data.data(), sizes.data(), mhandles.data(), &request),
      "iflush"));
  Flush flush;
  flush.written.fill(kPoison);
  int done = request == nullptr ? 1 : 0;
  const Deadline deadline = Deadline::after(steady_clock(), g_patience);
  while (done == 0 && !deadline.passed(steady_clock().now())) {
    GDRX_TRY(succeeds(net.test(request, &done, flush.written.data()), "test of a flush"));
    ++flush.calls;
  }
  if (done == 0) {
    return broken("a flush comes to no end");
  }
  return flush;
}

Result<Wired> with_message(Session& session) {
  Wired wired = GDRX_TRY(Wired::open(session, kSize, kSize));
  if ((session.properties().ptr_support & (nccl::kPtrCuda | nccl::kPtrDmaBuf)) == 0) {
    return skipped("no GPU memory: NCCL never flushes");
  }
  fill(wired.from.bytes(), 1);
  Exchange exchange(session, wired.link);
  exchange.receive(whole(wired.to));
  exchange.send(whole(wired.from));
  GDRX_TRY(prepared(exchange.finish()));
  return wired;
}

Result<void> ends(Session& session) {
  Wired wired = GDRX_TRY(with_message(session));
  for (int round = 0; round < 50; ++round) {
    GDRX_TRY(flush_once(session, wired, {kSize / 2, kSize / 2}));
  }
  return holds(wired.to, 0, kSize, 1);
}

Result<void> no_sizes(Session& session) {
  Wired wired = GDRX_TRY(with_message(session));
  const Flush flush = GDRX_TRY(flush_once(session, wired, {kSize / 2, kSize / 2}));
  return expect(std::ranges::all_of(flush.written, [](int size) { return size == kPoison; }),
                "test of a flush wrote sizes");
}

Result<void> some_empty(Session& session) {
  Wired wired = GDRX_TRY(with_message(session));
  GDRX_TRY(flush_once(session, wired, {0, kSize / 2}));
  GDRX_TRY(flush_once(session, wired, {kSize / 2, 0}));
  return {};
}

constexpr Severity kMust = Severity::must;
constexpr const char* kOne = "transfer.one";

constexpr Rule kRules[] = {
    {"flush.ends", kMust, "iflush yields nothing, or a request that ends",
     "waits for it before it gives the data to the GPU", kOne, ends},
    {"flush.no-sizes", kMust, "test of a flush writes no sizes", "passes an array of another use",
     "flush.ends", no_sizes},
    {"flush.some-empty", kMust, "iflush takes sizes of which some are 0",
     "flushes a group as it came", "flush.ends", some_empty},
};

}  // namespace

std::span<const Rule> flush_rules() { return kRules; }

}  // namespace gdrx::conformance

// SPDX-License-Identifier: Apache-2.0
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <thread>

#include "net-conformance/rules/common.hpp"

namespace gdrx::conformance {

namespace {

Result<void> unaligned(Session& session) {
  constexpr std::size_t kSize = 10007;
  for (const std::size_t skew : {1U, 63U, 4095U}) {
    auto opened = Wired::open(session, kSize, kSize, skew);
    if (!opened) {
      return broken(fmt::format("{} bytes off a page: {}", skew, opened.error().what));
    }
    const Wired& wired = *opened;
    fill(wired.from.bytes(), skew);
    Exchange exchange(session, wired.link);
    exchange.receive(whole(wired.to));
    exchange.send(whole(wired.from));
    GDRX_TRY(exchange.finish());
    GDRX_TRY(holds(wired.to, 0, kSize, skew));
    GDRX_TRY(expect(wired.to.guards_hold(), "bytes outside of the receive were written"));
  }
  return {};
}

Result<void> inside(Session& session) {
  constexpr std::size_t kWhole = 1 << 20, kSize = 3001, kAt = 700'001;
  Wired wired = GDRX_TRY(Wired::open(session, kWhole, kWhole));
  fill(wired.from.bytes().subspan(kAt, kSize), 1);
  Exchange exchange(session, wired.link);
  exchange.receive(part(wired.to, kAt / 2, kSize));
  exchange.send(part(wired.from, kAt, kSize));
  GDRX_TRY(exchange.finish());
  return holds(wired.to, kAt / 2, kSize, 1);
}

/// Two registrations of the same bytes, as NCCL's pool and a user's buffer have them.
Result<void> twice(Session& session) {
  constexpr std::size_t kSize = 8192;
  Wired wired = GDRX_TRY(Wired::open(session, kSize, kSize));
  void* second = nullptr;
  GDRX_TRY(succeeds(session.net().reg_mr(wired.link.recv.get(), wired.to.data(), kSize / 2,
                                         nccl::kPtrHost, &second),
                    "regMr of bytes that are registered already"));
  GDRX_TRY(succeeds(session.net().dereg_mr(wired.link.recv.get(), second), "deregMr"));
  return carries(session, wired);
}

/// 2.25 GiB of addresses over 64 MiB of memory, so that it costs no more.
class Vast {
 public:
  static constexpr std::size_t kPiece = std::size_t{64} << 20;
  static constexpr std::size_t kSize = 36 * kPiece;
  Vast() {
    const int memory = memfd_create("vast", 0);
    start_ = mmap(nullptr, kSize, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    good_ = memory >= 0 && start_ != MAP_FAILED && ftruncate(memory, kPiece) == 0;
    for (std::size_t at = 0; good_ && at < kSize; at += kPiece) {
      good_ = mmap(static_cast<char*>(start_) + at, kPiece, PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_FIXED, memory, 0) != MAP_FAILED;
    }
    close(memory);
  }
  Vast(const Vast&) = delete;
  Vast& operator=(const Vast&) = delete;
  ~Vast() { munmap(start_, kSize); }
  explicit operator bool() const noexcept { return good_; }
  std::byte* data() const noexcept { return static_cast<std::byte*>(start_); }

 private:
  void* start_ = nullptr;
  bool good_ = false;
};

Result<void> vast(Session& session) {
  constexpr std::size_t kSize = 100'000, kAt = (std::size_t{1} << 31) + 12'345;
  Wired wired = GDRX_TRY(Wired::open(session, kSize, kSize));
  const Vast memory;
  if (!memory) {
    return skipped("this machine does not map 2.25 GiB of addresses");
  }
  Net& net = session.net();
  void* mhandle = nullptr;
  void* const comm = wired.link.recv.get();
  GDRX_TRY(succeeds(net.reg_mr(comm, memory.data(), Vast::kSize, nccl::kPtrHost, &mhandle),
                    "regMr of 2.25 GiB"));
  fill(wired.from.bytes(), 1);
  Exchange exchange(session, wired.link);
  exchange.receive(Message{memory.data() + kAt, kSize, 0, mhandle});
  exchange.send(whole(wired.from));
  GDRX_TRY(exchange.finish());
  GDRX_TRY(expect(!first_wrong({memory.data() + kAt, kSize}, 1),
                  "what was received above 2 GiB is wrong"));
  return succeeds(net.dereg_mr(comm, mhandle), "deregMr");
}

Result<void> under_way(Session& session) {
  constexpr std::size_t kSize = 40'000;
  constexpr std::uint64_t kRounds = 200;
  constexpr int kRegistrations = 20;
  Wired wired = GDRX_TRY(Wired::open(session, kSize, kSize));
  std::atomic<bool> stop{false};
  std::atomic<int> registrations{0};
  std::atomic<bool> failed{false};
  std::jthread other([&] {
    while (!stop && !failed) {
      auto send = Region::make(session, wired.link.send.get(), 5000);
      auto recv = Region::make(session, wired.link.recv.get(), 70'000);
      failed = !send || !recv || send->deregister() != NetResult::success ||
               recv->deregister() != NetResult::success;
      ++registrations;
    }
  });
  Result<void> traffic;
  const Deadline deadline = Deadline::after(steady_clock(), g_patience);
  const auto enough = [&](std::uint64_t rounds) {  // the other thread has to get its turn
    return rounds >= kRounds &&
           (registrations >= kRegistrations || failed || deadline.passed(steady_clock().now()));
  };
  for (std::uint64_t round = 0; !enough(round) && traffic; ++round) {
    fill(wired.from.bytes(), round);
    Exchange exchange(session, wired.link);
    exchange.receive(whole(wired.to));
    exchange.send(whole(wired.from));
    traffic = exchange.finish();
    if (traffic) {
      traffic = holds(wired.to, 0, kSize, round);
    }
  }
  stop = true;
  other.join();
  GDRX_TRY(std::move(traffic));
  GDRX_TRY(expect(registrations > 0, "regMr did not return while messages went"));
  return expect(!failed, "regMr or deregMr failed while messages went");
}

Result<void> bad_dma_buf(Session& session) {
  Wired wired = GDRX_TRY(Wired::open(session, 4096, 4096));
  if ((session.properties().ptr_support & nccl::kPtrDmaBuf) == 0) {
    return skipped("no dma-buf");
  }
  const int memory = memfd_create("no-dma-buf", 0);
  void* mhandle = nullptr;
  const NetResult result = session.net().reg_mr_dma_buf(wired.link.recv.get(), wired.to.data(),
                                                        4096, nccl::kPtrCuda, 0, memory, &mhandle);
  close(memory);
  return expect(result != NetResult::success, "regMrDmaBuf took a file that is no dma-buf");
}

constexpr Severity kMust = Severity::must;
constexpr const char* kLoop = "transfer.one";

constexpr Rule kRules[] = {
    {"memory.unaligned", kMust, "memory of any address and length can be registered and used",
     "registers what its users allocate", kLoop, unaligned},
    {"memory.inside", kMust, "a message may lie anywhere in what is registered",
     "registers a pool once and cuts its slots from it", kLoop, inside},
    {"memory.twice", kMust, "bytes registered twice stay registered until both are given back",
     "registers buffers of users that lie in others", kLoop, twice},
    {"memory.vast", kMust, "more than 2 GiB can be registered at once, and used to the end",
     "registers a user's whole buffer; size_t since v8", kLoop, vast},
    {"memory.under-way", kMust, "another thread may register while messages go",
     "registers from its service thread while the progress thread sends", kLoop, under_way},
    {"memory.bad-dma-buf", kMust, "regMrDmaBuf refuses what it cannot use", "then tries regMr",
     kLoop, bad_dma_buf},
};

}  // namespace

std::span<const Rule> memory_rules() { return kRules; }

}  // namespace gdrx::conformance

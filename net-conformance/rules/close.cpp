// SPDX-License-Identifier: Apache-2.0
#include <dirent.h>
#include <time.h>
#include <unistd.h>

#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "net-conformance/rules/common.hpp"

namespace gdrx::conformance {

namespace {

constexpr std::size_t kSize = 4096;

/// Closes in time and with success; then the plugin still works.
Result<void> close_at_once(Comm& comm, const char* call, const char* when) {
  NetResult result = NetResult::success;
  const Duration took = timed([&] { result = comm.close(); });
  if (result != NetResult::success) {
    return broken(fmt::format("{} {} returned {}", call, when, to_string(result)));
  }
  if (took > g_at_once) {
    return broken(fmt::format("{} {} took {} ms", call, when, ms(took)));
  }
  return {};
}

Result<void> still_works(Session& session) {
  auto wired = Wired::open(session, kSize, kSize);
  if (!wired) {
    return broken("after it, " + wired.error().what);
  }
  fill(wired->from.bytes(), 9);
  Exchange exchange(session, wired->link);
  exchange.receive(whole(wired->to));
  exchange.send(whole(wired->from));
  GDRX_TRY(exchange.finish());
  return holds(wired->to, 0, kSize, 9);
}

Result<void> pending_receives(Session& session) {
  Wired wired = GDRX_TRY(Wired::open(session, kSize, 4 * kSize));
  Exchange exchange(session, wired.link);
  for (std::size_t i = 0; i < 4; ++i) {
    exchange.receive(part(wired.to, i * kSize, kSize));
  }
  GDRX_TRY(prepared(exchange.step()));
  wired.from.deregister();
  wired.to.deregister();
  GDRX_TRY(close_at_once(wired.link.recv, "closeRecv", "with receives under way"));
  GDRX_TRY(close_at_once(wired.link.send, "closeSend", "after the receiver"));
  return still_works(session);
}

Result<void> pending_sends(Session& session) {
  constexpr std::size_t kLarge = std::size_t{32} << 20;
  Wired wired = GDRX_TRY(Wired::open(session, kLarge, kLarge));
  Exchange exchange(session, wired.link);
  exchange.receive(whole(wired.to));
  exchange.send(whole(wired.from));
  for (int round = 0; round < 3; ++round) {
    GDRX_TRY(prepared(exchange.step()));
  }
  wired.from.deregister();
  wired.to.deregister();
  GDRX_TRY(close_at_once(wired.link.send, "closeSend", "with a send under way"));
  GDRX_TRY(close_at_once(wired.link.recv, "closeRecv", "with a receive half full"));
  return still_works(session);
}

Result<void> either_order(Session& session) {
  for (const bool send_first : {true, false}) {
    Wired wired = GDRX_TRY(Wired::open(session, kSize, kSize));
    Exchange exchange(session, wired.link);
    exchange.receive(whole(wired.to));
    exchange.send(whole(wired.from));
    GDRX_TRY(prepared(exchange.finish()));
    wired.from.deregister();
    wired.to.deregister();
    if (send_first) {
      GDRX_TRY(close_at_once(wired.link.send, "closeSend", "before the receiver"));
    }
    GDRX_TRY(close_at_once(wired.link.recv, "closeRecv", "of an idle communicator"));
    GDRX_TRY(close_at_once(wired.link.send, "closeSend", "of an idle communicator"));
  }
  return {};
}

/// A send that is done has left; the receiver gets it though the sender is gone.
Result<void> after_send(Session& session) {
  constexpr std::size_t kLarge = 300'000;
  for (const std::size_t size : {std::size_t{100}, kLarge}) {
    Wired wired = GDRX_TRY(Wired::open(session, size, size));
    fill(wired.from.bytes(), size);
    Exchange exchange(session, wired.link);
    const auto receive = exchange.receive(whole(wired.to));
    const auto send = exchange.send(whole(wired.from));
    const Deadline deadline = Deadline::after(steady_clock(), g_patience);
    while (!exchange[send].done) {
      GDRX_TRY(prepared(exchange.step()));
      if (deadline.passed(steady_clock().now())) {
        return blocked("a send did not complete");
      }
    }
    wired.from.deregister();
    GDRX_TRY(close_at_once(wired.link.send, "closeSend", "with its sends done"));
    if (!exchange[receive].done) {
      GDRX_TRY(exchange.finish());
    }
    GDRX_TRY(holds(wired.to, 0, size, size));
  }
  return {};
}

Result<void> others(Session& session) {
  Wired kept = GDRX_TRY(Wired::open(session, kSize, kSize));
  Wired gone = GDRX_TRY(Wired::open(session, kSize, kSize));
  Exchange waiting(session, kept.link);
  waiting.receive(whole(kept.to));
  GDRX_TRY(waiting.step());
  gone.from.deregister();
  gone.to.deregister();
  GDRX_TRY(close_at_once(gone.link.send, "closeSend", "beside another link"));
  GDRX_TRY(close_at_once(gone.link.recv, "closeRecv", "beside another link"));
  fill(kept.from.bytes(), 3);
  waiting.send(whole(kept.from));
  GDRX_TRY(waiting.finish());
  return holds(kept.to, 0, kSize, 3);
}

std::size_t open_files() {
  const std::unique_ptr<DIR, int (*)(DIR*)> files(opendir("/proc/self/fd"), &closedir);
  std::size_t count = 0;
  while (files && readdir(files.get()) != nullptr) {
    ++count;
  }
  return count;
}

std::size_t mappings() {
  std::ifstream maps("/proc/self/maps");
  std::size_t count = 0;
  for (std::string line; std::getline(maps, line);) {
    ++count;
  }
  return count;
}

/// What is left of connections of the past: asynchronous ends get a second.
Result<void> leaves_nothing(Session& session) {
  constexpr std::size_t kRounds = 24, kWarm = 8;
  std::size_t files = 0, maps = 0;
  for (std::size_t round = 0; round < kRounds; ++round) {
    if (round == kWarm) {
      files = open_files();
      maps = mappings();
    }
    GDRX_TRY(still_works(session));
  }
  const Deadline deadline = Deadline::after(steady_clock(), std::chrono::seconds(1));
  const timespec nap{0, 1'000'000};
  while (open_files() > files && !deadline.passed(steady_clock().now())) {
    nanosleep(&nap, nullptr);
  }
  constexpr std::size_t kLinks = kRounds - kWarm;
  if (open_files() > files + kLinks / 4) {
    return broken(
        fmt::format("{} links opened and closed left {} open files", kLinks, open_files() - files));
  }
  if (mappings() > maps + 2 * kLinks) {
    return broken(
        fmt::format("{} links opened and closed left {} mappings", kLinks, mappings() - maps));
  }
  return {};
}

/// After an error NCCL does not give registrations back before it closes.
Result<void> registered(Session& session) {
  GDRX_TRY(ready(session));
  std::vector<std::byte> memory(kSize);
  Link link = GDRX_TRY(Link::open(session));
  void* mhandle = nullptr;
  for (Comm* comm : {&link.recv, &link.send}) {
    GDRX_TRY(prepared(succeeds(
        session.net().reg_mr(comm->get(), memory.data(), memory.size(), nccl::kPtrHost, &mhandle),
        "regMr")));
  }
  GDRX_TRY(close_at_once(link.recv, "closeRecv", "with memory registered"));
  GDRX_TRY(close_at_once(link.send, "closeSend", "with memory registered"));
  return still_works(session);
}

constexpr Severity kMust = Severity::must;
constexpr const char* kOne = "transfer.one";
constexpr const char* kAbort = "does so when a communicator is aborted; the abort hangs or crashes";

constexpr Rule kRules[] = {
    {"close.receives-under-way", kMust, "closing with receives under way returns at once", kAbort,
     kOne, pending_receives},
    {"close.sends-under-way", kMust, "closing with sends under way returns at once", kAbort, kOne,
     pending_sends},
    {"close.either-order", kMust, "either end may be closed first, and neither waits",
     "closes each rank's ends when that rank is done", kOne, either_order},
    {"close.after-send", kMust, "what was sent arrives though its sender has closed",
     "closes the sender when its sends are done; the receiver loses data", kOne, after_send},
    {"close.others", kMust, "closing a link leaves the others alone",
     "has many on one device, of several communicators", kOne, others},
    {"close.registered", kMust, "closing with memory registered returns at once", kAbort, kOne,
     registered},
    {"close.leaves-nothing", kMust, "opening and closing links leaves no files or mappings",
     "opens communicators for as long as the job runs, until none can be opened", kOne,
     leaves_nothing},
};

}  // namespace

std::span<const Rule> close_rules() { return kRules; }

}  // namespace gdrx::conformance

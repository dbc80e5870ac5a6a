// SPDX-License-Identifier: Apache-2.0
#include <dirent.h>
#include <signal.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

#include "net-conformance/rules/common.hpp"

namespace gdrx::conformance {

namespace {

/// Handlers and masks of all signals, as the kernel has them.
std::array<void*, 65> dispositions() {
  std::array<void*, 65> handlers{};
  for (int number = 1; number < 65; ++number) {
    struct sigaction action {};
    if (sigaction(number, nullptr, &action) == 0) {
      handlers[static_cast<std::size_t>(number)] = reinterpret_cast<void*>(action.sa_sigaction);
    }
  }
  return handlers;
}

Result<void> signals(Session& session) {
  const auto before = dispositions();
  GDRX_TRY(ready(session));
  GDRX_TRY(Link::open(session));
  const auto after = dispositions();
  for (std::size_t number = 1; number < before.size(); ++number) {
    if (before[number] != after[number]) {
      return broken(fmt::format("the handler of signal {} ({}) is another one now", number,
                                strsignal(static_cast<int>(number))));
    }
  }
  return {};
}

int threads() {
  const std::unique_ptr<DIR, int (*)(DIR*)> tasks(opendir("/proc/self/task"), &closedir);
  int count = 0;
  while (tasks && readdir(tasks.get()) != nullptr) {
    ++count;
  }
  return count - 2;  // . and ..
}

Result<void> unload(Session& session) {
  const int before = threads();
  GDRX_TRY(ready(session));
  { const Link link = GDRX_TRY(Link::open(session)); }
  GDRX_TRY(session.unload());
  const Deadline deadline = Deadline::after(steady_clock(), std::chrono::seconds(2));
  const timespec nap{0, 1'000'000};
  while (threads() > before && !deadline.passed(steady_clock().now())) {
    nanosleep(&nap, nullptr);
  }
  if (threads() > before) {
    return broken(fmt::format("{} threads of the plugin run after dlclose", threads() - before));
  }
  return {};
}

Result<void> again(Session& session) {
  GDRX_TRY(ready(session));
  { const Link link = GDRX_TRY(Link::open(session)); }
  GDRX_TRY(session.unload());
  GDRX_TRY(session.init());
  const auto link = Link::open(session);
  if (!link) {
    return broken("loaded a second time: " + link.error().what);
  }
  return {};
}

Result<void> contexts(Session& session) {
  GDRX_TRY(ready(session));
  if (session.net().version() < 11) {
    return skipped("contexts came with v11");
  }
  void* second = nullptr;
  GDRX_TRY(succeeds(session.net().init(&second, 2, logger()), "the second init"));
  GDRX_TRY(succeeds(session.net().finalize(second), "finalize of the second context"));
  auto link = Link::open(session);
  if (!link) {
    return broken("with the second context finalized, the first one: " + link.error().what);
  }
  return {};
}

Result<void> quiet(Session& session) {
  const int memory = memfd_create("output", 0);
  const int out = dup(1), err = dup(2);
  if (memory < 0 || out < 0 || err < 0 || std::fflush(stdout) != 0) {
    return blocked("no memfd");
  }
  dup2(memory, 1);
  dup2(memory, 2);
  const auto result = ready(session);
  if (result) {
    static_cast<void>(Link::open(session));
  }
  std::fflush(stdout);
  dup2(out, 1);
  dup2(err, 2);
  GDRX_TRY(Result<void>(result));
  std::array<char, 80> text{};
  const ssize_t got = pread(memory, text.data(), text.size() - 1, 0);
  if (got > 0) {
    const std::string_view line(text.data(), std::strcspn(text.data(), "\n"));
    return broken(fmt::format("it wrote to the standard output or error: {}", line));
  }
  return {};
}

constexpr Severity kMust = Severity::must;
constexpr Severity kShould = Severity::should;

constexpr Rule kRules[] = {
    {"life.signals", kMust,
     "loading, init and connecting leave the process's signal handlers alone",
     "does not notice; Python loses its Ctrl-C, a JVM or a debugger its faults", "load.init",
     signals},
    {"life.contexts", kMust, "each communicator has its context; finalize of one leaves the others",
     "calls init for every communicator from v11 on; the survivors fail", "connect.self-loop",
     contexts},
    {"life.unload", kMust, "after the last finalize no thread runs the plugin's code",
     "calls dlclose when its last communicator goes; a thread left behind crashes the process",
     "connect.self-loop", unload},
    {"life.again", kMust, "it can be loaded and initialised once more after dlclose",
     "loads it again for the next communicator", "connect.self-loop", again},
    {"life.quiet", kShould, "it writes to NCCL's logger, not to the standard output or error",
     "does not notice; programs that read each other's output do", "load.init", quiet},
};

}  // namespace

std::span<const Rule> life_rules() { return kRules; }

}  // namespace gdrx::conformance

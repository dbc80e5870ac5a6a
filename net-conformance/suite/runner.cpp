// SPDX-License-Identifier: Apache-2.0
#include "net-conformance/suite/runner.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <map>
#include <new>
#include <string>
#include <utility>

#include "gdrx/clock.hpp"
#include "net-conformance/driver/notes.hpp"

namespace gdrx::conformance {

namespace {

/// What the process of a rule and the runner share.
struct Page {
  std::atomic<const char*> call;  // a literal: the two have the same text
  std::atomic<bool> judged;
  Verdict verdict;
  char seen[1024];
};

void judge(const Rule& rule, const RunOptions& options, Page& page) {
  Options plugin = options.plugin;
  plugin.rule = rule.id;
  Session session(plugin);
  const Result<void> result = rule.check(session);
  const std::string seen = result ? Text() : result.error().what;
  std::strncpy(page.seen, seen.c_str(), sizeof page.seen - 1);
  page.verdict = result ? Verdict::pass : verdict_of(result.error());
  page.judged.store(true, std::memory_order_release);
  note_call("finalize, after the check");
}

/// Waits for `child`; false if it had to be killed at the limit.
bool wait_for(pid_t child, std::chrono::seconds limit, int* status) {
  const Deadline deadline = Deadline::after(steady_clock(), limit);
  const timespec nap{0, 500'000};
  while (waitpid(child, status, WNOHANG) == 0) {
    if (deadline.passed(steady_clock().now())) {
      kill(-child, SIGKILL);
      waitpid(child, status, 0);
      return false;
    }
    nanosleep(&nap, nullptr);
  }
  kill(-child, SIGKILL);  // peers that it left behind
  return true;
}

Finding in_a_process(const Rule& rule, const RunOptions& options, Page& page) {
  new (&page) Page{};
  Finding finding{&rule, Verdict::fail, {}, {}};
  const pid_t child = fork();
  if (child < 0) {
    finding.verdict = Verdict::blocked;
    finding.seen = fmt::format("fork: {}", std::strerror(errno));
    return finding;
  }
  if (child == 0) {
    setpgid(0, 0);
    share_notes(&page.call);
    judge(rule, options, page);
    _exit(0);
  }
  setpgid(child, child);
  int status = 0;
  const bool in_time = wait_for(child, options.limit, &status);
  const char* call = page.call.load();
  if (!in_time) {
    finding.seen = fmt::format("hung: no end after {} s; the last call was {}",
                               options.limit.count(), call != nullptr ? call : "none");
  } else if (WIFSIGNALED(status)) {
    finding.seen = fmt::format("crashed: {}; the last call was {}", strsignal(WTERMSIG(status)),
                               call != nullptr ? call : "none");
  } else if (!page.judged.load(std::memory_order_acquire)) {
    finding.seen = fmt::format("the plugin ended the process with status {} in {}",
                               WEXITSTATUS(status), call != nullptr ? call : "none");
  } else {
    finding.verdict = page.verdict;
    finding.seen = page.seen;
  }
  return finding;
}

Finding here(const Rule& rule, const RunOptions& options, Page& page) {
  new (&page) Page{};
  judge(rule, options, page);
  return {&rule, page.verdict, page.seen, {}};
}

}  // namespace

std::vector<Finding> run(const std::vector<Rule>& rules, const RunOptions& options,
                         const std::function<void(const Finding&)>& report) {
  void* const memory =
      mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  std::vector<Finding> findings;
  if (memory == MAP_FAILED) {
    return findings;
  }
  Page& page = *static_cast<Page*>(memory);
  std::map<std::string, Verdict> verdicts;
  for (const Rule& rule : rules) {
    Finding finding{&rule, Verdict::blocked, {}, {}};
    const auto base = rule.needs != nullptr ? verdicts.find(rule.needs) : verdicts.end();
    if (base != verdicts.end() && base->second != Verdict::pass) {
      const bool moot = base->second == Verdict::skip;
      finding.verdict = moot ? Verdict::skip : Verdict::blocked;
      finding.seen = fmt::format("{} does not {}", rule.needs, moot ? "apply" : "hold");
    } else {
      const Instant start = steady_clock().now();
      finding = options.in_process ? here(rule, options, page) : in_a_process(rule, options, page);
      finding.took =
          std::chrono::duration_cast<std::chrono::microseconds>(steady_clock().now() - start);
    }
    verdicts[rule.id] = finding.verdict;
    report(finding);
    findings.push_back(std::move(finding));
  }
  munmap(memory, sizeof(Page));
  return findings;
}

}  // namespace gdrx::conformance

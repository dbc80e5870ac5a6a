// SPDX-License-Identifier: Apache-2.0
// tls_cost [NAMESPACE NAMESPACE --] TEST ROUNDS BYTES...: what encryption adds to a message's time.
//
// Two processes have four connections: gdrx's tcp fabric in clear text and with TLS, and bare
// sockets without and with OpenSSL's cipher, which do nothing else. They take turns every few
// milliseconds, so that what else the machine does meets all alike. TEST is write_lat (us) or
// write_bw (MiB/s), as net_perf has them. Of each size a line of JSON: medians of the rounds, and
// of the rounds' own ratios. "bound" is what "tls/plain" were if TLS added to plain's time of a
// message just what the cipher adds to that of bare sockets.
#include <fmt/format.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/tcp/tls_cost/connection.hpp"
#include "tests/tcp/tls_cost/link.hpp"

namespace gdrx::tls_cost {

void require(bool good, const char* what) {
  if (good) return;
  std::perror(what);
  std::_Exit(1);
}

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::size_t kArea = 32 << 20;  // as net_perf's
constexpr std::size_t kWindow = 128;     // messages under way, likewise
constexpr std::size_t kWord = 8;         // of bytes, by which the receiver tells
constexpr int kRoundTrips = 50;          // of a turn
constexpr std::size_t kTurn = 32 << 20;  // bytes
constexpr std::size_t kSmall = 4096;     // bytes
constexpr std::array kWays{"plain", "tls", "bare_plain", "bare_tls"};

struct Test {
  bool latency;
  int rank;
  std::size_t bytes;
};

// As net_perf waits.
class Idle {
 public:
  void operator()(std::size_t came) {
    spins_ = came > 0 ? 0 : spins_ + 1;
    if (spins_ > 256) sched_yield();
  }

 private:
  int spins_ = 0;
};

void await(Link& link, Idle& idle) {
  for (std::size_t came = 0; came == 0; idle(came)) came = link.poll();
}

void send(Link& link, std::size_t at) {
  while (!link.send(at)) (void)link.poll();
}

/// Seconds of one way.
double ping_pong(Link& link, const Test& test, int trips) {
  link.set_sizes(test.bytes, test.bytes);
  Idle idle;
  std::vector<double> times;
  for (int i = 0; i < trips; ++i) {
    const Clock::time_point before = Clock::now();
    if (test.rank == 0) send(link, 0);
    await(link, idle);
    if (test.rank == 1) send(link, 0);
    times.push_back(std::chrono::duration<double>(Clock::now() - before).count() / 2);
  }
  const auto middle = times.begin() + trips / 2;
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

/// Seconds until the receiver has told of all.
double stream(Link& link, const Test& test, std::size_t messages) {
  const std::size_t window = std::clamp<std::size_t>(kArea / test.bytes, 1, kWindow);
  const std::size_t share = std::max<std::size_t>(1, window / 4);
  Idle idle;
  const Clock::time_point before = Clock::now();
  if (test.rank == 1) {
    link.set_sizes(kWord, test.bytes);
    std::size_t told = 0;
    for (std::size_t came = 0; told < messages;) {
      const std::size_t more = link.poll();
      came += more;
      idle(more);
      for (; told + share <= came; told += share) send(link, 0);
    }
  } else {
    link.set_sizes(test.bytes, kWord);
    std::size_t there = 0;
    for (std::size_t sent = 0; there < messages;) {
      bool moved =
          sent < messages && sent - there < window && link.send(sent % window * test.bytes);
      sent += moved ? 1 : 0;
      const std::size_t more = link.poll() * share;
      there += more;
      idle(more + (moved ? 1 : 0));
    }
  }
  return std::chrono::duration<double>(Clock::now() - before).count();
}

std::size_t messages_of(std::size_t bytes) {
  const std::size_t window = std::clamp<std::size_t>(kArea / bytes, 1, kWindow);
  const std::size_t share = std::max<std::size_t>(1, window / 4);
  const std::size_t least = std::clamp<std::size_t>(kTurn / bytes, 1, 2000);
  return (least + share - 1) / share * share;
}

// The peer's turn ends only with what this end says last.
void let_go(Link& link) {
  while (link.busy()) require(link.poll() == 0, "a message after the last");
}

double turn(Link& link, const Test& test) {
  const std::size_t messages = messages_of(test.bytes);
  const double seconds =
      test.latency ? ping_pong(link, test, kRoundTrips) : stream(link, test, messages);
  let_go(link);
  if (test.latency) return seconds * 1e6;
  return static_cast<double>(messages * test.bytes) / seconds / (1 << 20);
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<long>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

using Found = std::array<std::vector<double>, kWays.size()>;  // of each way, a figure a round

void print(const Test& test, const Found& found) {
  const auto& [plain, tls, bare_plain, bare_tls] = found;
  std::vector<double> ratios;
  std::vector<double> bounds;
  const auto time = [&](double figure) { return test.latency ? figure : 1 / figure; };
  for (std::size_t i = 0; i < plain.size(); ++i) {
    ratios.push_back(tls[i] / plain[i]);
    const double added = (time(bare_tls[i]) - time(bare_plain[i])) / time(plain[i]);
    bounds.push_back(test.bytes <= kSmall ? time(1 + added) : bare_tls[i] / plain[i]);
  }
  std::string line = fmt::format(R"({{"test": "{}", "bytes": {}, "rounds": {})",
                                 test.latency ? "write_lat" : "write_bw", test.bytes, plain.size());
  for (std::size_t way = 0; way < kWays.size(); ++way) {
    line += fmt::format(R"(, "{}": {:.4f})", kWays[way], median(found[way]));
  }
  line +=
      fmt::format(R"(, "tls/plain": {:.4f}, "bound": {:.4f}}})", median(ratios), median(bounds));
  std::puts(line.c_str());
  std::fflush(stdout);
}

void run(int rank, int channel, bool latency, int rounds, const std::vector<std::size_t>& sizes) {
  std::array<std::unique_ptr<Link>, kWays.size()> links;
  for (std::size_t way = 0; way < links.size(); ++way) {
    const auto make = way < 2 ? fabric_link : bare_link;
    links[way] = make(rank, way % 2 == 0, kArea, channel);
  }
  for (const std::size_t bytes : sizes) {
    const Test test{latency, rank, bytes};
    Found found;
    for (auto& link : links) turn(*link, test);
    for (int round = 0; round < rounds; ++round) {
      for (std::size_t i = 0; i < links.size(); ++i) {
        // Nobody comes after the same one always.
        const std::size_t way = (i + static_cast<std::size_t>(round)) % links.size();
        found[way].push_back(turn(*links[way], test));
      }
    }
    if (rank == 0) print(test, found);
  }
}

// Neither waits for one that is gone.
void end_with_the_other(pid_t child) {
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    return;
  }
  std::signal(SIGCHLD, [](int) {
    int status = 0;
    if (waitpid(-1, &status, WNOHANG) > 0 && status != 0) std::_Exit(1);
  });
}

}  // namespace
}  // namespace gdrx::tls_cost

int main(int count, char** words) {
  using namespace gdrx::tls_cost;
  std::vector<std::string> all(words + 1, words + count);
  std::vector<std::string> spaces;
  const auto cut = std::find(all.begin(), all.end(), "--");
  if (cut != all.end()) {
    spaces.assign(all.begin(), cut);
    all.erase(all.begin(), cut + 1);
  }
  require(all.size() >= 3 && (spaces.empty() || spaces.size() == 2), "TEST ROUNDS BYTES...");
  std::vector<std::size_t> sizes;
  for (std::size_t i = 2; i < all.size(); ++i) sizes.push_back(std::stoul(all[i]));
  int channels[2];
  require(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, channels) == 0, "socketpair");
  const pid_t child = fork();
  require(child >= 0, "fork");
  end_with_the_other(child);
  const int rank = child == 0 ? 1 : 0;
  if (!spaces.empty()) enter_netns(spaces[static_cast<std::size_t>(rank)]);
  close(channels[1 - rank]);
  run(rank, channels[rank], all[0] == "write_lat", std::stoi(all[1]), sizes);
  if (rank == 0) waitpid(child, nullptr, 0);  // which has ended well, if it has been waited for
}

// SPDX-License-Identifier: Apache-2.0
#include "net-conformance/bench/bench_command.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>

#include "base/size_text.hpp"
#include "net-conformance/driver/peer.hpp"

namespace gdrx::conformance {

namespace {

constexpr std::chrono::minutes kArrival{2};

nlohmann::json to_json(const Point& point) {
  return {{"bytes", point.size},
          {"latency_us", point.latency_us},
          {"latency_p99_us", point.latency_p99},
          {"GB_per_s", point.gigabytes_s},
          {"messages_per_s", point.messages_s},
          {"send_cpu_us_per_message", point.send_cpu_us},
          {"recv_cpu_us_per_message", point.recv_cpu_us}};
}

/// The leader's side: prints, and collects for the file.
Result<void> lead(const BenchCommand& command, Session& session, Channel& channel) {
  nlohmann::json points = nlohmann::json::array();
  fmt::print("{:>10} {:>11} {:>11} {:>9} {:>12} {:>11} {:>11}\n", "bytes", "latency us", "p99 us",
             "GB/s", "messages/s", "send CPU us", "recv CPU us");
  GDRX_TRY(bench(session, channel, true, command.options, [&](const Point& p) {
    fmt::print("{:>10} {:>11.2f} {:>11.2f} {:>9.3f} {:>12.0f} {:>11.3f} {:>11.3f}\n", p.size,
               p.latency_us, p.latency_p99, p.gigabytes_s, p.messages_s, p.send_cpu_us,
               p.recv_cpu_us);
    std::fflush(stdout);
    points.push_back(to_json(p));
  }));
  if (!command.json.empty()) {
    std::ofstream file(command.json);
    file << nlohmann::json{{"plugin", command.plugin.plugin},
                           {"name", session.net().name()},
                           {"abi", session.net().version()},
                           {"window", command.options.window},
                           {"points", points}}
                .dump(2)
         << '\n';
    if (!file.flush()) {
      return fail(Errc::system, "cannot write " + command.json);
    }
  }
  return {};
}

Result<void> follow(const BenchCommand& command, Session& session, Channel& channel) {
  return bench(session, channel, false, command.options, {});
}

Result<void> run(const BenchCommand& command) {
  Session session(command.plugin);
  if (command.serve != 0) {
    Channel channel = GDRX_TRY(serve(command.serve, kArrival));
    return follow(command, session, channel);
  }
  if (!command.dial.empty()) {
    Channel channel = GDRX_TRY(dial(command.dial, kArrival));
    return lead(command, session, channel);
  }
  Peer peer = GDRX_TRY(Peer::start(
      session, [&](Session& own, Channel& channel) { return follow(command, own, channel); }));
  const Result<void> led = lead(command, session, peer.channel());
  if (!led) {
    auto followed = peer.result(std::chrono::milliseconds(100));
    if (!followed && followed.error().code != Errc::aborted) {
      return followed;  // the cause, if the other side knows it
    }
  }
  return led;
}

}  // namespace

int run_bench(const BenchCommand& command) {
  const Result<void> result = run(command);
  if (!result) {
    fmt::print(stderr, "net_conformance: {}\n", describe(result.error()));
    return 1;
  }
  return 0;
}

Result<std::vector<std::size_t>> parse_sizes(const std::string& text) {
  constexpr std::size_t kMost = std::size_t{1} << 30;
  std::vector<std::size_t> sizes;
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ',');) {
    const auto size = read_size(word);
    if (!size || *size == 0 || *size > kMost) {
      return fail(Errc::invalid_argument, "'" + word + "' is no size: 8, 64K, 4M, at most 1024M");
    }
    sizes.push_back(*size);
  }
  if (sizes.empty()) {
    return fail(Errc::invalid_argument, "no sizes");
  }
  return sizes;
}

}  // namespace gdrx::conformance

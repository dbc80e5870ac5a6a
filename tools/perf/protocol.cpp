// SPDX-License-Identifier: Apache-2.0
#include "tools/perf/protocol.hpp"
#include "base/printable.hpp"

#include <fmt/format.h>

#include <cmath>
#include <span>
#include <sstream>

namespace gdrx::perf {
namespace {

constexpr const char* kHello = "gdrx-perf-1";
constexpr std::size_t kMostSizes = 64;
constexpr std::size_t kMostBytes = std::size_t{1} << 30;

bool takes(const NicPerfOptions& plan) {
  bool good = !plan.sizes.empty() && plan.sizes.size() <= kMostSizes;
  for (const std::size_t bytes : plan.sizes) good &= bytes >= 1 && bytes <= kMostBytes;
  return good && plan.iterations >= 0 && plan.duration >= 0 && plan.duration <= 3600 &&
         plan.depth >= 1 && plan.depth <= 8192 && plan.qps >= 1 && plan.qps <= 64 &&
         plan.deadline > 0 && plan.deadline <= 3600;
}

std::string printed(const std::string& text) { return printable(text); }

}  // namespace

std::string plan_words(const NicPerfOptions& options) {
  std::string text = fmt::format(
      "{} {} {} {} {} {} {} {} {} {} {}", kHello, to_string(options.test), options.iterations,
      options.duration, options.depth, options.qps, int{options.both_ways}, options.timeout,
      options.service_level, options.traffic_class, options.deadline);
  for (const std::size_t bytes : options.sizes) text += fmt::format(" {}", bytes);
  return text;
}

Result<NicPerfOptions> read_plan(const std::string& text, NicPerfOptions own) {
  std::istringstream words(text);
  std::string hello;
  std::string test;
  int both_ways = 0;
  int timeout = 0;
  int service_level = 0;
  int traffic_class = 0;
  words >> hello >> test >> own.iterations >> own.duration >> own.depth >> own.qps >> both_ways >>
      timeout >> service_level >> traffic_class >> own.deadline;
  own.sizes.clear();
  const auto kind = parse_test(test);
  const bool whole = hello == kHello && kind && words && timeout >= 1 && timeout <= 31 &&
                     service_level >= 0 && service_level <= 15 && traffic_class >= 0 &&
                     traffic_class <= 255;
  for (std::size_t bytes = 0; words >> bytes && own.sizes.size() <= kMostSizes;) {
    own.sizes.push_back(bytes);
  }
  if (whole) own.test = *kind;
  own.both_ways = both_ways != 0;
  own.timeout = static_cast<std::uint8_t>(timeout);
  own.service_level = static_cast<std::uint8_t>(service_level);
  own.traffic_class = static_cast<std::uint8_t>(traffic_class);
  if (!whole || !words.eof() || !takes(own)) {
    return fail(Errc::protocol, "what connected is no gdrx perf of this version");
  }
  return own;
}

std::string far_words(const Far& far) {
  std::string text =
      fmt::format("{} {} {} {}", port_words(far.port), far.address, far.rkey, int{far.host_memory});
  for (const std::uint32_t number : far.qps) text += fmt::format(" {}", number);
  text += "\n" + far.memory + "\n";
  return far.limit ? text + fmt::format("{} {}", far.limit->gigabits, far.limit->why) : text;
}

Result<Far> read_far(const std::string& text, std::size_t qps) {
  std::istringstream lines(text);
  std::string line;
  std::getline(lines, line);
  std::istringstream words(line);
  Far far;
  far.port = GDRX_TRY(read_port(words));
  int host_memory = 0;
  words >> far.address >> far.rkey >> host_memory;
  far.host_memory = host_memory != 0;
  for (std::uint32_t number = 0; far.qps.size() < qps && words >> number;) {
    far.qps.push_back(number & 0xffffffu);
  }
  if (!words || far.qps.size() != qps) {
    return fail(Errc::protocol, "the other host describes its queue pairs in another way");
  }
  std::getline(lines, far.memory);
  far.memory = printed(far.memory);
  Expectation limit;
  if (lines >> limit.gigabits && std::isfinite(limit.gigabits) && limit.gigabits > 0) {
    std::getline(lines >> std::ws, limit.why);
    limit.why = printed(limit.why);
    limit.why.erase(0, limit.why.find_first_not_of(' '));
    far.limit = limit;
  }
  return far;
}

std::string row_words(const NicPerfRow& row) {
  return fmt::format("{} {} {}", row.iterations, row.gigabits, row.messages);
}

Result<NicPerfRow> read_row(const std::string& text) {
  std::istringstream words(text);
  NicPerfRow row;
  words >> row.iterations >> row.gigabits >> row.messages;
  if (!words || !std::isfinite(row.gigabits) || !std::isfinite(row.messages)) {
    return fail(Errc::protocol, "the other host counts in another way");
  }
  return row;
}

}  // namespace gdrx::perf

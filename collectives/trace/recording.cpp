// SPDX-License-Identifier: Apache-2.0
#include "collectives/trace/recording.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <fstream>
#include <map>
#include <set>

namespace gdrx::trace {
namespace {

constexpr std::uint32_t kRowsOfCommunicator = 256;

std::string microseconds(Duration value) {
  return fmt::format("{}.{:03}", value.count() / 1000, value.count() % 1000);
}

std::uint32_t thread_of(const Event& event) {
  return event.communicator * kRowsOfCommunicator + static_cast<std::uint32_t>(event.row);
}

std::string row_name(std::uint32_t thread) {
  const std::string communicator = fmt::format("communicator {}", thread / kRowsOfCommunicator);
  const std::uint32_t row = thread % kRowsOfCommunicator;
  switch (static_cast<Row>(row)) {
    case Row::calls:
      return communicator;
    case Row::plans:
      return communicator + " plans";
    case Row::shared_memory:
      return communicator + " shared memory";
    case Row::gpus:
      return communicator + " GPUs";
    case Row::lane:
      break;
  }
  return fmt::format("{} lane {}", communicator, row - static_cast<std::uint32_t>(Row::lane));
}

std::string arguments(const Event& event, bool open) {
  std::string text = fmt::format("\"bytes\":{}", event.bytes);
  if (event.peer != kNobody) text += fmt::format(",\"peer\":{}", event.peer);
  if (event.index != kNoIndex) text += fmt::format(",\"index\":{}", event.index);
  if (!event.algorithm.empty()) text += fmt::format(",\"algorithm\":\"{}\"", event.algorithm);
  if (open) text += ",\"open\":true";
  return text;
}

}  // namespace

std::string file_name(const std::string& pattern, Rank rank) {
  std::string name;
  bool told_apart = false;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const std::string_view two = std::string_view(pattern).substr(i, 2);
    if (two != "%r" && two != "%p") {
      name += pattern[i];
      continue;
    }
    name += std::to_string(two == "%r" ? index(rank) : getpid());
    told_apart = true;
    ++i;
  }
  return told_apart ? name : fmt::format("{}.{}", name, index(rank));
}

std::string to_json(const Ring::Reading& reading, Rank rank, Instant now, std::uint64_t untimed) {
  std::string text = fmt::format(
      "{{\"displayTimeUnit\":\"ns\",\"otherData\":{{\"events\":{},\"dropped\":{},"
      "\"gpuCallsUntimed\":{}}},\"traceEvents\":[\n{{\"name\":\"process_name\",\"ph\":\"M\","
      "\"pid\":{},\"args\":"
      "{{\"name\":\"rank {}\"}}}}",
      reading.events.size(), reading.dropped, untimed, index(rank), index(rank));
  std::set<std::uint32_t> threads;
  for (const Event& event : reading.events) threads.insert(thread_of(event));
  for (const std::uint32_t thread : threads) {
    text += fmt::format(
        ",\n{{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":{},\"tid\":{},\"args\":"
        "{{\"name\":\"{}\"}}}}",
        index(rank), thread, row_name(thread));
  }
  for (const Event& event : reading.events) {
    std::array<char, kTitle> title_text{};
    const bool open = event.length == kOpen;
    text += fmt::format(
        ",\n{{\"name\":\"{}\",\"cat\":\"{}\",\"ph\":\"X\",\"ts\":{},\"dur\":{},"
        "\"pid\":{},\"tid\":{},\"args\":{{{}}}}}",
        title(event, title_text), to_string(event.kind),
        microseconds(event.begin.time_since_epoch()),
        microseconds(open ? std::max(Duration(0), now - event.begin) : event.length), index(rank),
        thread_of(event), arguments(event, open));
  }
  text += "\n]}\n";
  return text;
}

std::shared_ptr<Recording> Recording::open(const std::string& pattern, Rank rank) {
  static std::mutex mutex;
  static std::map<std::string, std::shared_ptr<Recording>> all;
  const std::string name = file_name(pattern, rank);
  const std::lock_guard lock(mutex);
  std::shared_ptr<Recording>& recording = all[name];
  if (!recording) recording.reset(new Recording(name, rank));
  return recording;
}

Result<Recording::Written> Recording::write() {
  const std::lock_guard lock(writing_);
  const Ring::Reading reading = ring_.read();
  const std::string unfinished = fmt::format("{}.{}.part", name_, getpid());
  std::ofstream file(unfinished, std::ios::binary | std::ios::trunc);
  file << to_json(reading, rank_, steady_clock().now(), untimed_.load(std::memory_order_relaxed));
  file.close();
  if (!file || std::rename(unfinished.c_str(), name_.c_str()) != 0) {
    const int error = errno;
    std::remove(unfinished.c_str());
    return fail(Errc::system, "GDRX_TRACE: writing " + name_, error);
  }
  return Written{reading.events.size(), reading.dropped};
}

}  // namespace gdrx::trace

// SPDX-License-Identifier: Apache-2.0
#include "gdrx/log.hpp"

#include <unistd.h>

#include <array>
#include <string>

#include "base/printable.hpp"

namespace gdrx {

std::string_view to_string(Level level) noexcept {
  switch (level) {
    case Level::error:
      return "ERROR";
    case Level::warn:
      return "WARN";
    case Level::info:
      return "INFO";
    case Level::debug:
      return "DEBUG";
  }
  return "?";
}

LogSink stderr_sink() {
  return [](Level level, std::string_view text) {
    std::array<char, 128> host{};
    if (gethostname(host.data(), host.size() - 1) != 0) host[0] = '?';
    // One write, so that lines of ranks that share a terminal do not mix.
    const std::string line = fmt::format("[{}:{}] gdrx {} {}\n", host.data(), getpid(),
                                         to_string(level), printable(text));
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
  };
}

Log::Log() : Log(Level::warn, stderr_sink()) {}

}  // namespace gdrx

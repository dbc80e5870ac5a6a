// SPDX-License-Identifier: Apache-2.0
// Levels and a sink, no backend. The function that decides what an error is logs it, once.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>

namespace gdrx {

enum class Level : std::uint8_t { error, warn, info, debug };

/// Receives whole lines without a newline. May be called from any thread, never from the data path.
using LogSink = std::function<void(Level, std::string_view)>;

/// Cheap to copy; a default-made one writes warnings and errors to stderr.
class Log {
 public:
  Log();
  Log(Level threshold, LogSink sink) : threshold_(threshold), sink_(std::move(sink)) {}

  bool enabled(Level level) const noexcept { return level <= threshold_; }

  template <class... Args>
  void error(fmt::format_string<Args...> text, Args&&... args) const {
    write(Level::error, text, std::forward<Args>(args)...);
  }
  template <class... Args>
  void warn(fmt::format_string<Args...> text, Args&&... args) const {
    write(Level::warn, text, std::forward<Args>(args)...);
  }
  template <class... Args>
  void info(fmt::format_string<Args...> text, Args&&... args) const {
    write(Level::info, text, std::forward<Args>(args)...);
  }
  template <class... Args>
  void debug(fmt::format_string<Args...> text, Args&&... args) const {
    write(Level::debug, text, std::forward<Args>(args)...);
  }

 private:
  template <class... Args>
  void write(Level level, fmt::format_string<Args...> text, Args&&... args) const {
    if (enabled(level) && sink_) sink_(level, fmt::format(text, std::forward<Args>(args)...));
  }
  Level threshold_;
  LogSink sink_;
};

/// "[host:pid] gdrx WARN text" to stderr in one write.
LogSink stderr_sink();

std::string_view to_string(Level level) noexcept;

}  // namespace gdrx

// SPDX-License-Identifier: Apache-2.0
#include "plugin/core/log.hpp"
#include "base/printable.hpp"

#include <atomic>
#include <string>
#include <string_view>

namespace gdrx::net {
namespace {

std::atomic<nccl::LogFunction> function_of_nccl{nullptr};

void write(Level level, std::string_view text) {
  const nccl::LogFunction function = function_of_nccl.load(std::memory_order_acquire);
  if (function == nullptr) {
    if (level <= Level::warn) stderr_sink()(level, text);
    return;
  }
  const auto as = level <= Level::warn ? nccl::LogLevel::warn : nccl::LogLevel::info;
  const std::string safe = printable(text);
  function(as, nccl::kLogInit | nccl::kLogNet, __FILE__, __LINE__, "NET/gdrx : %.*s",
           static_cast<int>(safe.size()), safe.data());
}

}  // namespace

void set_nccl_log(nccl::LogFunction function) noexcept {
  if (function != nullptr) function_of_nccl.store(function, std::memory_order_release);
}

Log nccl_log() { return Log(Level::info, write); }

}  // namespace gdrx::net

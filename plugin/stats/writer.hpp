// SPDX-License-Identifier: Apache-2.0
// This process's page, or memory of its own where there can be no page: who counts need not ask.
#pragma once

#include <memory>
#include <string_view>

#include "gdrx/log.hpp"
#include "plugin/stats/page.hpp"

namespace gdrx::stats {

/// Makes the page, once a process (and once more in a forked child). Never fails: says so in the
/// log and counts for nobody.
void start(int abi, const Log& log);
/// Takes the page away; the process ends or the plugin is unloaded.
void stop() noexcept;

Page& page() noexcept;

/// A slot for a connection; a spare one, shared, when all are taken.
Connection& take(Way way, std::uint32_t index, std::string_view peer, std::string_view device,
                 std::string_view path);
void give_back(Connection& connection) noexcept;

/// Which bucket so many nanoseconds belong to.
constexpr std::size_t bucket_of(std::uint64_t nanoseconds) noexcept {
  std::size_t bucket = 0;
  for (std::uint64_t us = nanoseconds / 1000; us > 0 && bucket + 1 < kBuckets; us >>= 1) ++bucket;
  return bucket;
}

}  // namespace gdrx::stats

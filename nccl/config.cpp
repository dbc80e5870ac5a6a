// SPDX-License-Identifier: Apache-2.0
#include "nccl/config.hpp"

#include <algorithm>
#include <cstring>

namespace gdrx::nccl {
namespace {

constexpr int kMostBlocks = 1024;  // of gdrxConfig_t

/// What an older header does not have is left undefined.
Config whole(const Config& given) noexcept {
  Config config{};
  config.blocking = config.cga_cluster_size = config.min_ctas = config.max_ctas = kUndefined;
  config.split_share = config.shrink_share = kUndefined;
  std::memcpy(&config, &given, std::min(given.size, sizeof config));
  return config;
}

bool is_flag(int value) noexcept { return value == kUndefined || value == 0 || value == 1; }

}  // namespace

const char* read_config(const Config* given, Chosen& chosen) noexcept {
  if (given == nullptr) return nullptr;
  constexpr std::size_t kFirst = offsetof(Config, blocking) + sizeof given->blocking;
  if (given->size < kFirst || given->magic != kConfigMagic) {
    return "config was not initialised with NCCL_CONFIG_INITIALIZER";
  }
  const Config config = whole(*given);
  if (!is_flag(config.blocking)) return "config: blocking is neither 0 nor 1";
  if (!is_flag(config.split_share)) return "config: splitShare is neither 0 nor 1";
  if (!is_flag(config.shrink_share)) return "config: shrinkShare is neither 0 nor 1";
  if (config.min_ctas != kUndefined && config.min_ctas <= 0) {
    return "config: minCTAs is not positive";
  }
  if (config.max_ctas != kUndefined && config.max_ctas <= 0) {
    return "config: maxCTAs is not positive";
  }
  if (config.max_ctas != kUndefined && config.min_ctas > config.max_ctas) {
    return "config: minCTAs is more than maxCTAs";
  }
  if (config.blocking != kUndefined) chosen.blocking = config.blocking == 1;
  if (config.max_ctas != kUndefined) chosen.blocks = std::min(config.max_ctas, kMostBlocks);
  return nullptr;
}

}  // namespace gdrx::nccl

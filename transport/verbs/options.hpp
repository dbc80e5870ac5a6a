// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "gdrx/config.hpp"
#include "transport/verbs/gid.hpp"
#include "transport/verbs/gid_indexes.hpp"
#include "transport/verbs/hca_filter.hpp"

namespace gdrx::verbs {

/// The fabric's share of the Config, checked.
struct Options {
  HcaFilter filter;
  GidIndexes gid_indexes;
  GidWish gid;
  std::uint8_t traffic_class = 0;
  std::uint8_t service_level = 0;
  std::uint8_t timeout = 16;
  std::uint8_t soft_timeout = 18;  // at least, of a NIC that processors emulate: they may be busy
  std::chrono::microseconds soft_nap{50};  // of a poll that finds nothing; 0: none
  std::uint8_t retries = 7;
  std::uint16_t pkey_index = 0;
  std::uint8_t qps = 1;  // a rail
  std::chrono::milliseconds heartbeat{1000};
  std::chrono::milliseconds peer_timeout{10'000};
  Bytes staging = Bytes{32} << 20;

  GpuDirect gpu_direct = GpuDirect::automatic;
  bool gpu_flush = false;
  bool dma_buf = true;
  int adaptive_routing = -1;  // -1: on InfiniBand
  Bytes adaptive_threshold = 8192;
  bool relaxed_ordering = true;  // where libibverbs knows it
  bool ece = true;

  bool own_thread = true;  // for calls that may take long
  std::string thread_cpus = "auto";

  static Result<Options> from(const Config& config);
};

}  // namespace gdrx::verbs

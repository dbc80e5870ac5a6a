// SPDX-License-Identifier: Apache-2.0
#include "transport/verbs/options.hpp"

#include <string>

namespace gdrx::verbs {

Result<Options> Options::from(const Config& config) {
  Options options;
  options.filter = GDRX_TRY(HcaFilter::parse(config.hca.empty() ? config.ib.hca : config.hca));
  // Of two that fit alike the first holds, so NCCL's is for the NICs that ours does not name.
  const std::string nccls = config.ib.gid_index < 0 ? "" : std::to_string(config.ib.gid_index);
  options.gid_indexes = GDRX_TRY(GidIndexes::parse(config.gid_index + "," + nccls));
  options.traffic_class = static_cast<std::uint8_t>(config.ib.traffic_class);
  options.service_level = static_cast<std::uint8_t>(config.ib.service_level);
  options.timeout = static_cast<std::uint8_t>(config.ib.timeout);
  options.retries = static_cast<std::uint8_t>(config.ib.retries);
  options.pkey_index = static_cast<std::uint16_t>(config.ib.pkey_index);
  options.qps = static_cast<std::uint8_t>(config.ib.qps);
  options.heartbeat = config.heartbeat;
  options.peer_timeout = config.peer_timeout;
  options.staging = config.verbs_staging;
  options.gpu_direct = config.gpu_direct;
  options.gid = {config.ib.ipv6, static_cast<std::uint32_t>(config.ib.roce_version),
                 config.ib.range.prefix, config.ib.range.bits};
  options.adaptive_routing = config.ib.adaptive_routing;
  options.adaptive_threshold = static_cast<Bytes>(config.ib.adaptive_threshold);
  options.relaxed_ordering = config.ib.relaxed_ordering != 0;
  options.ece = config.ib.ece;
  options.dma_buf = config.ib.dma_buf;
  options.gpu_flush = config.gpu_flush;
  options.thread_cpus = config.thread_cpus;
  return options;
}

}  // namespace gdrx::verbs

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "gdrx/config.hpp"
#include "gdrx/log.hpp"
#include "plugin/core/devices.hpp"

namespace gdrx::net {

/// Finds out how an RDMA device reaches memory of the calling thread's GPU, by registering some of
/// it, and fills in what NCCL is told of it. Where nothing reaches it directly, or this process has
/// no GPU, the device takes host memory: NCCL stages better than a copy behind its back would.
void find_gpu_reach(const std::string& fabric, const Config& config, const Log& log,
                    NetDevice& device);

}  // namespace gdrx::net

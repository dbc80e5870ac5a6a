// SPDX-License-Identifier: Apache-2.0
// Ranks of this host by one fabric, those of other hosts by another, as one device.
#pragma once

#include <memory>
#include <string>

#include "gdrx/transport.hpp"

namespace gdrx {

/// UCX for this host's ranks and for those that it reaches by RDMA, gdrx's own TCP for all others;
/// TCP alone where there is no UCX. `host` tells hosts apart: equal for ranks of one.
Result<std::shared_ptr<Fabric>> open_split_fabric(std::string host, const Config& config,
                                                  const Log& log);

/// `near` for peers of the same `host`, and for others if `near_has_rdma` and it finds such a way;
/// `far` for the rest.
struct SplitParts {
  std::shared_ptr<Device> near;
  std::shared_ptr<Device> far;
  std::string host;
  bool near_has_rdma = false;
};
std::shared_ptr<Device> make_split_device(SplitParts parts);

}  // namespace gdrx

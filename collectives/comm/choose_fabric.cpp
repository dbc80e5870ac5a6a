// SPDX-License-Identifier: Apache-2.0
#include "collectives/comm/choose_fabric.hpp"

#include <algorithm>

#include "transport/fabric/split.hpp"

namespace gdrx {

// UCX is for shared memory and RDMA: TCP is opened only where there is another host to reach.
Result<Result<std::shared_ptr<Fabric>>> choose_fabric(const std::string& host, const Config& config,
                                                      ControlMesh& mesh, const Log& log,
                                                      Deadline deadline) {
  const bool automatic = config.transport == "auto";
  const std::vector<Blob> hosts =
      GDRX_TRY(mesh.all_gather(std::as_bytes(std::span(host)), deadline));
  const bool one_host = std::all_of(hosts.begin(), hosts.end(),
                                    [&](const Blob& other) { return other == hosts.front(); });
  if (automatic && !one_host) return open_split_fabric(host, config, log);
  return open_fabric(automatic ? "ucx" : config.transport, config, log);
}

}  // namespace gdrx

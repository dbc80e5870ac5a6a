// SPDX-License-Identifier: Apache-2.0
#include "collectives/comm/gpu_share.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gdrx {
namespace {

std::string connect(gpu::Path* offered, std::span<const gpu::Ticket> tickets, Rank self,
                    bool one_host) {
  if (!one_host) return "the ranks are on several hosts";
  if (tickets.size() > static_cast<std::size_t>(gpu::kMaxRanks)) return "over 16 ranks";
  for (std::size_t rank = 0; rank < tickets.size(); ++rank) {
    if (tickets[rank].process == 0) {
      return fmt::format("rank {} had no CUDA context when the communicator was made", rank);
    }
  }
  if (offered == nullptr) return "none is offered here";
  auto connected = offered->connect(tickets, self);
  return connected ? "" : describe(connected.error());
}

}  // namespace

Result<std::unique_ptr<gpu::Path>> share_gpus(std::unique_ptr<gpu::Path> offered,
                                              std::span<const gpu::Ticket> tickets, Rank self,
                                              bool one_host, ControlMesh& mesh, const Log& log,
                                              Deadline deadline) {
  const bool anybody = std::any_of(tickets.begin(), tickets.end(),
                                   [](const gpu::Ticket& ticket) { return ticket.process != 0; });
  if (!anybody) return std::unique_ptr<gpu::Path>();
  const std::string trouble = connect(offered.get(), tickets, self, one_host);
  const std::vector<Blob> answers =
      GDRX_TRY(mesh.all_gather(std::as_bytes(std::span(trouble)), deadline));
  for (std::size_t rank = 0; rank < answers.size(); ++rank) {
    if (answers[rank].empty()) continue;
    const std::string why(reinterpret_cast<const char*>(answers[rank].data()),
                          answers[rank].size());
    if (index(self) == 0) {
      log.warn("GPU buffers go through host memory: rank {}: {}", rank, why);
    }
    return std::unique_ptr<gpu::Path>();
  }
  return offered;
}

}  // namespace gdrx

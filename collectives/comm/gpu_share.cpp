// SPDX-License-Identifier: Apache-2.0
#include "collectives/comm/gpu_share.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gdrx {
namespace {

std::string connect(gpu::Path* offered, std::span<const gpu::Ticket> tickets,
                    const Hierarchy& hierarchy) {
  if (hierarchy.host.size() > static_cast<std::size_t>(gpu::kMaxRanks)) {
    return "over 16 ranks on a host";
  }
  for (std::size_t rank = 0; rank < tickets.size(); ++rank) {
    if (tickets[rank].process == 0) {
      return fmt::format("rank {} had no CUDA context when the communicator was made", rank);
    }
  }
  if (offered == nullptr) return "none is offered here";
  std::vector<gpu::Ticket> here;
  for (const Rank rank : hierarchy.host) {
    here.push_back(tickets[static_cast<std::size_t>(index(rank))]);
  }
  auto connected = offered->connect(here, Rank{hierarchy.local});
  return connected ? "" : describe(connected.error());
}

}  // namespace

Result<std::unique_ptr<gpu::Path>> share_gpus(std::unique_ptr<gpu::Path> offered,
                                              std::span<const gpu::Ticket> tickets, Rank self,
                                              const Hierarchy& hierarchy, ControlMesh& mesh,
                                              const Log& log, Deadline deadline) {
  const bool anybody = std::any_of(tickets.begin(), tickets.end(),
                                   [](const gpu::Ticket& ticket) { return ticket.process != 0; });
  if (!anybody) return std::unique_ptr<gpu::Path>();
  const std::string trouble = connect(offered.get(), tickets, hierarchy);
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

// SPDX-License-Identifier: Apache-2.0
#include "collectives/comm/gpu_share.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "gdrx/config.hpp"

namespace gdrx {
namespace {

constexpr int kQueuesOfCuda = 8;  // where the environment says nothing
// Of a rank: its caller's stream, its own, and one aside.
constexpr int kQueuesOfARank = 3;

int queues_for_a_gpu() {
  constexpr std::string_view kName = "CUDA_DEVICE_MAX_CONNECTIONS=";
  int queues = kQueuesOfCuda;
  for (const std::string& variable : process_environment()) {
    if (!variable.starts_with(kName)) continue;
    std::from_chars(variable.data() + kName.size(), variable.data() + variable.size(), queues);
  }
  return queues;
}

// Of ranks of one process: a kernel may wait for one that stands behind it in a queue.
std::string lack_of_queues(std::span<const Hello> peers, const gpu::Ticket& own) {
  const int sharing = ranks_on_gpu(peers, own);
  const int queues = queues_for_a_gpu();
  if (sharing < 2 || sharing * kQueuesOfARank <= queues) return {};
  return fmt::format(
      "{} ranks of one process share a GPU, whose {} queues may put a kernel behind one that waits "
      "for it: set CUDA_DEVICE_MAX_CONNECTIONS=32 (for {} ranks at most)",
      sharing, queues, 32 / kQueuesOfARank);
}

std::string connect(gpu::Path& offered, std::span<const Hello> peers, const Hierarchy& hierarchy) {
  if (hierarchy.host.size() > static_cast<std::size_t>(gpu::kMaxRanks)) {
    return "over 16 ranks on a host";
  }
  std::string lack = lack_of_queues(peers, offered.ticket());
  if (!lack.empty()) return lack;
  std::vector<gpu::Ticket> here;
  for (const Rank rank : hierarchy.host) {
    here.push_back(peers[static_cast<std::size_t>(index(rank))].gpu);
  }
  auto connected = offered.connect(here, Rank{hierarchy.local});
  return connected ? "" : describe(connected.error());
}

}  // namespace

int ranks_on_gpu(std::span<const Hello> peers, const gpu::Ticket& own) {
  return static_cast<int>(std::count_if(peers.begin(), peers.end(), [&](const Hello& peer) {
    return peer.gpu.process == own.process && peer.gpu.device == own.device;
  }));
}

Result<void> check_gpus(std::span<const Hello> peers) {
  for (std::size_t rank = 0; rank < peers.size(); ++rank) {
    if (!peers[rank].needs_gpu || peers[rank].no_gpu.empty()) continue;
    return fail(Errc::invalid_argument,
                fmt::format("rank {} cannot have the GPU that its config names: {}", rank,
                            peers[rank].no_gpu));
  }
  return {};
}

Result<std::string> share_gpus(const GpuOffer& offer, std::span<const Hello> peers,
                               const Hierarchy& hierarchy, ControlMesh& mesh, Deadline deadline) {
  for (std::size_t rank = 0; rank < peers.size(); ++rank) {  // they all see the same
    if (peers[rank].gpu.process != 0) continue;
    return fmt::format("rank {}: {}", rank, peers[rank].no_gpu);
  }
  const std::string trouble =
      offer.path ? connect(*offer.path, peers, hierarchy) : std::string(offer.why_not);
  const std::vector<Blob> answers =
      GDRX_TRY(mesh.all_gather(std::as_bytes(std::span(trouble)), deadline));
  for (std::size_t rank = 0; rank < answers.size(); ++rank) {
    if (answers[rank].empty()) continue;
    const std::string_view why(reinterpret_cast<const char*>(answers[rank].data()),
                               answers[rank].size());
    return fmt::format("rank {}: {}", rank, why);
  }
  offer.path->all_connected();
  return std::string();
}

}  // namespace gdrx

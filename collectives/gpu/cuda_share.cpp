// SPDX-License-Identifier: Apache-2.0
// A path's share of its GPU: how many blocks a kernel gets, and what its graphs hold.
#include <algorithm>
#include <memory>

#include "collectives/gpu/capture.hpp"
#include "collectives/gpu/cuda_path.hpp"

namespace gdrx::gpu {
namespace {

/// The same on every rank, another one for each communicator.
std::uint64_t communicator_of(const Ticket& first) noexcept {
  constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15;
  const std::uint64_t id = first.process ^ first.lease * kOdd;
  return id != 0 ? id : 1;
}

using Kept = std::shared_ptr<GpuShare::Kept>;

/// Until the graph that the stream is captured into is gone, and all that were made of it.
bool hold_by_graph(cudaStream_t stream, const Kept& kept) {
  const AnyCapture beside;
  cudaStreamCaptureStatus status{};
  unsigned long long id = 0;
  cudaGraph_t graph = nullptr;
  bool held =
      cudaStreamGetCaptureInfo(stream, &status, &id, &graph) == cudaSuccess && graph != nullptr;
  auto* const owner = new Kept(kept);
  cudaUserObject_t object = nullptr;
  const auto end = [](void* its) { delete static_cast<Kept*>(its); };
  if (!held ||
      cudaUserObjectCreate(&object, owner, end, 1, cudaUserObjectNoDestructorSync) != cudaSuccess) {
    delete owner;
    held = false;
  } else if (cudaGraphRetainUserObject(graph, object, 1, cudaGraphUserObjectMove) != cudaSuccess) {
    cudaUserObjectRelease(object, 1);
    held = false;
  }
  if (!held) cudaGetLastError();  // not the user's next call's
  return held;
}

}  // namespace

// A rank alone waits for nobody.
void CudaPath::join_gpu(std::span<const Ticket> tickets) {
  if (tickets.size() < 2) return;
  held_->share =
      GpuShare::take(ticket_.device, ticket_.processors, communicator_of(tickets.front()));
}

CudaPath::Taken CudaPath::take_share(int blocks, int least, Last& last) {
  GpuShare* const share = held_->share.get();
  if (share == nullptr) return {blocks, false};
  const int most = share->most();
  const bool crowded = most != 0;
  const int taken = crowded ? std::min(blocks, std::max(most, least)) : blocks;
  // What waits for the kernel ahead takes room, too.
  if (crowded) last.starts = EarlyStarts(sharing_, ticket_.processors);
  if (last.capture != 0) keep(taken, crowded, last);
  return {taken, crowded};
}

// A graph that was made beside one other communicator at most is held as long as its own lives: to
// have CUDA tell of its end takes small calls in graphs longer.
void CudaPath::keep(int blocks, bool crowded, Last& last) {
  if (!crowded) return held_->share->keep(blocks);
  if (const Kept kept = last.kept.lock()) return kept->raise(blocks);
  const auto kept = std::make_shared<GpuShare::Kept>(held_->share, blocks);
  if (!hold_by_graph(last.stream, kept)) return held_->share->keep(blocks);
  last.kept = kept;
}

}  // namespace gdrx::gpu

// SPDX-License-Identifier: Apache-2.0
// Where a call goes, and its way there.
#include "collectives/comm/route.hpp"

#include <memory>
#include <span>
#include <utility>

#include "collectives/comm/communicator.hpp"
#include "collectives/comm/parts.hpp"
#include "gdrx/traits.hpp"

namespace gdrx {

Route Communicator::route_of(const Call& call, const Buffers& buffers) const {
  if (call.route != Route::undecided) return call.route;
  if (runs_on_gpu(call, buffers)) return Route::gpu_kernel;
  if (runs_on_hosts(call, buffers)) return Route::gpu_hosts;
  if (gpu_.rails.hierarchy() && is_empty(call)) return Route::nothing;
  return is_staged_in_stream(call, buffers) ? Route::staged : Route::host;
}

// As the call itself will: only the driver is not asked.
Route Communicator::route_of(Call shape, MemoryKind memory) const {
  static std::byte somewhere;
  const bool cuda = memory == MemoryKind::cuda;
  const plan::CollectiveTraits& traits = plan::traits_of(shape.collective);
  shape.input = shape.output = &somewhere;
  if (cuda) shape.stream = &somewhere;
  if (traits.has_parts() || traits.by_messages()) {
    shape.parts = std::make_shared<const exec::Parts>(equal_parts(shape, rank_, size()));
  }
  if (shape.collective == Collective::send_recv && shape.root == rank_) {
    shape.root = Rank{(index(rank_) + 1) % size()};
  }
  const auto is_cuda = [](const void* buffer) {
    return buffer == nullptr ? MemoryKind::host : MemoryKind::cuda;
  };
  const auto is_host = [](const void*) { return MemoryKind::host; };
  return cuda ? route_of(shape, Buffers{is_cuda, true}) : route_of(shape, Buffers{is_host, true});
}

Result<std::shared_ptr<Operation>> Communicator::post(Call call) {
  add_parts(call, rank_, size());  // where it runs is told by them
  call.route = route_of(call);
  GDRX_TRY(check(call));
  switch (call.route) {
    case Route::gpu_kernel:
      return post_on_gpu(std::move(call));
    case Route::gpu_hosts:
      return post_on_hosts(std::move(call));
    case Route::nothing: {
      auto operation = operation_of(std::move(call));
      finish(*operation);
      return operation;
    }
    case Route::staged: {
      const Call* const one = &call;
      return stage(std::span(&one, 1), true);
    }
    case Route::undecided:
    case Route::host:
      break;
  }
  return post_staged(operation_of(std::move(call)));
}

Result<void> Communicator::launch(const Call& call) {
  if (failure_.happened()) return tl::unexpected(failure_.error());
  switch (route_of(call)) {
    case Route::gpu_kernel:
      return launch_on_gpu(call, call.stream);
    case Route::gpu_hosts:
      return launch_on_hosts(call);
    case Route::nothing:
      return {};
    case Route::staged: {
      const Call* const one = &call;
      GDRX_TRY(stage(std::span(&one, 1), false));
      return {};
    }
    case Route::undecided:
    case Route::host:
      break;
  }
  return fail(Errc::internal, "no stream carries this call");
}

}  // namespace gdrx

// SPDX-License-Identifier: Apache-2.0
// Calls on GPU buffers that lie on several hosts: into the stream, and what a Hierarchical needs
// from the communicator when the stream has come to one.
#include <fmt/format.h>

#include <algorithm>

#include "collectives/comm/communicator.hpp"
#include "collectives/comm/gpu_pieces.hpp"
#include "collectives/comm/hierarchical.hpp"

namespace gdrx {
namespace {

// One of over seven weeks is none.
std::uint32_t in_record(std::chrono::milliseconds timeout) {
  return timeout.count() <= 0xffff'ffff ? static_cast<std::uint32_t>(timeout.count()) : 0;
}

}  // namespace

bool Communicator::is_empty(const Call& call) noexcept {
  return call.collective == Collective::all_reduce && call.count == 0;
}

// As with runs_on_gpu(), the same on every rank.
bool Communicator::runs_on_hosts(const Call& call, const Buffers& buffers) const {
  return gpu_.rails.hierarchy() && call.collective == Collective::all_reduce && call.count > 0 &&
         has_kernels(call.type, call.op) && on_gpu(call, buffers);
}

Result<void> Communicator::launch_on_hosts(const Call& call) {
  if (failure_.happened()) return tl::unexpected(failure_.error());
  if (call.count > 0) GDRX_TRY(reach(call.input, call.output));
  if (!GDRX_TRY(gpu_.path->is_captured(call.stream))) {
    GDRX_TRY(queue_on_hosts(call));  // the queue keeps it
    return {};
  }
  GDRX_TRY(enqueue_on_hosts(call, true));
  streams_.in_graphs = true;
  mesh_->wake();
  return {};
}

Result<std::shared_ptr<Operation>> Communicator::post_on_hosts(Call call) {
  GDRX_TRY(gpu_.path->check_mark(call.stream));  // before anything is in the graph
  if (failure_.happened()) return tl::unexpected(failure_.error());
  if (call.count > 0) GDRX_TRY(reach(call.input, call.output));
  return queue_on_hosts(std::move(call));
}

// In the queue before it is in the stream: a long call needs its driver while it is enqueued. The
// driver is left alone, which runs the call before this one.
Result<std::shared_ptr<Operation>> Communicator::queue_on_hosts(Call call) {
  GDRX_TRY(gpu_.path->check_launch(call.stream != nullptr ? call.stream : gpu_.path->own_stream()));
  if (failure_.happened()) return tl::unexpected(failure_.error());
  auto operation = operation_of(std::move(call));
  operation->on_hosts = true;
  streams_.post(operation);
  mesh_->wake();
  if (auto enqueued = enqueue_on_hosts(operation->call, false); !enqueued) {
    // Some of it is in the stream, and peers would wait for the rest.
    return tl::unexpected(stop(std::move(enqueued).error(), true));
  }
  return operation;
}

Result<void> Communicator::enqueue_on_hosts(const Call& call, bool captured) {
  const Bytes bytes = call.count * size_of(call.type);
  GpuPieces what;
  what.path = gpu_.path.get();
  what.host = gpu_.host;
  what.work = {call.input, call.output, bytes, call.type, call.op};
  what.work.timeout = settings_.timeout_of(call);
  what.record = {call.count, static_cast<std::int32_t>(call.type),
                 static_cast<std::int32_t>(call.op), captured ? 1 : 0,
                 in_record(settings_.timeout_of(call))};
  what.pieces = pieces_of(bytes);
  if (exec::Rail* const rail = gpu_.rails.direct()) {
    const exec::RailPlan& plan = gpu_.rails.plan();
    what.part = [rail](std::uint64_t piece) { return rail->part(piece); };
    what.levels = plan.levels;
    what.sums = levels_of(plan);
    what.sum = [&, rail, this](std::uint64_t piece, std::uint32_t sum) {
      const int over = call.op == ReduceOp::avg ? size() : 0;
      const exec::Rail::Call how{call.type, call.op, over, &gpu_.rails.plan()};
      const Bytes part = what.pieces.piece(piece).part_of(gpu_.rails.hierarchy()->local);
      return host_sum(rail->sum(piece, part, how, gpu_.rails.plan().sums[sum]), gpu_.host.blocks);
    };
  } else {
    what.part = [this, &what](std::uint64_t piece) {
      return gpu_.rails.pinned() + Hierarchical::offset(piece, what.pieces);
    };
  }
  const std::lock_guard lock(gpu_.mutex);
  if (call.stream != nullptr) return enqueue(what, call.stream);
  // The legacy default stream would wait for all others, and others for it.
  const auto before = GDRX_TRY(gpu_.path->mark(nullptr));
  GDRX_TRY(before->hold(gpu_.path->own_stream()));
  return enqueue(what, gpu_.path->own_stream());
}

Machine Communicator::rail_machine() const {
  Machine rail = choices_.machine;
  rail.ranks = static_cast<int>(gpu_.rails.hierarchy()->rail.size());
  rail.measured.clear();  // these are of all ranks
  return rail;
}

Result<std::unique_ptr<exec::Execution>> Communicator::make_hierarchical_direct(
    Operation& operation) {
  const Call& call = operation.call;
  operation.info.algorithm = choices_.of_rail();
  operation.info.path = PathKind::fabric;
  const Bytes bytes = call.count * size_of(call.type);
  const Pieces pieces = pieces_of(bytes);
  operation.info.predicted_us = direct_rail_us(rail_machine(), pieces, choices_.of_rail());
  trace_.begin(operation.info, bytes, queue_.sequence.calls());
  GDRX_TRY(gpu_.rails.direct()->connect(network_, trace_.track()));
  const exec::CallSignature& signature = queue_.sequence.begin({.collective = call.collective,
                                                                .type = call.type,
                                                                .op = call.op,
                                                                .algorithm = choices_.of_rail(),
                                                                .count = call.count});
  HierarchicalDirect::Setup setup;
  setup.flags = &*gpu_.flags;
  setup.pieces = pieces;
  setup.track = trace_.track();
  setup.local = gpu_.rails.hierarchy()->local;
  setup.rail = gpu_.rails.direct();
  setup.plan = &gpu_.rails.plan();
  setup.adder = &gpu_.rails.adder();
  setup.finish_over = call.op == ReduceOp::avg ? size() : 0;
  setup.signature = signature;
  setup.links = &network_;
  auto execution = GDRX_TRY(HierarchicalDirect::create(setup));
  operation.info.planned = execution->planned();
  return execution;
}

Result<std::unique_ptr<exec::Execution>> Communicator::make_hierarchical(Operation& operation) {
  if (gpu_.rails.direct() != nullptr) return make_hierarchical_direct(operation);
  const Call& call = operation.call;
  const Bytes bytes = call.count * size_of(call.type);
  const Pieces pieces = pieces_of(bytes);
  const auto choice = choose_rail(rail_machine(), pieces, choices_.fixed);
  if (!choice) return fail(Errc::unsupported, "no fabric reaches the other hosts: install UCX");
  operation.info.algorithm = choice->chosen.algorithm;
  operation.info.path = PathKind::fabric;
  operation.info.predicted_us = choice->chosen.predicted_us;
  operation.info.staged = true;
  trace_.begin(operation.info, bytes, queue_.sequence.calls());
  // A number a piece, of those too whose part of this rank is empty: ranks count alike.
  const std::uint64_t first = queue_.sequence.calls();
  queue_.sequence.begin({.collective = call.collective,
                         .type = call.type,
                         .op = call.op,
                         .algorithm = choice->chosen.algorithm,
                         .count = call.count},
                        pieces.count());
  Hierarchical::Setup setup;
  setup.flags = &*gpu_.flags;
  setup.pieces = pieces;
  setup.track = trace_.track();
  setup.local = gpu_.rails.hierarchy()->local;
  setup.staging = gpu_.rails.pinned();
  setup.network = [this, &operation, first](std::uint64_t piece, std::span<std::byte> part) {
    return make_rail_execution(operation.info, queue_.sequence.come_to(first + piece), part);
  };
  return std::make_unique<Hierarchical>(std::move(setup));
}

Result<std::unique_ptr<exec::PlanExecution>> Communicator::make_rail_execution(
    OperationInfo& info, exec::CallSignature signature, std::span<std::byte> part) {
  const auto ranks = static_cast<int>(gpu_.rails.hierarchy()->rail.size());
  const plan::Spec spec{Collective::all_reduce, signature.algorithm, ranks, Rank{}};
  const plan::Shape shape = GDRX_TRY(plan::shape_of(spec));
  const std::uint64_t elements = part.size() / size_of(signature.type);
  exec::PlanCall bound;
  bound.program = GDRX_TRY(gpu_.rails.program(signature.algorithm));
  bound.buffers = {{part.data(), {elements, shape.input_chunks}},
                   {part.data(), {elements, shape.output_chunks}}};
  bound.signature = signature;
  bound.element = size_of(signature.type);
  bound.finish_over = size();
  bound.track = trace_.track();
  auto execution = GDRX_TRY(exec::PlanExecution::create(std::move(bound), network_));
  info.planned = execution->planned();
  info.registered = execution->registered();
  return execution;
}

}  // namespace gdrx

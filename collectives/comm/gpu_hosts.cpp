// SPDX-License-Identifier: Apache-2.0
// Calls on GPU buffers that lie on several hosts: what a Hierarchical needs from the communicator.
#include <fmt/format.h>

#include "collectives/comm/communicator.hpp"

namespace gdrx {
namespace {

/// A program for ranks 0 to n - 1 as one for those of a rail.
void rename_peers(plan::RankProgram& program, std::span<const Rank> rail) {
  for (plan::Channel& channel : program.channels) {
    for (plan::Op& op : channel) op.peer = rail[static_cast<std::size_t>(index(op.peer))];
  }
}

}  // namespace

// As with runs_on_gpu(), the same on every rank.
bool Communicator::runs_on_hosts(const Call& call) const {
  return hierarchy_ && call.collective == Collective::all_reduce && call.count > 0 && on_gpu(call);
}

Result<std::unique_ptr<gpu::Mark>> Communicator::mark_before(void* stream) {
  auto mark = gpu_->mark(stream);
  if (!mark && mark.error().code == Errc::unsupported) {
    return fail(Errc::unsupported,
                "the stream is being captured, and this call goes to other hosts");
  }
  return mark;
}

// Allocated with the communicator: later, the driver might wait for kernels that wait for this
// rank.
Result<std::byte*> Communicator::host_memory() {
  const auto* of_this_gpu = reinterpret_cast<const void*>(gpu_->ticket().pointer);
  return staging_.memory(Hierarchical::kStagingBytes, of_this_gpu, *registrations_);
}

Machine Communicator::rail_machine() const {
  Machine rail = machine_;
  rail.ranks = machine_.hosts;
  rail.measured.clear();  // a rail has a rank a host
  return rail;
}

// A plan that was asked for runs on the host.
bool Communicator::goes_direct() const noexcept {
  return rail_ && (!fixed_ || *fixed_ == plan::Algorithm::two_shot);
}

GpuPieces::Setup Communicator::gpu_pieces(const Operation& operation) const {
  const Call& call = operation.call;
  return {gpu_.get(),
          gpu_host_,
          {call.input, call.output, call.count * size_of(call.type), call.type, call.op},
          operation.before.get(),
          track_.get()};
}

Result<std::unique_ptr<exec::Execution>> Communicator::make_hierarchical_direct(
    Operation& operation) {
  const Call& call = operation.call;
  operation.info.algorithm = plan::Algorithm::two_shot;
  operation.info.path = PathKind::fabric;
  mark_plan("plan of hosts, GPUDirect", call.count * size_of(call.type), plan::Algorithm::two_shot);
  GDRX_TRY(rail_->connect(*this, track_.get()));
  word_ = {.collective = call.collective,
           .type = call.type,
           .op = call.op,
           .algorithm = plan::Algorithm::two_shot,
           .sequence = calls_++,
           .count = call.count};
  HierarchicalDirect::Setup setup;
  setup.gpus = gpu_pieces(operation);
  setup.local = hierarchy_->local;
  setup.rail = rail_.get();
  setup.finish_over = call.op == ReduceOp::avg ? size() : 0;
  setup.word = word_;
  setup.links = this;
  auto execution = GDRX_TRY(HierarchicalDirect::create(setup));
  operation.info.planned.sends = operation.info.planned.receives = execution->planned();
  return execution;
}

Result<std::unique_ptr<exec::Execution>> Communicator::make_hierarchical(Operation& operation) {
  if (goes_direct()) return make_hierarchical_direct(operation);
  const Call& call = operation.call;
  const Bytes bytes = call.count * size_of(call.type);
  const Pieces pieces = Pieces::cut(bytes, gpu_host_.ranks, Hierarchical::kMostPart);
  const auto choice = choose(rail_machine(), Collective::all_reduce, pieces.part, fixed_);
  if (!choice) return fail(Errc::unsupported, "no fabric reaches the other hosts: install UCX");
  operation.info.algorithm = choice->chosen.algorithm;
  operation.info.path = PathKind::fabric;
  operation.info.predicted_us = choice->chosen.predicted_us * static_cast<double>(pieces.count());
  operation.info.staged = true;
  mark_plan("plan of hosts", bytes, choice->chosen.algorithm);
  // A number a piece, of those too whose part of this rank is empty: ranks count alike.
  const std::uint64_t first = calls_;
  word_ = {.collective = call.collective,
           .type = call.type,
           .op = call.op,
           .algorithm = choice->chosen.algorithm,
           .sequence = first,
           .count = call.count};
  calls_ += pieces.count();
  Hierarchical::Setup setup;
  setup.gpus = gpu_pieces(operation);
  setup.local = hierarchy_->local;
  setup.staging = GDRX_TRY(host_memory());
  setup.network = [this, &operation, first](std::uint64_t piece, std::span<std::byte> part) {
    word_.sequence = first + piece;
    return make_rail_execution(operation.info, word_, part);
  };
  return GDRX_TRY(Hierarchical::create(std::move(setup)));
}

Result<std::unique_ptr<exec::PlanExecution>> Communicator::make_rail_execution(
    OperationInfo& info, exec::Word word, std::span<std::byte> part) {
  const plan::Spec spec{Collective::all_reduce, word.algorithm, machine_.hosts, Rank{}};
  const plan::Shape shape = GDRX_TRY(plan::shape_of(spec));
  auto& program = rail_programs_[word.algorithm];
  if (!program) {
    plan::RankProgram own = GDRX_TRY(plan::build_rank(spec, Rank{hierarchy_->own_host}));
    rename_peers(own, hierarchy_->rail);
    program = std::make_shared<const exec::Program>(exec::compile(own));
  }
  const std::uint64_t elements = part.size() / size_of(word.type);
  exec::PlanCall bound;
  bound.program = program;
  bound.buffers = {{part.data(), {elements, shape.input_chunks}},
                   {part.data(), {elements, shape.output_chunks}}};
  bound.words = {word};
  bound.element = size_of(word.type);
  bound.finish_over = size();
  bound.track = track_.get();
  auto execution = GDRX_TRY(exec::PlanExecution::create(std::move(bound), *this));
  info.planned = execution->planned();
  info.registered = execution->registered();
  return execution;
}

std::string Communicator::explain_hosts(Bytes bytes) const {
  const std::uint64_t most = goes_direct() ? HierarchicalDirect::kMostPart : Pieces::kMostPart;
  const Pieces pieces = Pieces::cut(std::max<Bytes>(bytes, 1), gpu_host_.ranks, most);
  std::string text = fmt::format(
      "GPU buffers of {} bytes, {} on each of {} hosts' {} ranks: {} piece(s); of each the GPUs "
      "of a host reduce-scatter {} bytes a rank ",
      bytes, gpu_->device_name(), machine_.hosts, gpu_host_.ranks, pieces.count(), pieces.part);
  if (goes_direct()) {
    return text + fmt::format(
                      "into memory of their own, rails of {} ranks sum them there by "
                      "two-shot over {} (GPUDirect RDMA), the GPUs gather\n",
                      machine_.hosts, machine_.fabric_name);
  }
  const auto choice = choose(rail_machine(), Collective::all_reduce, pieces.part, fixed_);
  if (!choice) return "";
  return text + fmt::format(
                    "into pinned memory, rails of {} ranks reduce them by {} over {}, the "
                    "GPUs gather\n",
                    machine_.hosts, plan::to_string(choice->chosen.algorithm),
                    machine_.fabric_name);
}

}  // namespace gdrx

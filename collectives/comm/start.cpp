// SPDX-License-Identifier: Apache-2.0
// From a call to an execution: choose, bind, connect.
#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <utility>

#include "collectives/comm/communicator.hpp"
#include "gdrx/traits.hpp"

namespace gdrx {
namespace {

using plan::Algorithm;

std::byte* writable(const std::byte* pointer) {
  // Plans bind input and output alike; verify() proves that no plan writes its input.
  return const_cast<std::byte*>(pointer);
}

}  // namespace

// What every rank that makes the call says alike, before anything of it is started anywhere.
Result<void> Communicator::check(const Call& call) const {
  if (failure_.happened()) return tl::unexpected(failure_.error());
  if (can_carry(machine_, call.collective, fixed_) || runs_in_stream(call)) return {};
  const bool pair = call.collective == Collective::send_recv;
  return fail(Errc::unsupported,
              fmt::format("{} a fabric and none could be opened: install UCX",
                          pair ? "send and receive need"
                               : fmt::format("{} needs", to_string(call.collective))));
}

Result<void> Communicator::check_wait(const Call& call) const {
  if (!gpu_ || call.stream == nullptr) return {};
  return gpu_->check_mark(call.stream);
}

// An operation without an execution is never left in the queue.
Result<void> Communicator::start(Operation& operation) {
  try {
    return make_start(operation);
  } catch (const std::bad_alloc&) {
    return fail(Errc::system, "out of memory");
  }
}

Result<void> Communicator::make_start(Operation& operation) {
  operation.deadline = call_deadline();
  if (operation.on_hosts) {
    operation.execution = GDRX_TRY(make_hierarchical(operation));
    return {};
  }
  GDRX_TRY(staging_.begin(operation.call, size(), rank_, *pinned_));
  operation.info.staged = staging_.used();
  if (operation.info.staged) say_why_staged(operation.call);
  operation.execution = GDRX_TRY(make_execution(operation));
  return {};
}

Result<std::unique_ptr<exec::Execution>> Communicator::make_execution(Operation& operation) {
  const Call& call = operation.call;
  const plan::CollectiveTraits& traits = plan::traits_of(call.collective);
  const Bytes bytes = plan::vector_elements(traits, call.count, size()) * size_of(call.type);
  // A barrier over shared memory is an allReduce of nothing, whatever algorithm was asked for.
  const bool over_shm = call.collective == Collective::barrier && machine_.shm;
  const auto choice = over_shm ? choose(machine_, Collective::all_reduce, 0, Algorithm::one_shot)
                               : choose(machine_, call.collective, bytes, fixed_);
  if (!choice) return fail(Errc::internal, "nothing carries a call that check() has let through");
  operation.info.algorithm = choice->chosen.algorithm;
  operation.info.path = choice->chosen.path;
  operation.info.predicted_us = choice->chosen.predicted_us;
  mark_plan("plan", bytes, choice->chosen.algorithm);
  word_ = {.collective = call.collective,
           .type = call.type,
           .op = call.op,
           .algorithm = choice->chosen.algorithm,
           .root = index(call.root),
           .sequence = calls_++,
           .count = call.count};
  if (layout_) {
    layout_->publish(index(rank_), word_, word_.sequence);
    GDRX_TRY(look_for_strays());
  }
  if (operation.info.path == PathKind::fabric) return make_plan_execution(operation, word_);
  const plan::Spec spec{Collective::all_reduce, choice->chosen.algorithm, size(), Rank{}};
  operation.info.planned = GDRX_TRY(program_for(spec))->traffic;
  operation.info.registered = registrations_->size() > 0 &&
                              registrations_->find({call.input, bytes}) != nullptr &&
                              registrations_->find({call.output, bytes}) != nullptr;
  exec::ArenaCall arena{.word = word_,
                        .call = word_.sequence,
                        .base = stage_,
                        .input = call.input,
                        .output = call.output,
                        .gate = &gate_,
                        .track = track_.get()};
  if (writes_results(machine_, bytes)) arena.processes = processes_;
  return std::make_unique<exec::ArenaExecution>(*layout_, index(rank_), arena);
}

Result<std::unique_ptr<exec::Execution>> Communicator::make_plan_execution(Operation& operation,
                                                                           exec::Word word) {
  const Call& call = operation.call;
  const plan::Spec spec{call.collective, operation.info.algorithm, size(), call.root};
  const plan::Shape shape = GDRX_TRY(plan::shape_of(spec));
  exec::PlanCall bound;
  bound.program = GDRX_TRY(program_for(spec));
  // Of a root alone or of every rank: plans have both buffers everywhere, and touch what there is.
  const plan::CollectiveTraits& traits = plan::traits_of(call.collective);
  const std::uint64_t input = plan::elements(traits.input, call.count, size(), true);
  const std::uint64_t output = plan::elements(traits.output, call.count, size(), true);
  bound.buffers = {{writable(call.input), {input, shape.input_chunks}},
                   {call.output, {output, shape.output_chunks}}};
  bound.word = word;
  bound.element = size_of(call.type);
  bound.finish_over = size();
  bound.track = track_.get();
  auto execution = GDRX_TRY(exec::PlanExecution::create(std::move(bound), *this));
  operation.info.planned = execution->planned();
  operation.info.registered = execution->registered();
  return execution;
}

Result<std::shared_ptr<const exec::Program>> Communicator::program_for(const plan::Spec& spec) {
  const auto key = std::tuple(spec.collective, spec.algorithm, spec.root);
  if (const auto found = programs_.find(key); found != programs_.end()) return found->second;
  const plan::RankProgram program = GDRX_TRY(plan::build_rank(spec, rank_));
  auto compiled = std::make_shared<const exec::Program>(exec::compile(program));
  programs_.emplace(key, compiled);
  return std::shared_ptr<const exec::Program>(compiled);
}

Result<exec::Outbox*> Communicator::to(Rank peer) {
  auto& outbox = outboxes_[static_cast<std::size_t>(index(peer))];
  if (!outbox) {
    if (failure_.happened()) return tl::unexpected(failure_.error());  // its memory may be gone
    const Hello& hello = peers_[static_cast<std::size_t>(index(peer))];
    auto endpoint = GDRX_TRY(device_->connect(peer, hello.device_address));
    const RemoteRegionId region = GDRX_TRY(endpoint->import_region(hello.inbox_key));
    outbox = std::make_unique<exec::Outbox>(std::move(endpoint), region, inbox_->shape(), rank_);
  }
  return outbox.get();
}

}  // namespace gdrx

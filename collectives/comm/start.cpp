// SPDX-License-Identifier: Apache-2.0
// From a call to an execution: choose, bind, connect.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "collectives/comm/communicator.hpp"
#include "collectives/comm/parts.hpp"
#include "collectives/exec/arena_execution.hpp"
#include "collectives/exec/one_block_execution.hpp"
#include "collectives/exec/parcel_execution.hpp"
#include "gdrx/traits.hpp"
#include "transport/memory/cuda_memory.hpp"

namespace gdrx {
namespace {

using plan::Algorithm;

// A kernel that gives up after the timeout has named whom it waited for: it is let to.
constexpr std::chrono::seconds kLastWord{1};

std::byte* writable(const std::byte* pointer) {
  // Plans bind input and output alike; verify() proves that no plan writes its input.
  return const_cast<std::byte*>(pointer);
}

const reduce::UserOperator* user_of(const Call& call) {
  return call.op == ReduceOp::user ? &call.made->user : nullptr;
}

Result<void> check_host_memory(const Call& call) {
  for (const void* buffer :
       {static_cast<const void*>(call.input), static_cast<const void*>(call.output)}) {
    if (cuda::kind_of(buffer) != MemoryKind::cuda) continue;
    return fail(Errc::invalid_argument,
                fmt::format("{} in GPU memory, where there is no such type: use host memory, or "
                            "move it as gdrxByte",
                            to_string(call.type)));
  }
  return {};
}

}  // namespace

// What every rank that makes the call says alike, before anything of it is started anywhere.
Result<void> Communicator::check(const Call& call) const {
  if (failure_.happened()) return tl::unexpected(failure_.error());
  if (is_host_only(call.type)) GDRX_TRY(check_host_memory(call));
  if (choices_.can_carry(call) || runs_in_stream(call)) return {};
  const bool pair = call.collective == Collective::send_recv;
  return fail(
      Errc::unsupported,
      fmt::format(
          "{} a fabric and none could be opened: the ranks do not share memory, and UCX "
          "is not there",
          pair ? "send and receive need" : fmt::format("{} needs", to_string(call.collective))));
}

Result<void> Communicator::check_wait(const Call& call) const {
  if (!gpu_.path || call.stream == nullptr) return {};
  return gpu_.path->check_mark(call.stream);
}

std::shared_ptr<Operation> Communicator::operation_of(Call call) const {
  const std::chrono::milliseconds timeout = settings_.timeout_of(call);
  return std::make_shared<Operation>(std::move(call), timeout);
}

// One look at the clock: it is dear where the kernel has to be asked.
void Communicator::begin(Operation& operation) {
  struct Now final : Clock {
    explicit Now(Instant time) : time(time) {}
    Instant now() const noexcept override { return time; }
    Instant time;
  };
  const Now now(steady_clock().now());
  if (operation.on_hosts)
    operation.info.route = operation.staged ? Route::staged : Route::gpu_hosts;
  operation.began = now.time;
  operation.deadline =
      operation.timeout.count() > 0 ? Deadline::after(now, operation.timeout) : Deadline::never();
}

Deadline Communicator::waiters_deadline(std::chrono::milliseconds timeout) {
  return timeout.count() > 0 ? Deadline::after(steady_clock(), timeout + kLastWord)
                             : Deadline::never();
}

// An operation without an execution stays in the queue only while its start is suspected.
Result<void> Communicator::start(Operation& operation) {
  try {
    return make_start(operation);
  } catch (const std::bad_alloc&) {
    return tl::unexpected(no_memory());
  }
}

Result<void> Communicator::make_start(Operation& operation) {
  begin(operation);
  if (operation.on_hosts) {
    operation.execution =
        GDRX_TRY(operation.staged ? make_staged(operation) : make_hierarchical(operation));
    return {};
  }
  if (operation.staging) {
    say_why_staged(operation.call);
    GDRX_TRY(operation.staging->begin(operation.call));
    operation.info.staged = true;
  }
  if (operation.call.op == ReduceOp::premul_sum) GDRX_TRY(scale_input(operation));
  operation.execution = GDRX_TRY(make_execution(operation));
  return {};
}

// Into memory that the call may write: its staging, or an allReduce's result; else memory of its
// own.
Result<void> Communicator::scale_input(Operation& operation) {
  Call& call = operation.call;
  const MadeOperator& made = *call.made;
  auto scalar = made.scalar;
  if (made.scalar_at != nullptr) {
    const std::size_t size = size_of(made.type);
    if (operation.staged) {
      std::memcpy(scalar.data(), made.scalar_at, size);
    } else {
      GDRX_TRY(cuda::copy_aside_to_host(scalar.data(), made.scalar_at, size));
    }
  }
  const plan::CollectiveTraits& traits = plan::traits_of(call.collective);
  const std::uint64_t count = cut_of(call, traits.input, 1).extent();
  std::byte* to = call.output;
  if (operation.staged || (operation.staging && operation.staging->has(call.input))) {
    to = writable(call.input);
  } else if (call.collective != Collective::all_reduce) {
    operation.scaled = std::make_unique_for_overwrite<std::byte[]>(count * size_of(call.type));
    to = operation.scaled.get();
  }
  reduce::scale(to, call.input, scalar.data(), count, call.type);
  call.input = to;
  return {};
}

exec::CallSignature Communicator::signature_of(const Call& call, Algorithm algorithm) noexcept {
  const plan::CollectiveTraits& traits = plan::traits_of(call.collective);
  const std::int32_t root = traits.has_parts() ? digest_of(parts_alike(call))
                            : call.leaves      ? digest_of_leaves(*call.leaves)
                                               : index(call.root);
  return {.collective = call.collective,
          .type = call.type,
          .op = call.op,
          .algorithm = algorithm,
          .user_op = call.made ? call.made->number : std::uint16_t{0},
          .root = root,
          .count = call.count};
}

// Peers may read it from now on.
void Communicator::begin_signature(const Call& call, Algorithm algorithm) noexcept {
  const exec::CallSignature& signature = queue_.sequence.begin(signature_of(call, algorithm));
  if (memory_.seat) memory_.seat->begin(signature);
}

bool Communicator::is_one_block(const Question& question, const Candidate& chosen) const noexcept {
  if (chosen.path != PathKind::shm || chosen.algorithm != Algorithm::one_shot) return false;
  const plan::CollectiveTraits& traits = plan::traits_of(question.collective);
  return exec::given_of(traits, question.bytes, size()) <= memory_.seat->layout().block();
}

exec::ArenaCall Communicator::arena_call(const Call& call) noexcept {
  return {.signature = queue_.sequence.signature(),
          .base = queue_.sequence.stage(),
          .input = call.input,
          .output = call.output,
          .gate = &memory_.gate,
          .track = trace_.track(),
          .user = user_of(call),
          .parts = plan::traits_of(call.collective).has_parts() ? &parts_alike(call) : nullptr};
}

Result<std::unique_ptr<exec::Execution>> Communicator::make_execution(Operation& operation) {
  const Call& call = operation.call;
  const plan::CollectiveTraits& traits = plan::traits_of(call.collective);
  const Question question = choices_.question_of(call);
  const Bytes bytes = question.bytes;
  Ways::Way* const way = choices_.way_of(question);
  if (way == nullptr && traits.by_messages()) return make_exchange(operation);
  if (way == nullptr) {
    return fail(Errc::internal, "nothing carries a call that check() has let through");
  }
  const Algorithm algorithm = way->chosen.algorithm;
  operation.info.algorithm = algorithm;
  operation.info.path = way->chosen.path;
  operation.info.predicted_us = way->chosen.predicted_us;
  trace_.begin(operation.info, bytes, queue_.sequence.calls());
  begin_signature(call, algorithm);
  if (operation.info.path == PathKind::fabric) {
    if (memory_.seat) GDRX_TRY(look_for_strays());
    auto execution = GDRX_TRY(make_plan_execution(operation));
    way->planned = operation.info.planned;
    return execution;
  }
  operation.info.registered = network_.registrations().size() > 0 &&
                              network_.registrations().find({call.input, bytes}) != nullptr &&
                              network_.registrations().find({call.output, bytes}) != nullptr;
  exec::ArenaCall arena = arena_call(call);
  if (is_one_block(question, way->chosen)) {
    const exec::OneBlock block(*memory_.seat, arena);
    operation.info.planned = block.traffic();
    return std::make_unique<exec::OneBlockExecution>(block, trace_.track());
  }
  const plan::Spec spec{Collective::all_reduce, algorithm, size(), Rank{}};
  operation.info.planned = GDRX_TRY(choices_.program_for(spec, rank_))->traffic;
  if (writes_results(choices_.machine, bytes)) arena.processes = memory_.processes;
  return std::make_unique<exec::ArenaExecution>(*memory_.seat, arena);
}

exec::ExchangeCall Communicator::begin_exchange(const Call& call) noexcept {
  const bool known = !plan::traits_of(call.collective).has_parts();
  const exec::CallSignature& signature = queue_.sequence.begin({.collective = call.collective,
                                                                .type = call.type,
                                                                .algorithm = Algorithm::one_shot,
                                                                .root = index(call.root),
                                                                .count = known ? call.count : 0});
  if (memory_.seat) memory_.seat->begin(signature);
  return {.signature = signature,
          .element = size_of(call.type),
          .input = call.input,
          .output = call.output,
          .parts = call.parts.get()};
}

// All at once and in one hop.
Result<std::unique_ptr<exec::Execution>> Communicator::make_exchange(Operation& operation) {
  const Call& call = operation.call;
  operation.info.algorithm = Algorithm::one_shot;
  operation.info.path = PathKind::fabric;
  trace_.begin(operation.info, elements_of(call.parts->sends) * size_of(call.type),
               queue_.sequence.calls());
  const exec::ExchangeCall bound = begin_exchange(call);
  if (memory_.seat) GDRX_TRY(look_for_strays());
  exec::Flows* const flows = size() > 1 ? &pairs_->exchange() : nullptr;
  if (memory_.seat && exec::goes_by_parcels(call.collective, size())) {
    const exec::Parcels parcels(*memory_.seat, bound, queue_.sequence.stage());
    operation.info.planned = parcels.traffic();
    auto execution = GDRX_TRY(exec::ParcelExecution::create(parcels, flows));
    operation.info.registered = execution->registered();
    return execution;
  }
  auto execution = GDRX_TRY(exec::Exchange::create(bound, rank_, flows));
  operation.info.registered = execution->registered();
  return execution;
}

// Of a root alone or of every rank: plans have both buffers everywhere, and touch what there is.
exec::Partition Communicator::cut_of(const Call& call, plan::Extent extent,
                                     std::uint32_t chunks) const {
  if (extent == plan::Extent::leaves) {
    return {call.count, chunks, nullptr, static_cast<std::uint32_t>(leaves_of(call, rank_))};
  }
  if (!plan::CollectiveTraits::is_parts(extent)) {
    return {plan::elements(extent, own_count(call, rank_), size(), true), chunks};
  }
  const std::vector<exec::Part>& parts = parts_alike(call);
  return {elements_of(parts), chunks, parts.data()};
}

Result<std::unique_ptr<exec::Execution>> Communicator::make_plan_execution(Operation& operation) {
  const Call& call = operation.call;
  const plan::CollectiveTraits& traits = plan::traits_of(call.collective);
  plan::Spec spec{traits.plans, operation.info.algorithm, size(), call.root};
  if (call.leaves) spec.leaves = *call.leaves;
  const plan::Shape shape = GDRX_TRY(plan::shape_of(spec));
  exec::PlanCall bound;
  bound.program = GDRX_TRY(choices_.program_for(spec, rank_));
  const bool leaves = traits.has_leaves();  // each is cut as the output is
  bound.buffers = {{writable(call.input),
                    cut_of(call, traits.input, leaves ? shape.output_chunks : shape.input_chunks)},
                   {call.output, cut_of(call, traits.output, shape.output_chunks)}};
  bound.signature = queue_.sequence.signature();
  bound.element = size_of(call.type);
  bound.finish_over = leaves ? all_leaves(call, size()) : size();
  bound.track = trace_.track();
  bound.user = user_of(call);
  auto execution = GDRX_TRY(exec::PlanExecution::create(std::move(bound), network_));
  operation.info.planned = execution->planned();
  operation.info.registered = execution->registered();
  return execution;
}

}  // namespace gdrx

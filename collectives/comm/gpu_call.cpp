// SPDX-License-Identifier: Apache-2.0
// Calls that the GPUs run by themselves: enqueued on the caller's stream, never queued here.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "collectives/comm/communicator.hpp"
#include "collectives/comm/gpu_called.hpp"
#include "collectives/comm/gpu_messages.hpp"
#include "collectives/comm/gpu_moves.hpp"
#include "collectives/comm/parts.hpp"
#include "gdrx/traits.hpp"
#include "transport/memory/cuda_memory.hpp"

namespace gdrx {
namespace {

plan::Algorithm algorithm_of(gpu::Kernel kernel) {
  switch (kernel) {
    case gpu::Kernel::one_shot:
      return plan::Algorithm::one_shot;
    case gpu::Kernel::two_shot:
    case gpu::Kernel::direct:
      return plan::Algorithm::two_shot;
    case gpu::Kernel::ring:
      return plan::Algorithm::ring;
    case gpu::Kernel::tree:
      return plan::Algorithm::tree;
    case gpu::Kernel::reduce_scatter:
    case gpu::Kernel::all_gather:
      return plan::Algorithm::two_shot;  // one half of it
  }
  return plan::Algorithm::ring;
}

// What is not added is bytes to a kernel.
// What is multiplied first is a sum to those of one host, but where parts differ.
bool kernels_know(const Call& call, bool one_host) {
  const plan::CollectiveTraits& traits = plan::traits_of(call.collective);
  if (!traits.reduces) return true;
  const bool scales = one_host && !traits.has_parts();
  return has_kernels(call.type, scales ? gpu::added_by(call.op) : call.op);
}

// Of the same call, so that the two speak of elements of one type.
bool differ_in_count(const gpu::Called& mine, gpu::Called theirs) {
  theirs.bytes = mine.bytes;
  return mine.moves && mine == theirs;
}

}  // namespace

// Empty: its kernels run it, if its buffers are of GPU memory. The same on every rank.
std::optional<WhyStaged> Communicator::why_staged(const Call& call) const {
  const Collective collective = call.collective;
  if (!gpu_.path) return WhyStaged::no_gpu;
  if (gpu_.rails.hierarchy() && collective != Collective::all_reduce)
    return WhyStaged::between_hosts;
  if (collective == Collective::send_recv) return {};
  if (!by_all_reduce(collective) && !by_blocks(collective) && !by_moves(collective)) {
    return WhyStaged::no_kernel;
  }
  if (!kernels_know(call, !gpu_.rails.hierarchy())) return WhyStaged::no_arithmetic;
  if (gpu_.rails.hierarchy() || collective == Collective::barrier || !by_all_reduce(collective))
    return {};
  if (choices_.fixed && !gpu::kernel_of(*choices_.fixed)) return WhyStaged::algorithm;
  return {};
}

// Of a send or receive, rank 0 may have no part.
void Communicator::say_why_staged(const Call& call) {
  const bool pair = call.collective == Collective::send_recv;
  const WhyStaged why =
      why_staged(call).value_or(pair ? WhyStaged::no_stream : WhyStaged::host_buffer);
  if (!gpu_.is_new(why)) return;
  if (index(rank_) != 0 && call.collective != Collective::send_recv) return;
  settings_.log.warn("{} of GPU buffers goes through host memory: {}", to_string(call.collective),
                     gdrx::text_of(why, gpu_.why_not));
}

// Refused here alone, peers would wait for it in their kernels.
Result<void> Communicator::reach(const void* input, const void* output) {
  auto reached = gpu_.path->check_buffers(input, output);
  if (!reached) return tl::unexpected(stop(std::move(reached).error(), true));
  return {};
}

gpu::Run Communicator::stored_here(const Call& call) const {
  const Bytes element = size_of(call.type);
  if (call.collective == Collective::reduce_scatter_v) {
    const exec::Range own = parts_alike(call)[static_cast<std::size_t>(index(rank_))].range;
    return {own.begin * element, own.count * element};
  }
  const bool none = call.collective == Collective::reduce && call.root != rank_;
  return {0, none ? 0 : call.count * element};
}

bool Communicator::on_gpu(const Call& call, const Buffers& buffers) const {
  return buffers.is_gpu(call.input) &&
         (stored_here(call).bytes == 0 || buffers.is_gpu(call.output));
}

// The answer is the same on every rank as long as all give buffers of one kind, as they must.
bool Communicator::runs_on_gpu(const Call& call, const Buffers& buffers) const {
  if (gpu_.rails.hierarchy() || why_staged(call)) return false;
  // To oneself is for a group to match.
  if (call.collective == Collective::send_recv)
    return call.root != rank_ && is_gpu_message(call, buffers);
  if (by_moves(call.collective))
    return moves_on_gpu(call, rank_, size(), last_.posted_on_gpu(), buffers);
  if (call.collective == Collective::barrier) return call.stream != nullptr;
  return call.count == 0 || on_gpu(call, buffers);
}

gpu::Prediction Communicator::gpu_choice(const Call& call) const {
  const Bytes bytes = call.count * size_of(call.type);
  if (call.collective == Collective::reduce_scatter) {
    return {gpu::shape_of_blocks(gpu::Kernel::reduce_scatter, gpu_.host, bytes)};
  }
  if (call.collective == Collective::all_gather) {
    return {gpu::shape_of_blocks(gpu::Kernel::all_gather, gpu_.host, bytes)};
  }
  const bool direct = !choices_.fixed && call.collective == Collective::all_reduce &&
                      gpu_.path->reaches(call.input, call.output, bytes);
  if (direct && settings_.config.algo == "direct") {
    if (const auto only = gpu::prediction_of(gpu::Kernel::direct, gpu_.host, bytes)) return *only;
  }
  const auto asked = gpu::asked_for(choices_.fixed, gpu_.host, bytes);
  // An algorithm that was asked for and cannot carry this size gives way, as on the host.
  return asked ? *asked : gpu::best(gpu_.host, bytes, direct);
}

namespace {

/// What its memory of products has room for, of each of `blocks`, in whole lines of memory.
std::uint64_t most_products(DataType type, std::uint64_t blocks) {
  constexpr std::uint64_t kLine = 128;
  return gpu::kProductBytes / blocks / kLine * kLine / size_of(type);
}

}  // namespace

Result<void> Communicator::scale(const Call& call, std::uint64_t first, std::uint64_t count,
                                 std::byte* to, void* stream) {
  if (count == 0) return {};
  const MadeOperator& made = *call.made;
  gpu::Scaling what{to, call.input + first * size_of(call.type), count, call.type, made.scalar_at};
  std::memcpy(what.own, made.scalar.data(), sizeof what.own);
  std::unique_lock lock(gpu_.mutex);
  auto scaled = gpu_.path->scale(what, stream);
  if (scaled) return {};
  lock.unlock();
  // As in enqueue_launch().
  if (scaled.error().code == Errc::unsupported) return tl::unexpected(std::move(scaled).error());
  return tl::unexpected(stop(std::move(scaled).error(), true));
}

Result<void> Communicator::reserve_products() {
  if (!gpu_.path || gpu_.rails.hierarchy()) return {};
  const std::lock_guard lock(gpu_.mutex);
  GDRX_TRY(gpu_.path->products());
  return {};
}

// Into an allReduce's result. Of another call in pieces through memory of the path's, cut alike on
// every rank.
Result<void> Communicator::launch_scaled(const Call& call, void* stream) {
  const bool in_output = call.collective == Collective::all_reduce;
  if (call.count > 0) GDRX_TRY(reach(call.input, in_output ? call.output : nullptr));
  if (call.made->scalar_at != nullptr) GDRX_TRY(reach(call.made->scalar_at, nullptr));
  Call sum = call;
  sum.made.reset();
  if (in_output) {
    GDRX_TRY(scale(call, 0, call.count, call.output, stream));
    sum.input = call.output;
    return launch_on_gpu(sum, stream);
  }
  const bool of_blocks = call.collective == Collective::reduce_scatter;
  const auto blocks = static_cast<std::uint64_t>(of_blocks ? size() : 1);
  const std::size_t element = size_of(call.type);
  std::byte* const products = GDRX_TRY(gpu_.path->products());
  std::uint64_t begin = 0;
  do {
    sum.count = std::min(most_products(call.type, blocks), call.count - begin);
    for (std::uint64_t block = 0; block < blocks; ++block) {
      GDRX_TRY(scale(call, block * call.count + begin, sum.count,
                     products + block * sum.count * element, stream));
    }
    sum.input = products;
    if (call.output != nullptr) sum.output = call.output + begin * element;
    GDRX_TRY(launch_on_gpu(sum, stream));
    begin += sum.count;
  } while (begin < call.count);
  return {};
}

Result<void> Communicator::launch_on_gpu(const Call& call, void* stream) {
  if (failure_.happened()) return tl::unexpected(failure_.error());
  const bool is_to_be_scaled = call.op == ReduceOp::premul_sum && call.made;
  if (is_to_be_scaled) return launch_scaled(call, stream);
  if (call.collective == Collective::send_recv) {
    const Call* const one = &call;
    return launch_messages(std::span(&one, 1));
  }
  if (goes_by_moves(call, choices_.fixed.has_value(), size())) {
    return launch_moves(call, stream);
  }
  if (call.collective == Collective::barrier) return launch_barrier(call, stream);
  const gpu::Run stores = stored_here(call);
  void* const output = stores.bytes > 0 ? call.output : nullptr;
  if (call.count > 0) GDRX_TRY(reach(call.input, output));
  const Bytes block = call.count * size_of(call.type);
  const plan::CollectiveTraits& traits = plan::traits_of(call.collective);
  const Bytes bytes = plan::vector_elements(traits, call.count, size()) * size_of(call.type);
  const gpu::Prediction choice = gpu_choice(call);
  GpuLaunch launch{gpu::to_string(choice.shape.kernel), bytes, algorithm_of(choice.shape.kernel),
                   choice.us};
  launch.work = {call.input, output, bytes, call.type, call.op, block};
  if (by_all_reduce(call.collective)) {
    launch.work.collective = call.collective;
    launch.work.stores = stores;
  }
  if (traits.has_parts()) {
    launch.work.parts = static_cast<std::uint32_t>(digest_of(parts_alike(call)));
  }
  launch.work.root = call.root;
  launch.work.timeout = settings_.timeout_of(call);
  launch.shape = choice.shape;
  return enqueue_launch(launch, stream);
}

// One word from each rank to each, added up for nobody.
Result<void> Communicator::launch_barrier(const Call& call, void* stream) {
  Call word;
  word.count = 1;
  word.type = DataType::uint32;
  const gpu::Prediction choice = gpu_choice(word);
  GpuLaunch launch{"barrier", sizeof(std::uint32_t), algorithm_of(choice.shape.kernel), choice.us};
  launch.work = {nullptr, nullptr, sizeof(std::uint32_t), word.type, ReduceOp::max};
  launch.work.collective = Collective::barrier;
  launch.work.stores = gpu::Run{};
  launch.work.timeout = settings_.timeout_of(call);
  launch.shape = choice.shape;
  return enqueue_launch(launch, stream);
}

// The host's part has a span here; the GPU's is gpu_.spans'.
Result<void> Communicator::enqueue_launch(const GpuLaunch& what, void* stream) {
  const std::uint32_t number = gpu_.spans ? gpu_.spans->next_call() : trace::kNoIndex;
  const trace::Span span(trace_.track(), trace::Row::plans, trace::Kind::plan,
                         row_of(Route::gpu_kernel).mark,
                         {what.bytes, trace::kNobody, number, what.kernel});
  std::unique_lock lock(gpu_.mutex);
  const bool timed = gpu_.spans && what.bytes > 0 && gpu_.spans->begin(stream);
  Result<void> enqueued;
  if (what.messages != nullptr) {
    enqueued = gpu_.path->exchange(*what.messages, gpu_.host.blocks);
  } else if (what.moves.empty()) {
    enqueued = gpu_.path->launch(what.work, what.shape, stream);
  }
  for (const gpu::Moves& step : what.moves) {
    if (enqueued) enqueued = gpu_.path->move(step, gpu_.host.blocks, stream);
  }
  if (!enqueued) {
    lock.unlock();
    // Of a stream that is captured: nothing was started.
    if (enqueued.error().code == Errc::unsupported) return tl::unexpected(enqueued.error());
    // Peers would wait for this kernel, and take the next for it.
    return tl::unexpected(stop(std::move(enqueued).error(), true));
  }
  if (timed) gpu_.spans->end(stream, what.kernel, what.bytes, number);
  OperationInfo info;
  info.algorithm = what.algorithm;
  info.path = PathKind::gpu;
  info.route = Route::gpu_kernel;
  info.predicted_us = what.predicted_us;
  info.registered =
      what.moves.empty() && what.messages == nullptr && what.shape.kernel == gpu::Kernel::direct;
  last_.was_gpu(info);
  if (what.messages == nullptr) last_.was_posted(true);
  return {};
}

Result<std::shared_ptr<Operation>> Communicator::post_on_gpu(Call call) {
  GDRX_TRY(gpu_.path->check_mark(call.stream));  // before anything is in the graph
  void* stream = call.stream;
  if (stream == nullptr && gpu_.own_queue) {
    const auto before = GDRX_TRY(gpu_.path->mark(nullptr));
    stream = gpu_.path->own_stream();
    GDRX_TRY(before->hold(stream));
  }
  GDRX_TRY(launch_on_gpu(call, stream));
  auto operation = operation_of(std::move(call));
  auto mark = gpu_.path->mark(stream);
  if (!mark) return tl::unexpected(stop(std::move(mark).error(), true));
  operation->mark = std::move(*mark);
  return operation;
}

Result<bool> Communicator::reached(Operation& operation) {
  const std::lock_guard lock(endings_.marks);
  if (operation.end.done()) return true;
  auto reached = operation.mark->reached();
  if (!reached) {
    operation.error = stop(std::move(reached).error(), true);
    finish(operation);
    return true;
  }
  if (!*reached) return false;
  // A kernel that gave up has ended like any other.
  look_at_gpu();
  if (failure_.happened()) operation.error = failure_.error();
  finish(operation);
  return true;
}

Error Communicator::disagreement(const gpu::KernelError& failure, Rank other) const {
  if (failure.mine == failure.theirs &&
      failure.mine.kernel == static_cast<std::uint64_t>(gpu::Kernel::direct)) {
    return {Errc::invalid_argument,
            fmt::format("rank {}: call {} is on registered GPU memory, and rank {}'s buffers are "
                        "not at the same offsets of the same registrations: register on every "
                        "rank, in the same order, what a call uses, or on none",
                        index(rank_), failure.call, index(other))};
  }
  if (failure.mine.message) {
    return {Errc::mismatch, told_of_messages(other, failure.theirs.bytes, failure.theirs.type,
                                             rank_, failure.mine.bytes, failure.mine.type)};
  }
  if (differ_in_count(failure.mine, failure.theirs)) {
    const std::size_t element = size_of(failure.mine.type);
    return {Errc::mismatch,
            fmt::format("rank {}'s {} sends {} {} to rank {}, whose call expects {} from it: the "
                        "counts of a pair of ranks must agree",
                        index(other), to_string(failure.mine.collective),
                        failure.theirs.bytes / element, to_string(failure.mine.type), index(rank_),
                        failure.mine.bytes / element)};
  }
  if (failure.mine == failure.theirs && plan::traits_of(failure.mine.collective).has_parts()) {
    return {Errc::mismatch,
            fmt::format("rank {}'s counts of {} are not those of rank {}: all ranks must give the "
                        "same",
                        index(other), to_string(failure.mine.collective), index(rank_))};
  }
  const int ranks = gpu_.rails.ranks_of_host(size());
  return {Errc::mismatch,
          fmt::format("rank {} called {} on its GPU while rank {} called {}: all ranks must make "
                      "the same calls with the same arguments",
                      index(other), text_of(failure.theirs, ranks), index(rank_),
                      text_of(failure.mine, ranks))};
}

void Communicator::look_at_gpu() {
  if (!gpu_.path || failure_.happened()) return;
  const gpu::KernelError failure = gpu_.path->kernel_error();
  if (!failure.happened) return;
  const Rank late = gpu_.rails.rank_of(failure.peer);
  if (failure.disagrees) {
    stop(disagreement(failure, late), true);
    return;
  }
  stop(Error{Errc::timeout,
             fmt::format("rank {}: a GPU kernel (call {}) waited over {:g} s for rank {} while {}, "
                         "slot {}. That rank is alive: slow, stopped, or in another call "
                         "(GDRX_TIMEOUT sets the limit, or the call)",
                         index(rank_), failure.call, seconds(failure.timeout), index(late),
                         failure.stage, failure.slot),
             0},
       true);
}

}  // namespace gdrx

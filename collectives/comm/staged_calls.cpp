// SPDX-License-Identifier: Apache-2.0
// Calls of GPU memory that the host makes, in the order of their streams: into the stream, and what
// the host does when the stream has come to one.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "collectives/comm/communicator.hpp"
#include "collectives/comm/gpu_messages.hpp"
#include "collectives/comm/side.hpp"
#include "collectives/comm/stage.hpp"
#include "collectives/comm/staged_execution.hpp"
#include "gdrx/gdrx.h"
#include "transport/memory/cuda_memory.hpp"

namespace gdrx {
namespace {

/// Of a rank that has no byte in one the memory does not matter.
bool lies_on_gpu(const Call& call, const Buffers& buffers, const gpu::DeviceMemory& memory,
                 int ranks, Rank self) {
  const void* const from = has_side(call, false, ranks, self) ? call.input : nullptr;
  const void* const to = has_side(call, true, ranks, self) ? call.output : nullptr;
  if (from != nullptr && !buffers.is_gpu(from)) return false;
  if (to != nullptr && !buffers.is_gpu(to)) return false;
  return buffers.asked || memory.check_buffers(from, to).has_value();
}

std::vector<void*> streams_of(std::span<const Call* const> calls) {
  std::vector<void*> streams;
  for (const Call* call : calls) {
    const auto known = std::find(streams.begin(), streams.end(), call->stream);
    if (known == streams.end()) streams.push_back(call->stream);
  }
  return streams;
}

}  // namespace

// Others may make the call in another way: to the network it is the same.
bool Communicator::is_staged_in_stream(const Call& call, const Buffers& buffers) const {
  if (!gpu_.path || call.stream == nullptr || call.with_host_memory || !why_staged(call))
    return false;
  if (!choices_.can_carry(call)) {
    return false;
  }
  if (call.collective == Collective::send_recv && call.root == rank_) return false;
  // There other ranks' copies would stand behind this one's wait for them.
  if (gpu_.own_queue && call.stream == gdrxStreamDefault) return false;
  return lies_on_gpu(call, buffers, *gpu_.path, size(), rank_);
}

// CUDA may let it wait for a thread of this process that copies to memory which is not pinned, and
// so for the stream of that one: no lock of ours is held. Where it fails when the communicator is
// made, the first staged call says why.
Result<std::byte*> Communicator::pinned_of(std::uint64_t bytes) {
  const std::span<std::byte> pinned = GDRX_TRY(gpu_.path->staging(bytes));
  streams_.use_pinned(pinned);
  return pinned.data();
}

// As queue_on_hosts(): known to the host before it is in the stream.
Result<std::shared_ptr<Operation>> Communicator::stage(
    std::span<const Call* const> calls, bool is_waited_for,
    std::vector<std::shared_ptr<Operation>> waited) {
  if (failure_.happened()) return tl::unexpected(failure_.error());
  for (const Call* call : calls) {
    if (call->made && call->made->scalar_at != nullptr)
      GDRX_TRY(reach(call->made->scalar_at, nullptr));
  }
  const Call& first = *calls.front();
  const bool messages = first.collective == Collective::send_recv;
  const std::vector<void*> streams = streams_of(calls);
  const std::uint64_t capture = GDRX_TRY(gpu_.path->capture_of_all(streams));
  const bool captured = capture != 0;
  if (captured && is_waited_for) GDRX_TRY(gpu_.path->check_mark(first.stream));
  const auto take = [this](std::uint64_t bytes) { return pinned_of(bytes); };
  auto made = stage_of(calls, size(), rank_, take);
  if (!made) return tl::unexpected(captured ? made.error() : stop(std::move(made).error(), true));
  Stage& stage = *made;
  stage.work.streams = streams;
  stage.work.capture = capture;
  std::unique_lock lock(gpu_.mutex);
  std::shared_ptr<Operation> operation;
  if (captured) {
    stage.work.record.captured = 1;
    stage.work.record.staged = streams_.next_kept();
  } else {
    operation = std::make_shared<Operation>(messages ? first : std::move(stage.calls.front()),
                                            settings_.timeout_of(first));
    operation->on_hosts = operation->staged = true;
    if (messages) {
      operation->messages = std::make_unique<StagedMessages>(
          StagedMessages{std::move(stage.calls), std::move(waited), {}});
    }
    streams_.post(operation);
  }
  if (!messages) last_.was_posted(false);
  mesh_->wake();
  if (auto enqueued = gpu_.path->stage(stage.work); !enqueued) {
    lock.unlock();
    if (captured) return tl::unexpected(std::move(enqueued).error());
    return tl::unexpected(stop(std::move(enqueued).error(), true));
  }
  if (captured) {
    streams_.keep({messages, std::move(stage.calls), settings_.timeout_of(first)});
    streams_.in_graphs = true;
  }
  return operation;
}

Result<std::unique_ptr<exec::Execution>> Communicator::make_staged(Operation& operation) {
  streams_.register_pinned(network_.registrations());
  operation.info.staged = true;
  say_why_staged(operation.call);
  if (operation.call.op == ReduceOp::premul_sum) GDRX_TRY(scale_input(operation));
  return std::make_unique<StagedExecution>(GDRX_TRY(make_execution(operation)), *gpu_.flags);
}

void Communicator::begin_messages(std::shared_ptr<Operation> group) {
  streams_.messages = group;  // whatever fails from here on finds it
  streams_.register_pinned(network_.registrations());
  begin(*group);
  group->info.path = PathKind::fabric;
  group->info.staged = true;
  say_why_staged(group->call);
  for (const auto& one : group->messages->waited) one->begun = true;
  for (const Call& call : group->messages->calls) {
    auto message = std::make_shared<Operation>(call, group->timeout);
    message->own = true;
    group->messages->running.push_back(message);
    start_pair(message);
    if (failure_.happened()) return;
  }
}

// True: something was done.
bool Communicator::step_messages() {
  const std::shared_ptr<Operation> group = streams_.messages;
  if (!group || failure_.happened()) return false;
  StagedMessages& messages = *group->messages;
  if (!messages.ended) {
    messages.ended = std::all_of(messages.running.begin(), messages.running.end(),
                                 [](const auto& message) { return message->end.done(); });
    if (messages.ended) gpu_.flags->allow(gpu::WaitFlag::gather);
    return messages.ended;
  }
  if (gpu_.flags->count(gpu::Signal::gathered) == 0) {
    if (!progress_lock_.pace.is_time(kClockEvery)) return false;
    if (!group->deadline.passed(steady_clock().now())) return false;
    fail_by({Errc::timeout,
             fmt::format("rank {}: the GPU did not take what messages brought within {:g} s ({})",
                         index(rank_), seconds(group->timeout), whose_limit(group->call)),
             0});
    return true;
  }
  gpu_.flags->end();
  streams_.messages.reset();
  end_of_stream_call(*group);
  last_.was_host(group->info);
  for (const auto& one : messages.waited) finish(*one);
  finish(*group);
  return true;
}

}  // namespace gdrx

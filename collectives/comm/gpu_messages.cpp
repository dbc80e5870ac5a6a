// SPDX-License-Identifier: Apache-2.0
#include "collectives/comm/gpu_messages.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "collectives/comm/communicator.hpp"
#include "transport/memory/cuda_memory.hpp"

namespace gdrx {
namespace {

using gpu::Messages;

Messages::One one_of(const Call& call) {
  const Bytes bytes = call.count * size_of(call.type);
  const void* const at = call.sends ? call.input : call.output;
  return {call.root, const_cast<void*>(bytes > 0 ? at : nullptr), bytes, call.type};
}

Result<void> match_own(std::span<const Messages::One> sends,
                       std::span<const Messages::One> receives, Rank self, Messages& what) {
  if (sends.size() != receives.size()) {
    return fail(Errc::invalid_argument,
                fmt::format("rank {} sends {} messages to itself in a group that receives {}",
                            index(self), sends.size(), receives.size()));
  }
  for (std::size_t i = 0; i < sends.size(); ++i) {
    const Messages::One& from = sends[i];
    const Messages::One& to = receives[i];
    if (from.type != to.type || from.bytes != to.bytes) {
      return fail(Errc::mismatch,
                  told_of_messages(self, from.bytes, from.type, self, to.bytes, to.type));
    }
    if (from.bytes > 0) what.copies.push_back({from.at, to.at, from.bytes});
  }
  return {};
}

// The longest of them; 0: none.
std::chrono::milliseconds longer(std::chrono::milliseconds a, std::chrono::milliseconds b) {
  return a.count() == 0 || b.count() == 0 ? std::chrono::milliseconds{0} : std::max(a, b);
}

}  // namespace

std::string told_of_messages(Rank from, Bytes sent, DataType type, Rank to, Bytes expected,
                             DataType of_type) {
  return fmt::format(
      "rank {} sends {} {} to rank {}, whose receive is of {} {}: messages of a pair of ranks are "
      "matched in the order of their calls, and must have one count and type on both sides",
      index(from), sent / size_of(type), to_string(type), index(to), expected / size_of(of_type),
      to_string(of_type));
}

bool is_gpu_message(const Call& call, const Buffers& buffers) {
  if (call.collective != Collective::send_recv || call.stream == nullptr) return false;
  const void* const at = call.sends ? call.input : call.output;
  return call.count == 0 || buffers.is_gpu(at);
}

Result<Messages> messages_of(std::span<const Call* const> calls, Rank self) {
  Messages what;
  std::vector<Messages::One> own_sends, own_receives;
  for (const Call* call : calls) {
    const bool own = call->root == self;
    if (call->sends) {
      (own ? own_sends : what.sends).push_back(one_of(*call));
    } else {
      (own ? own_receives : what.receives).push_back(one_of(*call));
    }
    const auto known = std::find(what.streams.begin(), what.streams.end(), call->stream);
    if (known == what.streams.end()) what.streams.push_back(call->stream);
  }
  GDRX_TRY(match_own(own_sends, own_receives, self, what));
  return what;
}

Result<void> Communicator::launch_messages(std::span<const Call* const> calls) {
  if (failure_.happened()) return tl::unexpected(failure_.error());
  auto what = messages_of(calls, rank_);
  if (!what) return tl::unexpected(stop(std::move(what).error(), true));
  Bytes bytes = 0;
  for (const Call* call : calls) {
    if (call->count == 0) continue;
    GDRX_TRY(reach(call->input, call->output));
    bytes += call->count * size_of(call->type);
  }
  what->timeout =
      settings_.timeout_of(*calls.front());  // start_messages() gives all of a group the same
  GpuLaunch launch{"send and receive", bytes};
  launch.messages = &*what;
  return enqueue_launch(launch, what->streams.front());
}

Result<void> Communicator::start_messages(std::span<GroupMessage> all) {
  std::vector<const Call*> calls;
  std::chrono::milliseconds timeout = settings_.timeout_of(all.front().call);
  for (const GroupMessage& one : all) timeout = longer(timeout, settings_.timeout_of(one.call));
  for (GroupMessage& one : all) {
    one.call.timeout = timeout;  // one kernel has all of them
    if (one.waited && !gpu_.rails.hierarchy())
      GDRX_TRY(gpu_.path->check_mark(one.call.stream));  // before anything is in the graph
    calls.push_back(&one.call);
  }
  if (gpu_.rails.hierarchy()) return stage_messages(all, calls);
  GDRX_TRY(launch_messages(calls));
  for (GroupMessage& one : all) {
    if (!one.waited) continue;
    auto mark = gpu_.path->mark(one.call.stream);
    if (!mark) return tl::unexpected(stop(std::move(mark).error(), true));
    one.operation = operation_of(one.call);
    one.operation->mark = std::move(*mark);
  }
  return {};
}

// Between hosts.
Result<void> Communicator::stage_messages(std::span<GroupMessage> all,
                                          std::span<const Call* const> calls) {
  std::vector<std::shared_ptr<Operation>> waited;
  for (GroupMessage& one : all) {
    if (!one.waited) continue;
    one.operation = operation_of(one.call);
    one.operation->on_hosts = one.operation->staged = true;
    waited.push_back(one.operation);
  }
  const bool is_waited_for = !waited.empty();
  GDRX_TRY(stage(calls, is_waited_for, std::move(waited)));
  return {};
}

bool Communicator::keeps_own(const Call& call) const {
  if (!gpu_.path || call.with_host_memory || call.root != rank_ || !is_gpu_message(call))
    return false;
  return !pairs_ || pairs_->own_matched();
}

}  // namespace gdrx

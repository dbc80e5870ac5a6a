// SPDX-License-Identifier: Apache-2.0
#include "collectives/comm/stage.hpp"

#include <memory>
#include <utility>

#include "collectives/comm/gpu_messages.hpp"
#include "collectives/comm/side.hpp"
#include "gdrx/traits.hpp"

namespace gdrx {
namespace {

constexpr std::uint64_t kAlignment = 256;

/// A call with its place in host memory.
struct Placed {
  Call call;
  Side input, output;
  std::uint64_t input_at = 0, output_at = 0, scalar_at = 0;
  bool keeps_output = false;
};

std::uint64_t place(const Side& side, std::size_t element, std::uint64_t& end) {
  const std::uint64_t at = end;
  end += (side.end() * element + kAlignment - 1) / kAlignment * kAlignment;
  return at;
}

bool has_scalar_on_gpu(const Call& call) noexcept {
  return call.made && call.made->scalar_at != nullptr;
}

/// The operator, with a scalar that is copied to the host before each call.
void stage_scalar(Call& call, std::byte* host, Stage& stage) {
  auto made = std::make_shared<MadeOperator>(*call.made);
  stage.work.in.push_back({made->scalar_at, host, size_of(made->type)});
  made->scalar_at = host;
  call.made = std::move(made);
}

/// The root of a broadcast in place has its result already.
bool keeps_buffer(const Call& call, const Side& input) {
  return call.collective == Collective::broadcast && call.input == call.output && input.end() > 0;
}

void stage(const Placed& placed, std::byte* host, Stage& stage) {
  Call call = placed.call;
  const std::size_t element = size_of(call.type);
  std::byte* const input = host + placed.input_at;
  std::byte* const output = host + placed.output_at;
  for (const exec::Range& run : placed.input.runs) {
    const std::uint64_t at = run.begin * element;
    if (run.count > 0) stage.work.in.push_back({call.input + at, input + at, run.count * element});
  }
  for (const exec::Range& run : placed.output.runs) {
    const std::uint64_t at = run.begin * element;
    if (run.count > 0 && !placed.keeps_output)
      stage.work.out.push_back({output + at, call.output + at, run.count * element});
  }
  if (has_scalar_on_gpu(call)) stage_scalar(call, host + placed.scalar_at, stage);
  if (placed.input.end() > 0) call.input = input;
  if (placed.output.end() > 0) call.output = output;
  call.stream = nullptr;
  stage.calls.push_back(std::move(call));
}

}  // namespace

Result<Stage> stage_of(std::span<const Call* const> calls, int ranks, Rank self,
                       const TakeHostMemory& take) {
  Stage all;
  std::vector<Placed> placed;
  std::uint64_t end = 0;
  if (calls.front()->collective == Collective::send_recv) {
    gpu::Messages messages = GDRX_TRY(messages_of(calls, self));
    all.work.in = std::move(messages.copies);
  }
  for (const Call* call : calls) {
    if (call->collective == Collective::send_recv && call->root == self) continue;
    Side input = GDRX_TRY(side_of(*call, false, ranks, self));
    Side output = GDRX_TRY(side_of(*call, true, ranks, self));
    Placed one{*call, std::move(input), std::move(output)};
    one.input_at = place(one.input, size_of(call->type), end);
    one.output_at = one.input_at;
    if (keeps_buffer(*call, one.input)) {
      one.keeps_output = true;
    } else {
      one.output_at = place(one.output, size_of(call->type), end);
    }
    if (has_scalar_on_gpu(*call)) {
      one.scalar_at = end;
      end += kAlignment;
    }
    placed.push_back(std::move(one));
  }
  std::byte* const host = end > 0 ? GDRX_TRY(take(end)) : nullptr;
  for (const Placed& one : placed) stage(one, host, all);
  return all;
}

}  // namespace gdrx

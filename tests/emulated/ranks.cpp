// SPDX-License-Identifier: Apache-2.0
#include "tests/emulated/ranks.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "collectives/gpu/lowering.hpp"
#include "collectives/gpu/signature.hpp"
#include "collectives/kernels/launch.hpp"

namespace gdrx::emulated {
namespace {

constexpr int kGpus = 8;

template <class T>
T must(Result<T> result) {
  if (result) return std::move(*result);
  std::fprintf(stderr, "%s\n", describe(result.error()).c_str());
  std::abort();
}

gpu::Pack* slots_of(std::uint8_t* arena) {
  return reinterpret_cast<gpu::Pack*>(arena + gpu::kSlotsAt);
}

}  // namespace

void Ranks::Free::operator()(std::uint8_t* memory) const { std::free(memory); }

Ranks::Ranks(int ranks, int gpus, double timeout_s)
    : timeouts_(static_cast<std::size_t>(ranks), timeout_s),
      launched_(static_cast<std::size_t>(ranks), 0) {
  std::vector<gpu::Ticket> tickets;
  for (int r = 0; r < ranks; ++r) {
    auto* arena = static_cast<std::uint8_t*>(std::aligned_alloc(4096, gpu::kArenaBytes));
    std::memset(arena, 0, gpu::kSlotsAt);
    std::fill_n(slots_of(arena), gpu::kSlots, gpu::Pack{gpu::kSentinelLow, gpu::kSentinelHigh});
    arenas_.emplace_back(arena);
    reports_.push_back(std::make_unique<gpu::Report>());
    cudaSetDevice(r % kGpus);
    cudaStreamCreateWithFlags(&streams_.emplace_back(), cudaStreamNonBlocking);
    tickets.emplace_back().bus = static_cast<std::uint32_t>(r % gpus);
  }
  positions_ = gpu::positions_of(tickets);
}

Ranks::~Ranks() {
  finish();
  for (cudaStream_t stream : streams_) cudaStreamDestroy(stream);
}

void Ranks::pretend_to_enter(int r, const gpu::Shape& shape, DataType type, ReduceOp op,
                             std::uint64_t bytes) {
  gpu::DirectCall call = call_of(r, op, nullptr, nullptr, bytes);
  call.type = static_cast<std::int32_t>(type);
  const std::uint64_t first = gpu::signature_of(call, shape, 0) | 1;
  for (const auto& arena : arenas_) {
    reinterpret_cast<gpu::Control*>(arena.get())->entered[0][r] = {first, bytes};
  }
}

void Ranks::finish() const {
  for (cudaStream_t stream : streams_) cudaStreamSynchronize(stream);
}

gpu::DirectCall Ranks::call_of(int r, ReduceOp op, const void* input, void* output,
                               std::uint64_t bytes) const {
  gpu::DirectCall call;
  call.input = input;
  call.output = output;
  call.bytes = bytes;
  for (std::size_t i = 0; i < arenas_.size(); ++i) call.arena[i] = arenas_[i].get();
  call.report = reports_[static_cast<std::size_t>(r)].get();
  call.timeout_ns = static_cast<std::uint64_t>(timeouts_[static_cast<std::size_t>(r)] * 1e9);
  call.rank = r;
  call.ranks = size();
  call.op = static_cast<std::int32_t>(op);
  call.finish_over = op == ReduceOp::avg ? size() : 0;
  call.ring = must(gpu::ring_place(positions_, Rank{r}));
  for (int tree = 0; tree < 2; ++tree) {
    call.trees[tree] = must(gpu::tree_place(positions_, Rank{r}, tree));
  }
  return call;
}

void Ranks::enqueue(int r, const gpu::Shape& shape, DataType type, const gpu::DirectCall& call) {
  gpu::DirectCall typed = call;
  typed.type = static_cast<std::int32_t>(type);
  typed.signature = gpu::signature_of(typed, shape, typed.place);
  cudaSetDevice(r % kGpus);
  const auto at = static_cast<std::size_t>(r);
  const int launched = launched_[at];
  const auto enqueued = launched > 0 && launched < shape.blocks
                            ? gpu::launch_in_turns(typed, shape, launched, streams_[at])
                            : gpu::launch_of(typed)(typed, shape, streams_[at]);
  if (enqueued == cudaSuccess) return;
  std::fprintf(stderr, "no such kernel\n");
  std::abort();
}

void Ranks::launch(int r, const gpu::Shape& shape, DataType type, ReduceOp op, const void* input,
                   void* output, std::uint64_t bytes, std::uint64_t block) {
  gpu::DirectCall call = call_of(r, op, input, output, bytes);
  call.block = block;
  enqueue(r, shape, type, call);
}

void Ranks::launch_direct(const gpu::Shape& shape, DataType type, ReduceOp op,
                          const std::vector<std::vector<std::uint32_t>>& inputs,
                          std::vector<std::vector<std::uint32_t>>& outputs,
                          const std::vector<std::uint64_t>& places) {
  for (int r = 0; r < size(); ++r) {
    const auto at = static_cast<std::size_t>(r);
    gpu::DirectCall call = call_of(r, op, inputs[at].data(), outputs[at].data(),
                                   inputs[at].size() * sizeof(std::uint32_t));
    call.place = places[at];
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      call.inputs[i] = reinterpret_cast<const std::uint8_t*>(inputs[i].data());
      call.outputs[i] = reinterpret_cast<std::uint8_t*>(outputs[i].data());
    }
    enqueue(r, shape, type, call);
  }
}

std::uint64_t Ranks::full_slots() const {
  std::uint64_t full = 0;
  for (const auto& arena : arenas_) {
    for (std::uint32_t i = 0; i < gpu::kSlots; ++i) {
      const gpu::Pack pack = slots_of(arena.get())[i];
      if (pack.low != gpu::kSentinelLow || pack.high != gpu::kSentinelHigh) ++full;
    }
  }
  return full;
}

}  // namespace gdrx::emulated

// SPDX-License-Identifier: Apache-2.0
// What calls are predicted to take.
#include <algorithm>

#include "collectives/comm/communicator.hpp"
#include "collectives/comm/gpu_moves.hpp"
#include "collectives/comm/parts.hpp"
#include "gdrx/traits.hpp"

namespace gdrx {
namespace {

// Of what is staged: copies over PCIe 5, there and back, and what the host and the GPU take to tell
// each other. A model's: nothing is chosen by it.
constexpr double kStagedStart = 20;
constexpr double kStagedByte = 1 / 25e3;

Bytes bytes_of(const std::vector<exec::Part>& parts, std::size_t element, Rank self) {
  Bytes bytes = 0;
  for (const exec::Part& part : parts) {
    if (part.peer != self) bytes += part.range.count * element;
  }
  return bytes;
}

BothWays both_ways_of(const gpu::Moves& what, Rank self) {
  BothWays all;
  for (std::size_t rank = 0; rank < what.sends.size(); ++rank) {
    if (rank == static_cast<std::size_t>(index(self))) continue;
    all.out += what.sends[rank].bytes;
    all.in += what.receives[rank].bytes;
  }
  return all;
}

// A kernel that reads and writes a GPU's own memory.
double scaling_us(Bytes bytes) { return 2 + static_cast<double>(bytes) / 1.2e6; }

}  // namespace

// Where all ranks get a vector that is passed on, no link carries it more than once.
double Communicator::kernel_us(const Call& call) const {
  const Bytes bytes = call.count * size_of(call.type);
  const auto others = static_cast<Bytes>(size() - 1);
  if (call.collective == Collective::barrier) return gpu::best(gpu_.host, sizeof(float)).us;
  if (by_blocks(call.collective)) {
    return gpu::move_us(gpu_.host, others * bytes);
  }
  if (goes_by_moves(call, choices_.fixed.has_value(), size())) {
    const bool once = call.collective == Collective::broadcast && passes_on(bytes, size());
    const Bytes longest =
        once ? bytes : both_ways_of(moves_of(call, rank_, size()), rank_).longest();
    return gpu::move_us(gpu_.host, longest);
  }
  return gpu_choice(call).us;
}

double Communicator::between_hosts_us(Bytes bytes) const {
  const Pieces pieces = pieces_of(std::max<Bytes>(bytes, 1));
  const Machine rail = rail_machine();
  double network = 0;
  if (gpu_.rails.direct() != nullptr) {
    network = direct_rail_us(rail, pieces, choices_.of_rail());
  } else if (const auto choice = choose_rail(rail, pieces, choices_.fixed)) {
    network = choice->chosen.predicted_us;
  }
  const auto kernels = gpu::prediction_of(gpu::Kernel::two_shot, gpu_.host, pieces.piece(0).bytes);
  return network + (gpu_.host.ranks > 1 && kernels ? kernels->us : 0);
}

double Communicator::host_us(const Call& call) const {
  const Question question = choices_.question_of(call);
  if (const auto one = choose_one_block(choices_.machine, question)) return one->predicted_us;
  if (plan::traits_of(call.collective).by_messages()) {
    const std::size_t element = size_of(call.type);
    return messages_us(choices_.machine, std::max(bytes_of(call.parts->sends, element, rank_),
                                                  bytes_of(call.parts->receives, element, rank_)));
  }
  const auto choice = choose(choices_.machine, question.collective, question.bytes, question.fixed,
                             question.in_rank_order);
  return choice ? choice->chosen.predicted_us : 0;
}

double Communicator::predicted_us(const Call& call) const {
  if (size() == 1) return 0;
  const Bytes bytes = call.count * size_of(call.type);
  switch (route_of(call)) {
    case Route::nothing:
      return 0;
    case Route::gpu_kernel:
      return kernel_us(call) + (call.op == ReduceOp::premul_sum ? scaling_us(bytes) : 0);
    case Route::gpu_hosts:
      return between_hosts_us(bytes);
    case Route::staged:
      return kStagedStart + 2 * static_cast<double>(bytes) * kStagedByte + host_us(call);
    case Route::undecided:
    case Route::host:
      break;
  }
  return host_us(call);
}

double Communicator::predicted_us(const BothWays& messages) const {
  if (messages.gpu) return gpu::move_us(gpu_.host, messages.longest());
  return messages_us(choices_.machine, messages.longest());
}

}  // namespace gdrx

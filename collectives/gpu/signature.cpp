// SPDX-License-Identifier: Apache-2.0
#include "collectives/gpu/signature.hpp"

#include "collectives/gpu/path.hpp"

namespace gdrx::gpu {
namespace {

// A signature: what is called, then a digest of all that the ranks' kernels have in common. The
// kernel puts the call's number below it.
constexpr int kKernelBits = 4;
constexpr int kTypeBits = 5;
constexpr int kOperatorBits = 4;
constexpr int kCollectiveBits = 5;
constexpr int kRootBits = 4;
constexpr int kKernelAt = kNumberBits;
constexpr int kTypeAt = kKernelAt + kKernelBits;
constexpr int kOperatorAt = kTypeAt + kTypeBits;
constexpr int kCollectiveAt = kOperatorAt + kOperatorBits;
constexpr int kRootAt = kCollectiveAt + kCollectiveBits;
constexpr int kDigestAt = kRootAt + kRootBits;
constexpr std::uint64_t kMessageKernel = 13;  // no Kernel, as the next two
constexpr std::uint64_t kRelayKernel = 14;
constexpr std::uint64_t kMoveKernel = 15;
static_assert(kDataTypeCount <= 1 << kTypeBits && kReduceOpCount <= 1 << kOperatorBits);
static_assert(kCollectiveCount <= 1 << kCollectiveBits && kMaxRanks <= 1 << kRootBits);

// The finalizer of SplitMix64: every bit of the input changes half of the output's.
std::uint64_t mixed(std::uint64_t value) {
  value ^= value >> 30;
  value *= 0xbf58476d1ce4e5b9;
  value ^= value >> 27;
  value *= 0x94d049bb133111eb;
  return value ^ value >> 31;
}

std::uint64_t digest_of(const Call& call, std::uint64_t grid, std::uint64_t place) {
  std::uint64_t digest = 0;
  for (const std::uint64_t part : {call.bytes, call.block, place, grid}) {
    digest = mixed(digest + part + 0x9e3779b97f4a7c15);
  }
  return digest;
}

std::uint64_t bits(std::uint64_t value, int count, int at) {
  return (value & ((std::uint64_t{1} << count) - 1)) << at;
}

std::uint64_t taken(std::uint64_t word, int count, int at) {
  return word >> at & ((std::uint64_t{1} << count) - 1);
}

Collective collective_of(std::uint64_t kernel) {
  if (kernel == static_cast<std::uint64_t>(Kernel::all_gather)) return Collective::all_gather;
  if (kernel == static_cast<std::uint64_t>(Kernel::reduce_scatter)) {
    return Collective::reduce_scatter;
  }
  return Collective::all_reduce;
}

struct Named {
  std::uint64_t kernel = 0;
  Collective collective{};
  std::int32_t type = 0;
  std::int32_t op = 0;
  Rank root{};
};

std::uint64_t signature(const Named& what, std::uint64_t digest) {
  return bits(what.kernel, kKernelBits, kKernelAt) |
         bits(static_cast<std::uint64_t>(what.type), kTypeBits, kTypeAt) |
         bits(static_cast<std::uint64_t>(what.op), kOperatorBits, kOperatorAt) |
         bits(static_cast<std::uint64_t>(what.collective), kCollectiveBits, kCollectiveAt) |
         bits(static_cast<std::uint64_t>(index(what.root)), kRootBits, kRootAt) |
         digest << kDigestAt;
}

}  // namespace

// Ranks of a one-shot call that is no tiled one may differ in their grids, but in turns: there all
// have worked them out from what they have agreed on.
std::uint64_t signature_of(const Call& call, const Shape& shape, std::uint64_t place,
                           Collective collective, Rank root) {
  const bool any_grid = shape.kernel == Kernel::one_shot && !shape.tiled;
  const std::uint64_t grid = any_grid ? 0
                                      : static_cast<std::uint64_t>(shape.blocks) << 32 |
                                            static_cast<std::uint64_t>(shape.threads) << 8 |
                                            static_cast<std::uint64_t>(shape.unroll) << 2 |
                                            static_cast<std::uint64_t>(shape.whole) << 1 |
                                            static_cast<std::uint64_t>(shape.tiled);
  const auto kernel = static_cast<std::uint64_t>(shape.kernel);
  if (collective == Collective::all_reduce) collective = collective_of(kernel);
  return signature({kernel, collective, call.type, call.op, root}, digest_of(call, grid, place));
}

std::uint64_t signature_of_relay(const Call& call) {
  return signature({kRelayKernel, Collective::all_reduce, call.type, call.op},
                   digest_of(call, 0, 0));
}

std::uint64_t signature_of_move(const MoveCall& call, const Moves& what) {
  const std::uint64_t how = std::uint64_t{call.channels.count} << 1 | (what.passes_on ? 1 : 0);
  return signature({kMoveKernel, what.collective, call.type, call.op, what.root}, mixed(how));
}

std::uint64_t signature_of_message(DataType type) {
  return signature({kMessageKernel, Collective::send_recv, static_cast<std::int32_t>(type)}, 0);
}

Called called_of(const Pack& words) {
  Called called;
  called.kernel = taken(words.low, kKernelBits, kKernelAt);
  called.moves = called.kernel == kMoveKernel;
  called.message = called.kernel == kMessageKernel;
  called.root = static_cast<std::int32_t>(taken(words.low, kRootBits, kRootAt));
  const std::uint64_t collective = taken(words.low, kCollectiveBits, kCollectiveAt);
  if (collective < kCollectiveCount) called.collective = static_cast<Collective>(collective);
  const std::uint64_t type = taken(words.low, kTypeBits, kTypeAt);
  const std::uint64_t op = taken(words.low, kOperatorBits, kOperatorAt);
  if (type < kDataTypeCount) called.type = static_cast<DataType>(type);
  if (op < kReduceOpCount) called.op = static_cast<ReduceOp>(op);
  called.bytes = words.high;
  return called;
}

}  // namespace gdrx::gpu

// SPDX-License-Identifier: Apache-2.0
// A collective algorithm as data: for each rank and channel a program of six primitives over
// chunks. Size-free: a chunk is the c-th of equal parts of a buffer; the executor runs the same
// program once for each slice of the chunks. Pure: no I/O, no clock, no transport.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gdrx/result.hpp"
#include "gdrx/types.hpp"

namespace gdrx::plan {

/// A row each of collectives.def. Goes over the wire in the call signature.
enum class Algorithm : std::uint8_t {
#define GDRX_ALGORITHM(value, name) value,
#include "gdrx/collectives.def"
};
inline constexpr std::array kAlgorithmNames{
#define GDRX_ALGORITHM(value, name) std::string_view(name),
#include "gdrx/collectives.def"
};
std::string_view to_string(Algorithm algorithm) noexcept;  // "halving-doubling"
std::optional<Algorithm> parse_algorithm(std::string_view name) noexcept;

enum class OpKind : std::uint8_t {
  send,         // message of src to peer
  recv_copy,    // dst = message from peer
  recv_reduce,  // dst = src (op) message from peer
  copy,         // dst = src
  reduce,       // dst = dst (op) src, both local
  wait,         // until this channel's earlier sends that read src's chunk have completed
};

enum class Buffer : std::uint8_t { input, output, scratch };

/// `count` chunks that follow each other, as one message or one local op. Scratch chunks do not lie
/// beside each other in memory, so a range of them is refused.
struct ChunkRef {
  Buffer buffer = Buffer::input;
  std::uint32_t chunk = 0;
  std::uint32_t like = 0;  // scratch: the input chunk whose length it has
  std::uint32_t count = 1;
  friend bool operator==(const ChunkRef&, const ChunkRef&) = default;
};

struct Op {
  OpKind kind = OpKind::send;
  bool finish = false;  // this op completes the chunk's reduction (avg divides here)
  Rank peer{};          // send, recv_copy, recv_reduce
  ChunkRef src;         // send, recv_reduce, copy, reduce, wait
  ChunkRef dst;         // recv_copy, recv_reduce, copy, reduce
  friend bool operator==(const Op&, const Op&) = default;
};

using Channel = std::vector<Op>;

/// One rank's part. Channels run independently of each other; inside a channel ops start in order,
/// and the k-th message of a channel from a to b is the k-th send there and the k-th receive here.
struct RankProgram {
  std::vector<Channel> channels;
  std::uint32_t scratch_chunks = 0;
  friend bool operator==(const RankProgram&, const RankProgram&) = default;
};

inline constexpr std::int32_t kMostLeaves = 65'536;  // of all ranks
/// Of the rank that has the most, times the ranks: a program has an operation for each.
inline constexpr std::int64_t kMostLeafParts = 1 << 20;

/// Which algorithm for which collective: the plan's identity.
struct Spec {
  Collective collective = Collective::all_reduce;
  Algorithm algorithm = Algorithm::ring;
  std::int32_t ranks = 1;
  Rank root{};  // broadcast and reduce
  /// all_reduce_leaves: how many leaves each rank holds, in the order of ranks. Empty: one each.
  std::vector<std::int32_t> leaves = {};
  friend bool operator==(const Spec&, const Spec&) = default;
};

/// How the buffers are cut. all_reduce: input and output both have `chunks` parts of the same
/// vector. reduce_scatter: the input has one chunk a rank, the output one. all_gather: the reverse.
/// broadcast, reduce, barrier: as all_reduce. all_reduce_leaves: the output as all_reduce, the
/// input so many chunks for each leaf of the rank that has the most.
struct Shape {
  std::uint32_t input_chunks = 1;
  std::uint32_t output_chunks = 1;
  std::uint32_t channels = 1;
  std::uint32_t credits = 1;  // messages that may wait unconsumed between two ranks on a channel
  friend bool operator==(const Shape&, const Shape&) = default;
};

struct Plan {
  Spec spec;
  Shape shape;
  std::vector<RankProgram> ranks;
};

std::span<const Algorithm> algorithms_of(Collective collective) noexcept;
/// Those that algorithms_of() has algorithms for.
std::vector<Collective> collectives_with_plans();
/// Whether it reduces in absolute rank order, whatever the size. verify() proves it.
bool in_rank_order(Collective collective, Algorithm algorithm) noexcept;

/// Of any Shape: what an executor has to run beside each other.
inline constexpr std::uint32_t kMostChannels = 2;
/// Whether a plan can have these: one number a rank. Errc::invalid_argument says why not.
Result<void> check_leaves(const std::vector<std::int32_t>& leaves, std::int32_t ranks);
Result<Shape> shape_of(const Spec& spec);
/// One rank's own program, without building the others': milliseconds at 100,000 ranks.
Result<RankProgram> build_rank(const Spec& spec, Rank rank);
Result<Plan> build(const Spec& spec);

/// The same program with a message a chunk: for an executor that cuts chunks into slices, which do
/// not lie beside each other. A send and a receive of other chunks after it are an exchange and
/// alternate, so that no more credits are needed than before.
RankProgram split_ranges(const RankProgram& program);

/// Messages of one rank's program: what the executor's counters are compared with.
struct Traffic {
  std::uint64_t sends = 0;
  std::uint64_t receives = 0;
};
Traffic traffic_of(const RankProgram& program) noexcept;

/// What verify() proved.
struct Proof {
  std::uint64_t messages = 0;  // all ranks
};

/// Proves, by symbolic execution, for out-of-place and in-place buffers: well formed; sends and
/// receives match; no deadlock at the declared credits; each output chunk holds every contribution
/// exactly once, in the same order of reduction on every rank; `finish` exactly where a reduction
/// completes; direct algorithms reduce in rank order; no input is modified out of place; and, up to
/// kCausalRanks ranks, by vector clocks: nothing overwrites a chunk that an unfinished send may
/// still read, in any schedule, and channels of a rank do not race. Errc::invalid_argument says
/// which op of which rank.
inline constexpr std::int32_t kCausalRanks = 64;
Result<Proof> verify(const Plan& plan);

}  // namespace gdrx::plan

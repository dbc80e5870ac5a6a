// SPDX-License-Identifier: Apache-2.0
// Calls of GPU memory that the host makes, in streams: what each rank has, calls and then has.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "collectives/comm/parts.hpp"
#include "gdrx/traits.hpp"
#include "tests/gpu/hosts.hpp"

namespace gdrx::gpu {

using Words = std::vector<std::uint32_t>;

/// A collective of uint32, sums, root 1.
struct StagedCase {
  Collective collective{};
  std::uint64_t count = 0;  // of elements, as the API's function defines it, or about that of parts
  std::uint32_t round = 0;  // other numbers in each
  bool in_place = false;

  std::string name() const {
    return std::string(to_string(collective)) + ", " + std::to_string(count);
  }
};

inline constexpr std::uint32_t kUntouched = 0xa5a5a5a5;

/// Elements from rank `from` to rank `to`, where parts differ; some are empty.
inline std::uint64_t part_count(const StagedCase& what, int from, int to) {
  return (from + to) % 3 == 2 ? 0 : what.count + static_cast<std::uint64_t>(2 * from + to);
}

inline Words input_of(const StagedCase& what, int rank, std::uint64_t elements) {
  Words words(elements);
  for (std::uint64_t i = 0; i < elements; ++i) {
    words[i] = static_cast<std::uint32_t>(rank + 1) * 1'000'003 +
               static_cast<std::uint32_t>(i) * 7 + what.round * 7919;
  }
  return words;
}

/// The collective's call of a rank, without its buffers and stream. Parts have a gap of 3 behind
/// each.
gdrx::Call staged_call(const StagedCase& what, int rank, int ranks);

/// What the rank has in the beginning of its output afterwards, kUntouched in gaps and behind.
Words expected_of(const StagedCase& what, int rank, int ranks);

/// As the C API decides: 0 if it was enqueued.
inline Result<void> call_api(Communicator& comm, gdrx::Call call) {
  add_parts(call, comm.rank(), comm.size());
  if (call.stream != nullptr && comm.runs_in_stream(call)) return comm.launch(call);
  return comm.run(call);
}

}  // namespace gdrx::gpu

// SPDX-License-Identifier: Apache-2.0
#include "collectives/exec/partition.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace gdrx::exec {
namespace {

RC_GTEST_PROP(Partition, ChunksCoverEachElementOnce, ()) {
  const auto elements = *rc::gen::inRange<std::uint64_t>(0, 100'000);
  const auto chunks = *rc::gen::inRange<std::uint32_t>(1, 200);
  const Partition partition{elements, chunks};
  std::uint64_t next = 0;
  for (std::uint32_t c = 0; c < chunks; ++c) {
    const Range range = partition.chunk(c);
    RC_ASSERT(range.begin == next);
    RC_ASSERT(range.count <= partition.longest());
    RC_ASSERT(range.count + 1 >= partition.longest());
    next += range.count;
  }
  RC_ASSERT(next == elements);
}

RC_GTEST_PROP(Partition, SlicesCoverAChunkOnceAndEndEmpty, ()) {
  const auto elements = *rc::gen::inRange<std::uint64_t>(0, 10'000);
  const auto chunks = *rc::gen::inRange<std::uint32_t>(1, 20);
  const auto per_slice = *rc::gen::inRange<std::uint64_t>(1, 500);
  const Partition partition{elements, chunks};
  const auto c = *rc::gen::inRange<std::uint32_t>(0, chunks);
  std::uint64_t next = partition.chunk(c).begin;
  const std::uint64_t slices = (partition.longest() + per_slice - 1) / per_slice;
  for (std::uint64_t s = 0; s < slices; ++s) {
    const Range range = partition.slice(c, s, per_slice);
    if (range.count > 0) RC_ASSERT(range.begin == next);
    next += range.count;
  }
  RC_ASSERT(next == partition.chunk(c).begin + partition.chunk(c).count);
  RC_ASSERT(partition.slice(c, slices + 3, per_slice).count == 0u);
}

RC_GTEST_PROP(Partition, ChunksBesideEachOtherAreOneRange, ()) {
  const Partition partition{*rc::gen::inRange<std::uint64_t>(0, 10'000),
                            *rc::gen::inRange<std::uint32_t>(1, 20)};
  const auto c = *rc::gen::inRange<std::uint32_t>(0, partition.chunks);
  const auto count = *rc::gen::inRange<std::uint32_t>(1, partition.chunks - c + 1);
  std::uint64_t elements = 0;
  for (std::uint32_t i = 0; i < count; ++i) elements += partition.chunk(c + i).count;
  RC_ASSERT(partition.chunks_from(c, count).begin == partition.chunk(c).begin);
  RC_ASSERT(partition.chunks_from(c, count).count == elements);
}

}  // namespace
}  // namespace gdrx::exec

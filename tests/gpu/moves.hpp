// SPDX-License-Identifier: Apache-2.0
// Calls that only move bytes, between all ranks of a Ranks, and whether every byte came.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <vector>

#include "tests/gpu/ranks.hpp"

namespace gdrx::gpu {

/// Bytes from each rank to each: bytes[from][to].
using Matrix = std::vector<std::vector<std::uint64_t>>;

inline Matrix matrix(int ranks, const std::function<std::uint64_t(int from, int to)>& bytes) {
  Matrix made(static_cast<std::size_t>(ranks));
  for (int from = 0; from < ranks; ++from) {
    for (int to = 0; to < ranks; ++to) {
      made[static_cast<std::size_t>(from)].push_back(bytes(from, to));
    }
  }
  return made;
}

/// What one call moves, and where: runs lie one behind another, `gap` bytes between two of them.
struct Traffic {
  Matrix bytes;
  std::uint64_t gap = 0;
  std::uint64_t shift = 0;  // by which the buffers are off their alignment
  bool in_place = false;    // the matrix is then its own mirror image

  std::uint64_t of(int from, int to) const {
    return bytes[static_cast<std::size_t>(from)][static_cast<std::size_t>(to)];
  }
  Moves moves(const Ranks& ranks, int r) const {
    Moves what;
    what.collective = Collective::all_to_all_v;
    what.type = DataType::byte;
    what.output = ranks.out(r) + shift;
    what.input = in_place ? what.output : ranks.in(r) + shift;
    std::uint64_t out = 0, in = 0;
    for (int p = 0; p < ranks.size(); ++p) {
      what.sends[static_cast<std::size_t>(p)] = {out, of(r, p)};
      what.receives[static_cast<std::size_t>(p)] = {in, of(p, r)};
      out += of(r, p) + gap;
      in += of(p, r) + gap;
    }
    return what;
  }
};

inline std::byte byte_of(int from, int to, std::uint64_t i, std::uint64_t seed) {
  std::uint64_t mixed = (i / 8 + 1) * 0x9e3779b97f4a7c15 ^ seed * 0xbf58476d1ce4e5b9;
  mixed += static_cast<std::uint64_t>(from * 16 + to) << 32;
  mixed ^= mixed >> 29;
  return static_cast<std::byte>(mixed >> i % 8 * 8);
}

inline void copy_to(const Ranks& ranks, int r, void* to, const void* from, std::uint64_t bytes) {
  ranks.use(r);
  if (bytes > 0) must(cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice), "copy");
  must(cudaDeviceSynchronize(), "copy");
}

constexpr std::byte kPoison{0xa5};
constexpr std::uint64_t kGuard = 64;

/// Fills both buffers of a rank.
inline void prepare(const Ranks& ranks, int r, const Traffic& traffic, std::uint64_t seed) {
  const Moves what = traffic.moves(ranks, r);
  std::uint64_t end = 0, out_end = 0;
  for (std::size_t p = 0; p < static_cast<std::size_t>(ranks.size()); ++p) {
    end = what.sends[p].at + what.sends[p].bytes;
    out_end = what.receives[p].at + what.receives[p].bytes;
  }
  std::vector<std::byte> output(traffic.shift + std::max(end, out_end) + kGuard, kPoison);
  std::vector<std::byte> input(output.size(), std::byte{0x3c});
  for (int p = 0; p < ranks.size(); ++p) {
    const Run& run = what.sends[static_cast<std::size_t>(p)];
    for (std::uint64_t i = 0; i < run.bytes; ++i) {
      (traffic.in_place ? output : input)[traffic.shift + run.at + i] = byte_of(r, p, i, seed);
    }
  }
  copy_to(ranks, r, ranks.in(r), input.data(), input.size());
  copy_to(ranks, r, ranks.out(r), output.data(), output.size());
}

/// Every byte of every run, and none beside them.
inline void check(const Ranks& ranks, int r, const Traffic& traffic, std::uint64_t seed) {
  const Moves what = traffic.moves(ranks, r);
  std::uint64_t end = 0;
  for (std::size_t p = 0; p < static_cast<std::size_t>(ranks.size()); ++p) {
    end = what.receives[p].at + what.receives[p].bytes;
  }
  std::vector<std::byte> got(traffic.shift + end + kGuard);
  std::vector<std::byte> expected(got.size(), kPoison);
  for (int p = 0; p < ranks.size(); ++p) {
    const Run& run = what.receives[static_cast<std::size_t>(p)];
    for (std::uint64_t i = 0; i < run.bytes; ++i) {
      expected[traffic.shift + run.at + i] = byte_of(p, r, i, seed);
    }
  }
  ranks.use(r);
  must(cudaMemcpy(got.data(), ranks.out(r), got.size(), cudaMemcpyDeviceToHost), "copy");
  const auto wrong = std::mismatch(got.begin(), got.end(), expected.begin());
  EXPECT_TRUE(wrong.first == got.end())
      << "rank " << r << " of " << ranks.size() << ", byte " << wrong.first - got.begin();
}

inline void move(const Ranks& ranks, const Traffic& traffic, std::uint64_t seed) {
  for (int r = 0; r < ranks.size(); ++r) prepare(ranks, r, traffic, seed);
  for (int r = 0; r < ranks.size(); ++r) {
    ranks.use(r);
    must(ranks.path(r).move(traffic.moves(ranks, r), ranks.host().blocks, ranks.stream(r)));
  }
  ranks.synchronize();
  for (int r = 0; r < ranks.size(); ++r) check(ranks, r, traffic, seed);
}

}  // namespace gdrx::gpu

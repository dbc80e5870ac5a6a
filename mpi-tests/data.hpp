// SPDX-License-Identifier: Apache-2.0
// Inputs whose reduction is exact in every order, and the reference they are checked against.
//
// Integers: random bits, wrapping. float and double: small whole numbers. half, bfloat16: -3 to 3.
// float8: -1, 0, 1, on four ranks of each element only, so that partial sums stay exact. prod of
// floats: signs, and one factor 2; of complex numbers: powers of i. avg is divided once, from an
// exact sum. Logical operators: 0 and 1. Pairs: small values, and the rank as index.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "gdrx/types.hpp"

namespace gdrx::bench {

struct DataKey {
  DataType type{};
  ReduceOp op{};
  int ranks = 1;
  std::uint64_t seed = 0;  // of the run, the size and the iteration
};

/// Elements [0, count) of `rank`.
void fill_input(const DataKey& key, int rank, std::byte* to, std::uint64_t count);
/// Elements [begin, begin + count).
void fill_input(const DataKey& key, int rank, std::byte* to, std::uint64_t begin,
                std::uint64_t count);
/// Elements [begin, begin + count) of the result.
void fill_expected(const DataKey& key, std::byte* to, std::uint64_t begin, std::uint64_t count);
/// `element`: bytes of a number. A zero has any sign.
std::uint64_t count_wrong(const std::byte* got, const std::byte* expected, std::size_t element,
                          std::uint64_t count);
/// Of a complex number each part is one.
std::uint64_t count_wrong(const std::byte* got, const std::byte* expected, DataType type,
                          std::uint64_t count);

/// A buffer with guards around it and a poisoned inside.
class GuardedBuffer {
 public:
  GuardedBuffer(std::size_t bytes, bool unaligned);
  std::byte* data() noexcept { return memory_.data() + offset_; }
  /// With the guards.
  std::span<std::byte> whole() noexcept { return memory_; }
  void poison() noexcept;
  /// Bytes outside that were written.
  std::uint64_t damaged_guards() const noexcept;

 private:
  std::size_t bytes_;
  std::size_t offset_;
  std::vector<std::byte> memory_;
};

}  // namespace gdrx::bench

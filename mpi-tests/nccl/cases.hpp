// SPDX-License-Identifier: Apache-2.0
// What nccl_test runs: each collective with its call, what it must give, and nccl-tests' bus
// factor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "mpi-tests/nccl/libraries.hpp"

namespace gdrx::bench {

struct Call {
  const Nccl& nccl;
  NcclComm comm;
  Stream stream;
  const std::byte* in;
  std::byte* out;
  std::size_t count;  // elements of one rank's part
  std::size_t width;  // bytes an element
  NcclType type;
  int rank;
  int ranks;
};

struct Case {
  std::string name;
  /// Elements of the buffers, in parts of `count`.
  std::size_t in_parts, out_parts;  // a part for each rank: kEach
  Result<void> (*run)(const Call&);
  /// The value of element i, or nothing where the output is not specified. Sums of value().
  std::int64_t (*expected)(int rank, int ranks, std::size_t count, std::size_t i);
  double (*bus_factor)(int ranks);
};
inline constexpr std::size_t kEach = 0;
inline constexpr std::int64_t kAnything = -1;

/// What rank has at element i of its input: small, so that sums are exact in every type.
constexpr std::int64_t value(int rank, std::size_t i) noexcept {
  return static_cast<std::int64_t>((i * 7 + static_cast<std::size_t>(rank) * 3) % 5);
}

const std::vector<Case>& cases();

struct ElementType {
  std::string name;
  NcclType type;
  std::size_t width;
};
const std::vector<ElementType>& element_types();
/// Writes a small number as that type.
void store(NcclType type, std::int64_t number, std::byte* at);

}  // namespace gdrx::bench

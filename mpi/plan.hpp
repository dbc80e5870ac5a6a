// SPDX-License-Identifier: Apache-2.0
// A call as gdrx would have it: what it reduces, or what goes out of and into this rank.
#pragma once

#include "mpi/call.hpp"
#include "mpi/types.hpp"

namespace gdrx::mpi {

/// Blocks of a buffer of the program's: one, or one a rank.
struct Side {
  std::byte* at = nullptr;
  int blocks = 0;  // 0: this rank has no such side
  std::ptrdiff_t count = 0;
  List counts = {};  // of each block, instead
  List places = {};  // in elements; none: one block behind another
  MPI_Datatype handle{};
  Type type;

  std::size_t elements(int block) const noexcept {
    return static_cast<std::size_t>(counts != nullptr ? counts[block] : count);
  }
  std::size_t bytes(int block) const noexcept { return elements(block) * type.size; }
  std::ptrdiff_t place(int block) const noexcept {
    return (places != nullptr ? places[block] : block * count) * type.extent;
  }
};

struct Plan {
  std::size_t bytes = 0;  // what the call is judged by
  bool in_place = false;
  // Reductions.
  gdrxRedOp_t op = gdrxSum;
  const Type* type = nullptr;
  std::size_t elements = 0;  // of the whole vector
  // What only moves data. In place the side that MPI_IN_PLACE stands for has no blocks.
  Side in;
  Side out;
};

/// `taken`: gdrx can have the call. What is not equal on every rank decides nothing, but for wrong
/// arguments, of which MPI is to say what is wrong.
Verdict look(const Call& call, int rank, int size, Plan& plan) noexcept;

}  // namespace gdrx::mpi

// SPDX-License-Identifier: Apache-2.0
// Blocks of any type as bytes behind one another, by MPI.
#pragma once

#include "mpi/plan.hpp"

namespace gdrx::mpi {

/// Throw std::runtime_error where MPI does not.
void pack_block(const Side& side, int block, std::byte* packed);
void unpack_block(const Side& side, int block, const std::byte* packed);

}  // namespace gdrx::mpi

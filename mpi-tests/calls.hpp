// SPDX-License-Identifier: Apache-2.0
// A sister's call, of gdrx and of MPI.
#pragma once

#include <mpi.h>

#include <cstddef>

#include "gdrx/gdrx.h"
#include "gdrx/types.hpp"
#include "mpi-tests/sister.hpp"

namespace gdrx::bench {

/// Where a call reads and writes. In place: at Place::input_at() and output_at() of one buffer.
struct Ends {
  const std::byte* input = nullptr;
  std::byte* output = nullptr;
  bool in_place = false;
};
Ends ends_of(const Place& place, DataType type, std::byte* input, std::byte* output, bool in_place);

/// `stream`: a cudaStream_t, or null.
gdrxResult_t call_gdrx(const Place& place, DataType type, ReduceOp op, const Ends& ends,
                       gdrxComm_t comm, void* stream);

/// False: MPI has no such call, type or operator.
bool has_mpi(const Place& place, DataType type, ReduceOp op);
void call_mpi(const Place& place, DataType type, ReduceOp op, const Ends& ends);

}  // namespace gdrx::bench

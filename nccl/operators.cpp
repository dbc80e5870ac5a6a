// SPDX-License-Identifier: Apache-2.0
// Sums of what is first multiplied by a scalar.
#include <cstddef>

#include "nccl/comm.hpp"
#include "nccl/driver.hpp"
#include "nccl/map.hpp"

using namespace gdrx::nccl;  // NOLINT: this file defines its functions

// As in NCCL a collective reads a scalar in GPU memory when it runs. What else CUDA knows is read
// now.
GDRX_NCCL(ncclRedOpCreatePreMulSum, Operator* op, void* scalar, Type type, int residence,
          ncclComm* comm) {
  constexpr auto kName = "ncclRedOpCreatePreMulSum";
  if (op == nullptr || scalar == nullptr) {
    return deny(kName, kInvalidArgument, "op or scalar is NULL");
  }
  if (!is_type(type)) return deny(kName, kInvalidArgument, "datatype is no ncclDataType_t");
  if (residence != kScalarDevice && residence != kScalarHost) {
    return deny(kName, kInvalidArgument, "residence is no ncclScalarResidence_t");
  }
  if (residence == kScalarDevice && !driver::knows(scalar)) {
    return deny(kName, kInvalidArgument, "scalar is memory that CUDA does not know");
  }
  gdrxRedOp_t made = gdrxSum;
  const Result result = at_once(kName, comm, [&](gdrxComm_t gdrx) {
    return gdrxRedOpCreatePreMulSum(&made, scalar, kTypes[static_cast<std::size_t>(type)], gdrx);
  });
  if (result == kSuccess) *op = static_cast<Operator>(made);
  return result;
}

GDRX_NCCL(ncclRedOpDestroy, Operator op, ncclComm* comm) {
  if (op < kFirstMade) {
    return deny("ncclRedOpDestroy", kInvalidArgument, "op is none that a program made");
  }
  return at_once("ncclRedOpDestroy", comm, [&](gdrxComm_t gdrx) {
    return gdrxRedOpDestroy(static_cast<gdrxRedOp_t>(op), gdrx);
  });
}

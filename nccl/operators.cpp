// SPDX-License-Identifier: Apache-2.0
// Sums of what is first multiplied by a scalar.
#include <array>
#include <cstddef>
#include <cstring>

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
  const TypeRow& row = kTypes[static_cast<std::size_t>(type)];
  alignas(8) std::array<std::byte, 8> now{};
  if (residence == kScalarHost) {  // in whatever memory the program has it
    std::memcpy(now.data(), scalar, row.size);
    scalar = now.data();
  }
  gdrxRedOp_t made = gdrxSum;
  const Result result = at_once(kName, comm, [&](gdrxComm_t gdrx) {
    return gdrxRedOpCreatePreMulSum(&made, scalar, row.type, gdrx);
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

// SPDX-License-Identifier: Apache-2.0
// NCCL's types, operators and streams in gdrx's numbers.
#pragma once

#include <array>
#include <cstddef>

#include "gdrx/gdrx.h"
#include "nccl/abi.hpp"

namespace gdrx::nccl {

struct TypeRow {
  gdrxDataType_t type;
  std::size_t size;
};
/// By ncclDataType_t.
inline constexpr std::array<TypeRow, 12> kTypes{{{gdrxInt8, 1},
                                                 {gdrxUint8, 1},
                                                 {gdrxInt32, 4},
                                                 {gdrxUint32, 4},
                                                 {gdrxInt64, 8},
                                                 {gdrxUint64, 8},
                                                 {gdrxFloat16, 2},
                                                 {gdrxFloat32, 4},
                                                 {gdrxFloat64, 8},
                                                 {gdrxBfloat16, 2},
                                                 {gdrxFloat8e4m3, 1},
                                                 {gdrxFloat8e5m2, 1}}};

inline bool is_type(Type type) noexcept { return static_cast<unsigned>(type) < kTypes.size(); }

/// By ncclRedOp_t.
inline constexpr std::array<gdrxRedOp_t, kOperators> kNamed{gdrxSum, gdrxProd, gdrxMax, gdrxMin,
                                                            gdrxAvg};
/// Operators that a program makes have gdrx's numbers, which are above all of its names.
inline constexpr int kFirstMade = gdrxMaxloc + 1;

inline bool is_operator(Operator op) noexcept {
  return static_cast<unsigned>(op) < kNamed.size() || op >= kFirstMade;
}
inline gdrxRedOp_t operator_of(Operator op) noexcept {
  return op < kOperators ? kNamed[static_cast<std::size_t>(op)] : static_cast<gdrxRedOp_t>(op);
}

/// cudaStreamPerThread, which gdrx refuses.
inline const Stream kOfEachThread = reinterpret_cast<Stream>(2);

/// Without a stream NCCL means CUDA's default stream.
inline gdrxStream_t stream_of(Stream stream) noexcept {
  return stream == nullptr ? gdrxStreamDefault : reinterpret_cast<gdrxStream_t>(stream);
}

}  // namespace gdrx::nccl

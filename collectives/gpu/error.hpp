// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include "gdrx/result.hpp"

namespace gdrx::gpu {

/// What the CUDA runtime said, as a Result. `call` is for a person.
inline Result<void> check(cudaError_t status, const char* call) {
  if (status == cudaSuccess) return {};
  cudaGetLastError();  // a refused call must not look like the user's own next one
  const auto code = status == cudaErrorStreamCaptureUnsupported ? Errc::unsupported : Errc::system;
  return fail(
      code, fmt::format("{}: {} ({})", call, cudaGetErrorString(status), cudaGetErrorName(status)));
}

}  // namespace gdrx::gpu

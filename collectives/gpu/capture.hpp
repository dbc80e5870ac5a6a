// SPDX-License-Identifier: Apache-2.0
// Captures of streams into graphs: which there is, and how to ask beside one.
#pragma once

#include <cuda_runtime_api.h>

#include "collectives/gpu/error.hpp"
#include "gdrx/result.hpp"

namespace gdrx::gpu {

/// The stream's capture, 0 if it has none.
inline Result<unsigned long long> capture_of(cudaStream_t stream) {
  cudaStreamCaptureStatus status{};
  unsigned long long id = 0;
  GDRX_TRY(check(cudaStreamGetCaptureInfo(stream, &status, &id), "cudaStreamGetCaptureInfo"));
  if (status == cudaStreamCaptureStatusInvalidated) {
    return fail(Errc::invalid_argument, "the stream's capture is already invalid");
  }
  return status == cudaStreamCaptureStatusActive ? id : 0;
}

/// What this thread asks meanwhile is allowed though another one captures, and spoils no capture.
class AnyCapture {
 public:
  AnyCapture() { cudaThreadExchangeStreamCaptureMode(&mode_); }
  ~AnyCapture() { cudaThreadExchangeStreamCaptureMode(&mode_); }
  AnyCapture(const AnyCapture&) = delete;
  AnyCapture& operator=(const AnyCapture&) = delete;

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

}  // namespace gdrx::gpu

// SPDX-License-Identifier: Apache-2.0
// A CUDA context of the plugin's own. While a thread of the application waits for its GPU, in
// cudaFree or as a kernel is loaded, the driver keeps other threads out of that context. What it
// waits for may be a kernel of NCCL's, and that for a copy of ours: in the application's context
// the copy would never be started.
#pragma once

#include <memory>

#include "gdrx/result.hpp"
#include "plugin/gpu/driver.hpp"

namespace gdrx::gpu {

/// Takes about half a gigabyte of the GPU. From any thread.
class OwnContext {
 public:
  /// That of the GPU of the calling thread's context: made by the first who asks, gone with the
  /// last who holds it. Takes a sixth of a second when it is made.
  static Result<std::shared_ptr<OwnContext>> of_current_gpu();
  /// Whether the calling thread has a context of the application's to tell its GPU by.
  static bool has_gpu() noexcept;
  ~OwnContext();
  OwnContext(const OwnContext&) = delete;
  OwnContext& operator=(const OwnContext&) = delete;

  /// While it lives the calling thread's context is this one.
  class Inside {
   public:
    explicit Inside(const OwnContext& context) noexcept;
    ~Inside();
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;
    Result<void> entered() const { return check(status_, "cuCtxPushCurrent"); }

   private:
    Status status_;
  };

 private:
  explicit OwnContext(Context context) : context_(context) {}
  Context context_;
};

}  // namespace gdrx::gpu

// SPDX-License-Identifier: Apache-2.0
#include "plugin/gpu/own_context.hpp"

#include <map>
#include <mutex>

namespace gdrx::gpu {

Result<std::shared_ptr<OwnContext>> OwnContext::of_current_gpu() {
  static std::mutex mutex;
  // By GPU. Never destroyed: NCCL's threads may connect while the process exits.
  static auto& made = *new std::map<int, std::weak_ptr<OwnContext>>;
  Context current = nullptr;
  GDRX_TRY(check(driver().current(&current), "cuCtxGetCurrent"));
  if (current == nullptr) return fail(Errc::internal, "the calling thread has no CUDA context");
  int gpu = 0;
  GDRX_TRY(check(driver().device(&gpu), "cuCtxGetDevice"));
  const std::lock_guard lock(mutex);
  if (auto there = made[gpu].lock()) return there;
  Context fresh = nullptr;
  GDRX_TRY(check(driver().context_create(&fresh, 0, gpu), "cuCtxCreate"));
  const std::shared_ptr<OwnContext> context(new OwnContext(fresh));
  GDRX_TRY(check(driver().pop(&fresh), "cuCtxPopCurrent"));  // as it was made it became current
  made[gpu] = context;
  return context;
}

bool OwnContext::has_gpu() noexcept {
  Context current = nullptr;
  return driver().current(&current) == 0 && current != nullptr;
}

OwnContext::~OwnContext() { driver().context_destroy(context_); }

OwnContext::Inside::Inside(const OwnContext& context) noexcept
    : status_(driver().push(context.context_)) {}

OwnContext::Inside::~Inside() {
  Context left = nullptr;
  if (status_ == 0) driver().pop(&left);
}

}  // namespace gdrx::gpu

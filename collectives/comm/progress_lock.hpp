// SPDX-License-Identifier: Apache-2.0
// Who drives a communicator, a caller's thread or the mesh's, and what he keeps in mind meanwhile.
#pragma once

#include <atomic>
#include <mutex>

#include "collectives/comm/pace.hpp"
#include "collectives/comm/suspicion.hpp"
#include "collectives/comm/waiting.hpp"

namespace gdrx {

struct ProgressLock {
  mutable std::mutex mutex;             // one at a time
  mutable std::atomic<int> callers{0};  // callers' threads that have or want it
  Pace pace;
  Suspicion suspicion;
  WaitingQuestion question;
};

}  // namespace gdrx

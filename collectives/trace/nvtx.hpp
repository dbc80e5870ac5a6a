// SPDX-License-Identifier: Apache-2.0
// The domain "gdrx" of NVTX, whose tools (Nsight Systems and others) are loaded by NVTX itself:
// NVTX_INJECTION64_PATH. Without NVTX's headers at build time nobody ever listens.
#pragma once

#include "collectives/trace/event.hpp"

namespace gdrx::trace::nvtx {

/// Whether a tool does. Loads it at the first call.
bool listens() noexcept;

// Of these, none may be called while nobody listens.
/// A range of this thread, ended by pop() on it: the innermost first.
void push(const Event& event) noexcept;
void pop() noexcept;
/// A range of the process, ended by any thread.
std::uint64_t start(const Event& event) noexcept;
void end(std::uint64_t range) noexcept;

}  // namespace gdrx::trace::nvtx

// SPDX-License-Identifier: Apache-2.0
// Which call of the plugin was made last: what the runner says of a plugin that crashes or hangs.
#pragma once

#include <atomic>

namespace gdrx::conformance {

/// Any thread; `name` is a literal.
void note_call(const char* name) noexcept;
const char* last_call() noexcept;

/// Notes go to `place` from now on: memory that outlives this process.
void share_notes(std::atomic<const char*>* place) noexcept;

}  // namespace gdrx::conformance

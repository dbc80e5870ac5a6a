// SPDX-License-Identifier: Apache-2.0
// Fibers of one thread, in turns.
#pragma once

#include <cstdint>
#include <functional>

namespace gdrx::emulated {

/// Runs body(0) to body(count - 1) beside each other until all have ended.
void run_fibers(int count, const std::function<void(int)>& body);
/// From within a body: the others' turn. Returns when its own comes again.
void switch_fiber();
/// From within a body: the others' turns while `word`, which one of them changes, is `value`.
void wait_while(const std::uint64_t& word, std::uint64_t value);
/// From within a body: what others of this thread waited for is there.
void moved_on();

}  // namespace gdrx::emulated

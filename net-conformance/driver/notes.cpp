// SPDX-License-Identifier: Apache-2.0
#include "net-conformance/driver/notes.hpp"

namespace gdrx::conformance {

namespace {
constexpr const char* kNone = "nothing";
std::atomic<const char*> g_own{kNone};
std::atomic<const char*>* g_place = &g_own;
}  // namespace

void note_call(const char* name) noexcept { g_place->store(name, std::memory_order_relaxed); }

const char* last_call() noexcept { return g_place->load(std::memory_order_relaxed); }

void share_notes(std::atomic<const char*>* place) noexcept {
  place->store(kNone, std::memory_order_relaxed);
  g_place = place;
}

}  // namespace gdrx::conformance

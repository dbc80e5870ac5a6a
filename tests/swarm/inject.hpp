// SPDX-License-Identifier: Apache-2.0
// Between the calls that fail and what decides on it.
#pragma once

#include <dlfcn.h>

#include <initializer_list>
#include <optional>

#include "tests/swarm/faults.hpp"

namespace gdrx::swarm {

/// The error of this call, or nothing. `errors`: one of them is chosen; 0 is whatever the caller of
/// this makes of it (a short count, an end).
std::optional<int> injected(Kind kind, const void* caller, std::initializer_list<int> errors);
/// Whether it is code of what stands for hardware.
bool is_simulated(const void* caller);
/// More of the choice, for a short count.
std::uint32_t choice();

template <class Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace gdrx::swarm

#define SWARM_API extern "C" __attribute__((visibility("default")))
#define SWARM_NEXT(name) static auto* const real = gdrx::swarm::next<decltype(::name)>(#name)

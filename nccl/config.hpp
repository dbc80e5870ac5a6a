// SPDX-License-Identifier: Apache-2.0
// ncclConfig_t of any version.
#pragma once

#include "nccl/abi.hpp"

namespace gdrx::nccl {

/// What of it means something here.
struct Chosen {
  bool blocking = true;
  int blocks = 0;  // gdrxConfig_t.gpu_blocks
};

/// Null, or what is wrong with it. `given` may be null; what it leaves open stays in `chosen`.
const char* read_config(const Config* given, Chosen& chosen) noexcept;

}  // namespace gdrx::nccl

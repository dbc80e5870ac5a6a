// SPDX-License-Identifier: Apache-2.0
// gdrx's lines in NCCL's log.
#pragma once

#include "gdrx/log.hpp"
#include "plugin/abi/types.hpp"

namespace gdrx::net {

/// NCCL's logger from init(). It outlives every context of NCCL, so that the last one given is
/// used.
void set_nccl_log(nccl::LogFunction function) noexcept;

/// Errors and warnings become NCCL's warnings, info its INFO of subsystem NET. Before
/// set_nccl_log() lines go to stderr. NCCL_DEBUG decides what is seen.
Log nccl_log();

}  // namespace gdrx::net

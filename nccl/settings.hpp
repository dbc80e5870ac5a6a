// SPDX-License-Identifier: Apache-2.0
// What the environment says to this layer.
#pragma once

namespace gdrx::nccl {

struct Settings {
  int version = 0;      // GDRX_NCCL_VERSION, as ncclGetVersion codes it
  bool prints = false;  // NCCL_DEBUG is WARN or more
};

/// Read once.
const Settings& settings() noexcept;

}  // namespace gdrx::nccl

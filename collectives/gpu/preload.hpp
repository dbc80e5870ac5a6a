// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "gdrx/result.hpp"

namespace gdrx::gpu {

/// Loads every kernel into the current context. CUDA would load each when it is first launched, and
/// may wait then for the kernels that run: those of a rank of the same process that wait for this
/// one, for ever. A driver or toolkit before CUDA 12.4 cannot be asked, and loads as it likes.
Result<void> load_kernels();

}  // namespace gdrx::gpu

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "collectives/gpu/path.hpp"
#include "gdrx/config.hpp"

namespace gdrx::gpu {

/// A path on this thread's current GPU. Errc::unsupported with the reason where this process has no
/// CUDA context current, or libgdrx-cuda.so was not built.
Result<std::unique_ptr<Path>> open_path(const Config& config);

}  // namespace gdrx::gpu

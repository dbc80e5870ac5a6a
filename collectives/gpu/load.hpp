// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>

#include "collectives/gpu/path.hpp"
#include "gdrx/config.hpp"

namespace gdrx::gpu {

/// The GPU whose CUDA context is current on this thread. Empty: none; does not load CUDA.
std::optional<int> current_device();

/// A path on a GPU, this thread's current one if none is named. Errc::unsupported with the reason
/// where there is no such, or libgdrx-cuda.so was not built.
Result<std::unique_ptr<Path>> open_path(const Config& config, std::optional<int> device = {});

}  // namespace gdrx::gpu

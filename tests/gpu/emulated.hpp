// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace gdrx::gpu {

/// Whether the GPUs are those of tests/emulated: a thousand times slower, and always there.
#ifdef GDRX_DEVICE_HEADER
inline constexpr bool kEmulated = true;
#else
inline constexpr bool kEmulated = false;
#endif

}  // namespace gdrx::gpu

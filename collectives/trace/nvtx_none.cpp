// SPDX-License-Identifier: Apache-2.0
// In the place of nvtx.cpp where NVTX's headers are not there.
#include "collectives/trace/nvtx.hpp"

namespace gdrx::trace::nvtx {

bool listens() noexcept { return false; }
void push(const Event&) noexcept {}
void pop() noexcept {}
std::uint64_t start(const Event&) noexcept { return 0; }
void end(std::uint64_t) noexcept {}

}  // namespace gdrx::trace::nvtx

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "gdrx/transport.hpp"

namespace gdrx::shm {

/// For the ranks 0 to `ranks` - 1, all of this host.
std::shared_ptr<Fabric> make_fabric(std::uint32_t ranks);

}  // namespace gdrx::shm

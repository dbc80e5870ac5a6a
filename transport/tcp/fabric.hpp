// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "gdrx/transport.hpp"

namespace gdrx::tcp {

std::shared_ptr<Fabric> make_fabric();

}  // namespace gdrx::tcp

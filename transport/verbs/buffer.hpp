// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "transport/memory/pages.hpp"

namespace gdrx::verbs {

/// Pages of our own for a NIC.
using Buffer = Pages;

}  // namespace gdrx::verbs

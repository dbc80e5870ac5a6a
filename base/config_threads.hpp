// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "gdrx/config.hpp"

namespace gdrx {

/// The row for GDRX_THREAD_CPUS. base/thread_cpus.hpp acts on it.
Variable threads_variable();

}  // namespace gdrx

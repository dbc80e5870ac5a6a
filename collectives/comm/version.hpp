// SPDX-License-Identifier: Apache-2.0
// That all ranks run the same gdrx, found out before they tell each other anything whose form
// differs between versions.
#pragma once

#include <cstdint>
#include <string>

#include "gdrx/bootstrap.hpp"
#include "gdrx/clock.hpp"
#include "gdrx/result.hpp"

namespace gdrx {

/// "0.1.0" of a GDRX_VERSION.
std::string version_text(std::uint32_t version);

/// Collective, and the first thing that goes over a bootstrap: its 8 bytes stay as they are in
/// every version. Errc::mismatch, with the same line on every rank, names two ranks and what they
/// run.
Result<void> check_versions(Bootstrap& bootstrap, std::uint32_t mine, Deadline deadline);

}  // namespace gdrx

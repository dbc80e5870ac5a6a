// SPDX-License-Identifier: Apache-2.0
// That all ranks run the same gdrx, found out before they tell each other anything whose form
// differs between versions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "gdrx/bootstrap.hpp"
#include "gdrx/clock.hpp"
#include "gdrx/result.hpp"

namespace gdrx {

/// "0.1.0" of a GDRX_VERSION.
std::string version_text(std::uint32_t version);

/// Collective, and the first thing that goes over a bootstrap: its 8 bytes stay as they are in
/// every version. Errc::mismatch, with the same line on every rank, names two ranks and what they
/// run. Behind them each rank says `more`, which all ranks have when the versions are the same.
Result<std::vector<Blob>> check_versions(Bootstrap& bootstrap, std::uint32_t mine,
                                         std::span<const std::byte> more, Deadline deadline);

}  // namespace gdrx

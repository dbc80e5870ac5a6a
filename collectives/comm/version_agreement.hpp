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

/// The first thing that goes over a bootstrap: its first 8 bytes stay as they are in every version.
/// Behind them a rank says `more`.
Blob say_version(std::uint32_t mine, std::span<const std::byte> more);

/// Collective. `told`: by say_version(). Returns what each rank said behind its version.
/// Errc::mismatch, with the same line on every rank, names two ranks and what they run.
Result<std::vector<Blob>> check_versions(Bootstrap& bootstrap, std::span<const std::byte> told,
                                         Deadline deadline);

}  // namespace gdrx

// SPDX-License-Identifier: Apache-2.0
// The MPI that a program is linked to.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace gdrx::tools {

/// Libraries that an ELF program of this machine names; none: it is no such file, or names none.
std::vector<std::string> needed_by(const std::filesystem::path& program);

/// The first library of MPI among those; nothing: the program has none of its own (a script, or a
/// program that is linked to it by another library).
std::optional<std::string> mpi_of(const std::filesystem::path& program);

}  // namespace gdrx::tools

// SPDX-License-Identifier: Apache-2.0
// What a process has open, counted in /proc.
#pragma once

#include <filesystem>
#include <string>
#include <system_error>

namespace gdrx::test {

/// Entries of a folder, or those alone that are links to a target which begins with `kind`.
inline int entries_of(const char* folder, const std::string& kind = {}) {
  int found = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::error_code gone;
    const std::string target = std::filesystem::read_symlink(entry.path(), gone).string();
    if (kind.empty() || target.starts_with(kind)) ++found;
  }
  return found;
}

}  // namespace gdrx::test

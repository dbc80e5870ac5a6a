// SPDX-License-Identifier: Apache-2.0
// What several commands need: a file's text, what stdout is, writing a file.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "gdrx/result.hpp"

namespace gdrx::tools {

/// A whole file ("-": stdin). Errors name it: not there, a folder, larger than `most` bytes.
Result<std::string> read_input(const std::string& name, std::size_t most);
/// Writes or replaces a file.
Result<void> write_output(const std::string& name, std::string_view bytes);

/// What stdout can show.
struct Terminal {
  bool colour = false;      // a terminal, and NO_COLOR is not set
  std::size_t columns = 0;  // 0: no terminal, or not known
};
Terminal terminal();
/// An environment variable that is set to something.
std::string environment_value(std::string_view name);

}  // namespace gdrx::tools

// SPDX-License-Identifier: Apache-2.0
// What a command line takes, as JSON: man pages and completion are made from it (scripts/manuals).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace gdrx::tools {

/// The one word by which a command prints options_of() and ends. --help does not list it.
inline constexpr std::string_view kDescribe = "--describe";

/// The words that `option` takes, for completion. It still checks its value by itself, and its
/// help stays as it is.
void takes_words(CLI::Option* option, const std::vector<std::string>& words);

/// Names, texts and fixed values of the options of `app` and of its subcommands.
std::string options_of(const CLI::App& app);

}  // namespace gdrx::tools

// SPDX-License-Identifier: Apache-2.0
// --help within 80 columns: CLI11 2's formatter puts each text on one line, however long.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace CLI {
class FormatterBase;
}

namespace gdrx::tools {

/// `name` at column 2 and `text` from column `indent` on, folded at spaces; a line's end in `text`
/// stays one. A name that leaves no room stands on lines of its own.
std::string help_entry(std::string_view name, std::string_view text, std::size_t indent);

/// Lines that begin with a space are examples: a command, two spaces or more, what it does. Others
/// are paragraphs.
std::string help_footer(std::string_view text);

/// For the app; its subcommands take it over when they are added after this.
std::shared_ptr<CLI::FormatterBase> help_formatter();

}  // namespace gdrx::tools

// SPDX-License-Identifier: Apache-2.0
#include "tools/help.hpp"

#include <CLI/CLI.hpp>

namespace gdrx::tools {
namespace {

constexpr std::size_t kColumns = 80;

// Folds `text` at spaces so that each line ends before kColumns; `column`: where it begins.
std::string fold(std::string_view text, std::size_t indent, std::size_t column) {
  std::string folded;
  bool first = true;  // word of its line
  while (!text.empty()) {
    const std::size_t length = std::min(text.find_first_of(" \n"), text.size());
    const std::string_view word = text.substr(0, length);
    if (!first && column + 1 + word.size() > kColumns) {
      folded += '\n' + std::string(indent, ' ');
      column = indent;
      first = true;
    }
    if (!word.empty()) {
      folded += (first ? "" : " ") + std::string(word);
      column += word.size() + (first ? 0 : 1);
      first = false;
    }
    if (length < text.size() && text[length] == '\n') {
      folded += '\n' + std::string(indent, ' ');
      column = indent;
      first = true;
    }
    text.remove_prefix(std::min(length + 1, text.size()));
  }
  return folded;
}

// A line of examples, "  command    what it does": folded below the second part, or below all of
// the first where that one is long.
std::string example(std::string_view line) {
  constexpr std::size_t kFurthest = 50;
  constexpr std::size_t kBelow = 6;
  const std::size_t gap = line.find("  ", 2);
  const std::size_t text = gap == line.npos ? line.npos : line.find_first_not_of(' ', gap);
  if (line.size() <= kColumns || text == line.npos) return std::string(line);
  if (text > kFurthest) {
    return std::string(line.substr(0, gap)) + '\n' + std::string(kBelow, ' ') +
           fold(line.substr(text), kBelow, kBelow);
  }
  return std::string(line.substr(0, text)) + fold(line.substr(text), text, text);
}

class Formatter : public CLI::Formatter {
 public:
  std::string make_option(const CLI::Option* option, bool positional) const override {
    return help_entry(make_option_name(option, positional) + make_option_opts(option),
                      make_option_desc(option), get_column_width());
  }
  std::string make_subcommand(const CLI::App* sub) const override {
    return help_entry(sub->get_display_name(true), sub->get_description(), get_column_width());
  }
  std::string make_description(const CLI::App* app) const override {
    return fold(app->get_description(), 0, 0) + "\n";
  }
  std::string make_footer(const CLI::App* app) const override {
    return help_footer(app->get_footer());
  }
};

}  // namespace

std::string help_entry(std::string_view name, std::string_view text, std::size_t indent) {
  constexpr std::size_t kNameIndent = 2;
  constexpr std::size_t kNameFolds = 6;
  std::string entry = std::string(kNameIndent, ' ') + fold(name, kNameFolds, kNameIndent);
  if (text.empty()) return entry + '\n';
  const bool beside = entry.size() < indent && entry.find('\n') == entry.npos;
  entry += beside ? std::string(indent - entry.size(), ' ') : '\n' + std::string(indent, ' ');
  return entry + fold(text, indent, indent) + '\n';
}

std::string help_footer(std::string_view text) {
  std::string footer;
  std::string paragraph;
  const auto close = [&] {
    if (!paragraph.empty()) footer += fold(paragraph, 0, 0) + '\n';
    paragraph.clear();
  };
  while (!text.empty()) {
    const std::size_t length = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, length);
    const bool own = line.empty() || line.front() == ' ' || line.back() == ':';
    if (own) close();
    if (own) footer += example(line) + '\n';
    if (!own) paragraph += (paragraph.empty() ? "" : " ") + std::string(line);
    text.remove_prefix(std::min(length + 1, text.size()));
  }
  close();
  return footer;
}

std::shared_ptr<CLI::FormatterBase> help_formatter() { return std::make_shared<Formatter>(); }

}  // namespace gdrx::tools

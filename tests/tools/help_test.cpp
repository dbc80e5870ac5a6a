// SPDX-License-Identifier: Apache-2.0
#include "tools/help.hpp"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <sstream>

namespace gdrx::tools {
namespace {

TEST(HelpEntry, StandsBesideAShortName) {
  EXPECT_EQ(help_entry("--map", "each GPU's NICs", 12), "  --map     each GPU's NICs\n");
}

TEST(HelpEntry, StandsBelowANameWithoutRoom) {
  EXPECT_EQ(help_entry("--long-name", "what", 12), "  --long-name\n            what\n");
}

TEST(HelpEntry, WithoutATextIsTheName) { EXPECT_EQ(help_entry("name", "", 12), "  name\n"); }

TEST(HelpEntry, FoldsAtTheLastSpaceThatFits) {
  const std::string full = std::string(67, 'x');  // from column 12: with a word more, 80 and 81
  EXPECT_EQ(help_entry("a", full + " b", 11), "  a        " + full + " b\n");
  EXPECT_EQ(help_entry("a", full + " b", 12), "  a         " + full + "\n            b\n");
}

TEST(HelpEntry, KeepsTheLinesOfItsText) {
  EXPECT_EQ(help_entry("a", "one\ntwo", 5), "  a  one\n     two\n");
}

TEST(HelpFooter, FoldsAnExampleBelowItsComment) {
  const std::string words(56, 'x');
  EXPECT_EQ(help_footer("  gdrx topo    " + words + " and this too\n"),
            "  gdrx topo    " + words + " and this\n" + std::string(15, ' ') + "too\n");
}

TEST(HelpFooter, FoldsAnExampleBelowALongCommand) {
  const std::string command(60, 'c');
  EXPECT_EQ(help_footer("  " + command + "  what that command does\n"),
            "  " + command + "\n      what that command does\n");
}

TEST(HelpFooter, ReflowsAParagraphAndLeavesHeadingsAlone) {
  EXPECT_EQ(help_footer("Examples:\n  one\nfirst line\nsecond line\n\nlast"),
            "Examples:\n  one\nfirst line second line\n\nlast\n");
}

TEST(Help, OfAnAppAndItsCommandsFitsEightyColumns) {
  std::string words;
  for (int i = 0; i < 60; ++i) words += "words and ";
  CLI::App app(words, "gdrx");
  app.formatter(help_formatter());
  CLI::App* command = app.add_subcommand("command", words);
  std::string value;
  auto* option = command->add_option("--option", value, words);
  command->add_option("--other-option-with-a-long-name,--and-another", value, words)
      ->check(CLI::IsMember({"text", "json", "dot", "html", "svg", "nccl-xml"}))
      ->excludes(option);
  for (const std::string& help : {app.help(), command->help()}) {
    std::istringstream lines(help);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;
    EXPECT_NE(help.find("words and"), std::string::npos);
  }
}

}  // namespace
}  // namespace gdrx::tools

// SPDX-License-Identifier: Apache-2.0
// The script of fixes, of hosts that would like to have a command in it.
#include <gtest/gtest.h>

#include <array>

#include "doctor/shell.hpp"
#include "tests/doctor/hostile_host.hpp"

namespace gdrx::doctor {
namespace {

using test::HostileHost;
using test::Shell;

constexpr std::uint32_t kHosts = 60;

/// Pieces of what a shell understands, between marks.
class Evil {
 public:
  explicit Evil(std::uint32_t seed) : state_(seed * 2654435761u + 1) {}
  std::string operator()() {
    constexpr std::array kPieces{
        ";EVIL ", "$(EVIL)", "`EVIL`", "'",       "\"",        "\n",      "\\",       "\\\n",
        " EVIL ", "#",       "|EVIL",  "&&EVIL ", "&EVIL ",    ">e",      "<e",       "*",
        "~",      "{a,b}",   "!!",     "\t",      "\r\nEVIL ", "\x1b[2J", "${EVIL}",  "(",
        ")",      "...",     "<a>",    "x",       "-rf",       "\x7f",    "';EVIL '", "\";EVIL ",
        "'\\''",  "$'",      "\xff",   "\nEVIL",  "=",         "/",       "%s{}",     "."};
    std::string text = next(4) == 0 ? "-" : "";
    text += test::kBegin;
    for (std::uint32_t left = next(5); left > 0; --left) text += kPieces[next(kPieces.size())];
    return text + test::kEnd;
  }

 private:
  std::uint32_t next(std::size_t below) {
    state_ = state_ * 1664525u + 1013904223u;
    return (state_ >> 8) % static_cast<std::uint32_t>(below);
  }
  std::uint32_t state_;
};

TEST(FixScript, HasTheFixesOfASickHost) {
  const auto own = test::own_commands();
  for (const char* command : {"ip", "mlxlink", "chmod", "setpci", "echo", "mlnx_qos", "dcb"}) {
    EXPECT_NE(std::find(own.begin(), own.end(), command), own.end()) << command;
  }
}

TEST(FixScript, MakesNoWordOfWhatAHostileHostSays) {
  const auto own = test::own_commands();
  std::size_t commands = 0;
  for (std::uint32_t seed = 0; seed < kHosts; ++seed) {
    const HostileHost host{Evil(seed)};
    const std::string script = host.script();
    const Shell shell = test::only_echo(script);
    ASSERT_EQ(test::words_of_the_host(shell, own), "") << "seed " << seed << "\n" << script;
    commands += shell.commands.size();
  }
  EXPECT_GT(commands, kHosts * 10);
}

TEST(ShellWord, IsPlainOrInQuotesAndNeverAnOption) {
  EXPECT_EQ(ShellWord(std::string_view("mlx5_0")).text(), "mlx5_0");
  EXPECT_EQ(ShellWord(std::string_view("/sys/a b")).text(), "'/sys/a b'");
  EXPECT_EQ(ShellWord(std::string_view("it's")).text(), "'it'\\''s'");
  EXPECT_EQ(ShellWord(std::string_view("")).text(), "''");
  EXPECT_EQ(ShellWord(std::string_view("--help")).text(), "_-help");
  EXPECT_EQ(ShellWord(std::string_view("a\nb")).text(), "'a?b'");
}

}  // namespace
}  // namespace gdrx::doctor

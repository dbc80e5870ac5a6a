// SPDX-License-Identifier: Apache-2.0
// Lines of a shell's script. What a host's files said enters one through command(), as one word
// that the shell takes as it stands: nothing else than a literal and command() makes a line.
#pragma once

#include <fmt/format.h>

#include <concepts>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gdrx::doctor {

/// Text of our own, of as many words as it has.
class Literal {
 public:
  consteval Literal(const char* text) : text_(text) {}  // NOLINT(google-explicit-constructor)
  std::string_view text() const { return text_; }

 private:
  std::string_view text_;
};

/// One word of a shell: plain, or in single quotes. Control characters become '?' and a first '-',
/// which would make an option of a name, '_'.
class ShellWord {
 public:
  explicit ShellWord(std::string_view from_anywhere);
  ShellWord(Literal own) : text_(own.text()) {}  // NOLINT(google-explicit-constructor)
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

/// Letters, digits and "_.-" alone: a name that needs no quotes, and is no list.
bool is_plain_name(std::string_view text);

inline const std::string& shell_argument(const ShellWord& word) { return word.text(); }
inline std::string shell_argument(std::string_view text) { return ShellWord(text).text(); }
inline std::string_view shell_argument(Literal own) { return own.text(); }
template <std::integral Number>
Number shell_argument(Number number) {
  return number;
}

class ShellLine {
 public:
  template <std::size_t kSize>
  ShellLine(const char (&literal)[kSize])
      : text_(literal) {}  // NOLINT(google-explicit-constructor)
  const std::string& text() const { return text_; }

 private:
  explicit ShellLine(std::string text) : text_(std::move(text)) {}
  template <class... Values>
  friend ShellLine command(
      fmt::format_string<decltype(shell_argument(std::declval<const Values&>()))...> form,
      const Values&... values);
  std::string text_;
};
using Lines = std::vector<ShellLine>;

/// A line with each value in its place as one word. No placeholder stands in quotes.
template <class... Values>
ShellLine command(
    fmt::format_string<decltype(shell_argument(std::declval<const Values&>()))...> form,
    const Values&... values) {
  return ShellLine(fmt::format(form, shell_argument(values)...));
}

}  // namespace gdrx::doctor

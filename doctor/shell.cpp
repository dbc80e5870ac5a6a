// SPDX-License-Identifier: Apache-2.0
#include "doctor/shell.hpp"
#include "base/printable.hpp"

#include <algorithm>

namespace gdrx::doctor {
namespace {

bool is_alphanumeric(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

}  // namespace

bool is_plain_name(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return is_alphanumeric(c) || c == '_' || c == '.' || c == '-';
  });
}

ShellWord::ShellWord(std::string_view from_anywhere) {
  const bool plain =
      !from_anywhere.empty() && std::all_of(from_anywhere.begin(), from_anywhere.end(), [](char c) {
        return is_alphanumeric(c) || std::string_view("._:@/=-").find(c) != std::string_view::npos;
      });
  for (const char c : printable(from_anywhere, '?')) {
    if (text_.empty() && c == '-') {
      text_ += '_';
    } else if (c == '\'') {
      text_ += "'\\''";
    } else {
      text_ += c;
    }
  }
  if (!plain) text_ = "'" + text_ + "'";
}

}  // namespace gdrx::doctor

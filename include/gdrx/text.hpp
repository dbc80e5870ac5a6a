// SPDX-License-Identifier: Apache-2.0
// A text that never changes, so that its copies share it and none of them needs memory.
#pragma once

#include <concepts>
#include <cstddef>
#include <string>
#include <string_view>

namespace gdrx {

#if defined(__clang__) && __clang_major__ < 15  // which dies of it
#define GDRX_CONSTEVAL constexpr
#else
#define GDRX_CONSTEVAL consteval
#endif

/// Ends in a zero byte. Made of a literal it needs no memory at all.
class Text : public std::string_view {
 public:
  constexpr Text() noexcept : std::string_view("") {}
  template <std::size_t N>
  GDRX_CONSTEVAL Text(const char (&literal)[N]) noexcept : std::string_view(literal) {}
  template <class Pointer>
  requires std::same_as<Pointer, const char*> || std::same_as<Pointer, char*> Text(Pointer text)
      : Text(std::string(text)) {}
  Text(std::string text);
  constexpr Text(const Text& other) noexcept : std::string_view(other), shared_(other.shared_) {
    if (shared_ != nullptr) hold();
  }
  constexpr Text& operator=(const Text& other) noexcept {
    if (other.shared_ != nullptr) other.hold();
    if (shared_ != nullptr) let_go();
    std::string_view::operator=(other);
    shared_ = other.shared_;
    return *this;
  }
  constexpr ~Text() {
    if (shared_ != nullptr) let_go();
  }

  const char* c_str() const noexcept { return data(); }
  operator std::string() const { return std::string(data(), size()); }
  friend std::string operator+(std::string left, const Text& right) { return left.append(right); }
  friend std::string operator+(const Text& left, std::string_view right) {
    return std::string(left).append(right);
  }

 private:
  struct Shared;
  using std::string_view::remove_prefix;
  using std::string_view::remove_suffix;
  void hold() const noexcept;
  void let_go() noexcept;
  Shared* shared_ = nullptr;  // null: of a literal
};

}  // namespace gdrx

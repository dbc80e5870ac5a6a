// SPDX-License-Identifier: Apache-2.0
// A library of the system that may be missing: found by its names when it is needed, never linked.
// Its functions are taken by a table. Nothing here allocates but what puts an answer into words.
#pragma once

#include <dlfcn.h>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "gdrx/result.hpp"

namespace gdrx {

/// A row of a table of functions: where its pointer goes, and its name in the library.
class Symbol {
 public:
  enum class Need : std::uint8_t { always, newer };  // newer: null in a library that is older
  template <class Function>
  Symbol(Function*& place, const char* name, Need need = Need::always) noexcept
      : name_(name), place_(&place), need_(need), put_([](void* to, void* found) noexcept {
          *static_cast<Function**>(to) = reinterpret_cast<Function*>(found);
        }) {}

  const char* name() const noexcept { return name_; }
  bool needed() const noexcept { return need_ == Need::always; }
  void put(void* found) const noexcept { put_(place_, found); }

 private:
  const char* name_;
  void* place_;
  Need need_;
  void (*put_)(void*, void*) noexcept;
};

/// Closed at its end, unless it is kept.
class SystemLibrary {
 public:
  enum class If : std::uint8_t { there, loaded };  // loaded: only where this process has it already

  SystemLibrary() = default;
  /// The first of `names` that the loader finds. `absent`: why there is none, or what a user does
  /// then. Both have to outlive this.
  static SystemLibrary open(std::initializer_list<const char*> names, const char* absent = "",
                            If when = If::there) noexcept;
  SystemLibrary(SystemLibrary&& other) noexcept { *this = std::move(other); }
  SystemLibrary& operator=(SystemLibrary&& other) noexcept;
  ~SystemLibrary() { close(); }

  bool opened() const noexcept { return handle_ != nullptr; }
  /// It has been opened, and no symbol was missed that somebody needed.
  bool whole() const noexcept { return opened() && missing_ == nullptr; }
  const char* name() const noexcept { return name_; }
  /// "535.104.05": of the file that was found. Empty: its name has none.
  std::string version() const;

  /// Null if it is not there. `version`: of the symbol, where the library has several of the name.
  void* find(const char* symbol, const char* version = nullptr) const noexcept;
  /// The same of one without which the library is of no use.
  void* need(const char* symbol, const char* version = nullptr) noexcept;
  /// Fills the table. Whether the library has all that is needed of it.
  bool take(std::initializer_list<Symbol> table) noexcept;
  /// Errc::unsupported: why it is not whole(). `newer`: what to do where it is too old.
  Error error(std::string_view newer = {}) const;

  /// It stays loaded until the process ends: some cannot be unloaded.
  void keep() noexcept { kept_ = true; }

 private:
  void close() noexcept;

  void* handle_ = nullptr;
  const char* name_ = "";
  const char* absent_ = "";
  const char* missing_ = nullptr;  // the first needed symbol that is not there
  const char* missing_version_ = nullptr;
  bool kept_ = false;
};

}  // namespace gdrx

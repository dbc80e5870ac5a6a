// SPDX-License-Identifier: Apache-2.0
#include "base/system_library.hpp"

#include <fmt/format.h>
#include <link.h>

#include <filesystem>
#include <system_error>

namespace gdrx {

SystemLibrary SystemLibrary::open(std::initializer_list<const char*> names, const char* absent,
                                  If when) noexcept {
  SystemLibrary library;
  library.absent_ = absent;
  for (const char* const name : names) {
    library.name_ = name;
    library.handle_ = dlopen(name, RTLD_NOW | RTLD_LOCAL | (when == If::loaded ? RTLD_NOLOAD : 0));
    if (library.opened()) break;
  }
  return library;
}

SystemLibrary& SystemLibrary::operator=(SystemLibrary&& other) noexcept {
  if (this == &other) return *this;
  close();
  handle_ = std::exchange(other.handle_, nullptr);
  name_ = other.name_;
  absent_ = other.absent_;
  missing_ = other.missing_;
  missing_version_ = other.missing_version_;
  kept_ = other.kept_;
  return *this;
}

void SystemLibrary::close() noexcept {
  if (opened() && !kept_) dlclose(handle_);
  handle_ = nullptr;
}

std::string SystemLibrary::version() const {
  link_map* map = nullptr;
  if (!opened() || dlinfo(handle_, RTLD_DI_LINKMAP, &map) != 0) return {};
  std::error_code error;
  const auto file = std::filesystem::canonical(map->l_name, error).filename().string();
  constexpr std::string_view kMark = ".so.";
  const auto at = file.find(kMark);
  return error || at == std::string::npos ? std::string() : file.substr(at + kMark.size());
}

void* SystemLibrary::find(const char* symbol, const char* version) const noexcept {
  if (!opened()) return nullptr;
  return version == nullptr ? dlsym(handle_, symbol) : dlvsym(handle_, symbol, version);
}

void* SystemLibrary::need(const char* symbol, const char* version) noexcept {
  void* const found = find(symbol, version);
  if (found == nullptr && missing_ == nullptr) {
    missing_ = symbol;
    missing_version_ = version;
  }
  return found;
}

bool SystemLibrary::take(std::initializer_list<Symbol> table) noexcept {
  for (const Symbol& row : table) row.put(row.needed() ? need(row.name()) : find(row.name()));
  return whole();
}

Error SystemLibrary::error(std::string_view newer) const {
  if (!opened()) {
    const std::string_view absent = absent_;
    return {Errc::unsupported,
            fmt::format("{} cannot be loaded{}{}", name_, absent.empty() ? "" : ": ", absent)};
  }
  const std::string found = version();
  std::string what = found.empty() ? std::string(name_) : fmt::format("{} ({})", name_, found);
  what += fmt::format(" is too old: it lacks {}", missing_ == nullptr ? "nothing" : missing_);
  if (missing_version_ != nullptr) what += fmt::format("@{}", missing_version_);
  if (!newer.empty()) what += fmt::format("; {}", newer);
  return {Errc::unsupported, std::move(what)};
}

}  // namespace gdrx

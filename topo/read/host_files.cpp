// SPDX-License-Identifier: Apache-2.0
#include "topo/read/host_files.hpp"

#include <algorithm>
#include <array>
#include <fstream>

#include "topo/read/field_text.hpp"

namespace gdrx::topo {
namespace fs = std::filesystem;

std::string HostFiles::bytes(const fs::path& path, std::size_t most) const {
  if (tree_) return tree_->read(path.native()).substr(0, most);
  std::ifstream file(root_ / path, std::ios::binary);
  std::string text;
  std::array<char, 16 * 1024> block{};
  while (text.size() < most &&
         (file.read(block.data(), static_cast<std::streamsize>(block.size())), file.gcount() > 0)) {
    text.append(block.data(), static_cast<std::size_t>(file.gcount()));
  }
  if (text.size() > most) text.resize(most);
  return text;
}

std::string HostFiles::read(const fs::path& path) const {
  const std::string text = bytes(path, 64 * 1024);
  // sysfs says that its files have 4096 bytes; tar fills a copy up with zeros.
  const auto end = text.find_last_not_of('\0');
  return std::string(trim(std::string_view(text).substr(0, end == text.npos ? 0 : end + 1)));
}

std::vector<std::string> HostFiles::list(const fs::path& path) const {
  if (tree_) return tree_->list(path.native());
  constexpr std::size_t kMost = 65536;
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator at(root_ / path, error), end; !error && at != end;
       at.increment(error)) {
    names.push_back(at->path().filename().string());
    if (names.size() == kMost) break;
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string HostFiles::link(const fs::path& path) const {
  if (tree_) return tree_->link(path.native());
  std::error_code error;
  const fs::path target = fs::read_symlink(root_ / path, error);
  return error ? std::string() : target.string();
}

bool HostFiles::exists(const fs::path& path) const {
  if (tree_) return tree_->exists(path.native());
  std::error_code error;
  return fs::exists(root_ / path, error);
}

}  // namespace gdrx::topo

// SPDX-License-Identifier: Apache-2.0
#include "topo/read/host_files.hpp"

#include <algorithm>
#include <fstream>

#include "topo/read/text.hpp"

namespace gdrx::topo {
namespace fs = std::filesystem;

std::string HostFiles::read(const fs::path& path) const {
  std::ifstream file(root_ / path, std::ios::binary);
  std::string text(64 * 1024, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(std::max<std::streamsize>(0, file.gcount())));
  return std::string(trim(text));
}

std::vector<std::string> HostFiles::list(const fs::path& path) const {
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
  std::error_code error;
  const fs::path target = fs::read_symlink(root_ / path, error);
  return error ? std::string() : target.string();
}

bool HostFiles::exists(const fs::path& path) const {
  std::error_code error;
  return fs::exists(root_ / path, error);
}

}  // namespace gdrx::topo

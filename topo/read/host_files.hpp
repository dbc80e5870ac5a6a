// SPDX-License-Identifier: Apache-2.0
// sysfs and procfs below a root that is handed in: the live host's, a copy's, a snapshot's, a
// test's.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "topo/read/file_tree.hpp"

namespace gdrx::topo {

class HostFiles {
 public:
  explicit HostFiles(std::filesystem::path root) : root_(std::move(root)) {}
  explicit HostFiles(std::shared_ptr<const FileTree> tree) : tree_(std::move(tree)) {}

  /// First 64 KiB of a file, trimmed; empty where it cannot be read. `path` without a leading '/'.
  std::string read(const std::filesystem::path& path) const;
  /// The same, not trimmed, and of any length up to `most`.
  std::string bytes(const std::filesystem::path& path, std::size_t most) const;
  /// Names in a folder, sorted; empty where there is none. At most 65536.
  std::vector<std::string> list(const std::filesystem::path& path) const;
  /// What a symbolic link says, not followed: a link that leads out of the root is only a text.
  std::string link(const std::filesystem::path& path) const;
  bool exists(const std::filesystem::path& path) const;

 private:
  std::filesystem::path root_;
  std::shared_ptr<const FileTree> tree_;  // instead of the root
};

}  // namespace gdrx::topo

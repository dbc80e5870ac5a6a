// SPDX-License-Identifier: Apache-2.0
// Files of a host held in memory. Nothing is ever unpacked to a disk: what an archive calls its
// files cannot name a file of this machine, and its links lead inside the tree or nowhere.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gdrx/result.hpp"

namespace gdrx::topo {

class FileTree {
 public:
  enum class Kind : std::uint8_t { folder, file, link };

  FileTree() : nodes_(1) {}

  /// "sys/class" or "./sys/class". Errc::invalid_argument for "..", an absolute or too deep path, a
  /// path through a file or a link, and one that is there already (folders may be named again).
  Result<void> add(std::string_view path, Kind kind, std::string text);

  /// Empty where it cannot be read. Links are followed, inside the tree.
  std::string read(std::string_view path) const;
  std::vector<std::string> list(std::string_view path) const;  // sorted
  std::string link(std::string_view path) const;
  bool exists(std::string_view path) const;
  std::size_t size() const noexcept { return nodes_.size() - 1; }  // entries

 private:
  struct Node {
    Kind kind = Kind::folder;
    std::string text;  // of a file; where a link leads
    std::map<std::string, std::size_t, std::less<>> children;
  };
  std::optional<std::size_t> find(std::string_view path, bool follow_last) const;
  std::vector<Node> nodes_;  // the first is the root
};

}  // namespace gdrx::topo

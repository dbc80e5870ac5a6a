// SPDX-License-Identifier: Apache-2.0
// A tar archive as a tree in memory, and back, by libarchive. Refuses hard links, sparse files,
// device nodes and everything that is larger than a snapshot can be.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "topo/read/file_tree.hpp"

struct archive;

namespace gdrx::topo {

inline constexpr std::size_t kMostSnapshotBytes = std::size_t{64} << 20;  // unpacked
inline constexpr std::size_t kMostSnapshotEntries = 200000;

bool is_gzip(std::string_view bytes) noexcept;
/// At most so many bytes. Errors here and below are one line without the archive's name.
Result<std::string> gunzip(std::string_view bytes, std::size_t most);
/// Of an archive that is not packed: what it holds is no larger than it.
Result<FileTree> parse_tar(std::string_view bytes);

enum class Packing { none, gzip };

class TarWriter {
 public:
  explicit TarWriter(Packing packing);
  void add(std::string_view path, FileTree::Kind kind, std::string_view text);
  /// The whole archive, once. Its times are 0 and its owner root: the same files give the same
  /// bytes.
  Result<std::string> finish();

 private:
  struct Close {
    void operator()(archive* of) const noexcept;
  };
  void check(int status);
  std::unique_ptr<std::string> bytes_;  // before what writes to it
  std::unique_ptr<archive, Close> archive_;
  std::string failed_;
};

}  // namespace gdrx::topo

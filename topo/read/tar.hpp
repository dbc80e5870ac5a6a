// SPDX-License-Identifier: Apache-2.0
// A tar archive as a tree in memory, and back. Reads what GNU and POSIX tar write; refuses hard
// links, device nodes and everything that is larger than a snapshot can be.
#pragma once

#include <string>
#include <string_view>

#include "topo/read/file_tree.hpp"

namespace gdrx::topo {

inline constexpr std::size_t kMostSnapshotBytes = std::size_t{64} << 20;  // unpacked
inline constexpr std::size_t kMostSnapshotEntries = 200000;

/// Errors are one line without the archive's name.
Result<FileTree> parse_tar(std::string_view bytes);

class TarWriter {
 public:
  void add(std::string_view path, FileTree::Kind kind, std::string_view text);
  /// The whole archive. Its times are 0 and its owner root: the same files give the same bytes.
  std::string finish();

 private:
  void header(std::string_view path, char type, std::size_t size, std::string_view link);
  void body(std::string_view text);
  std::string bytes_;
};

/// gzip. Errc::unsupported where gdrx was built without zlib.
bool is_gzip(std::string_view bytes) noexcept;
Result<std::string> gunzip(std::string_view bytes, std::size_t most);
Result<std::string> gzip(std::string_view bytes);
bool has_zlib() noexcept;

}  // namespace gdrx::topo

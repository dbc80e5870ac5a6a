// SPDX-License-Identifier: Apache-2.0
#include "gdrx/snapshot.hpp"

#include <fmt/format.h>

#include "topo/read/tar.hpp"

namespace gdrx::topo {

bool is_snapshot(std::string_view bytes) noexcept {
  return is_gzip(bytes) || (bytes.size() > 262 && bytes.substr(257, 5) == "ustar");
}

Result<Snapshot> parse_snapshot(std::string_view bytes, std::string source) {
  const auto named = [&](const Error& error) {
    return fail(error.code, fmt::format("{}: {}", source, error.what), error.native);
  };
  if (bytes.empty()) return fail(Errc::invalid_argument, source + ": empty");
  std::string unpacked;
  if (is_gzip(bytes)) {
    auto plain = gunzip(bytes, kMostSnapshotBytes);
    if (!plain) return named(plain.error());
    unpacked = *std::move(plain);
    bytes = unpacked;
  }
  if (bytes.size() > kMostSnapshotBytes) {
    return fail(Errc::invalid_argument, source + ": too large for a snapshot");
  }
  auto tree = parse_tar(bytes);
  if (!tree) return named(tree.error());
  return Snapshot{std::move(source), std::make_shared<const FileTree>(*std::move(tree))};
}

}  // namespace gdrx::topo

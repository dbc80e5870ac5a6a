// SPDX-License-Identifier: Apache-2.0
#include "collectives/comm/version_agreement.hpp"

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <span>
#include <vector>

namespace gdrx {
namespace {

constexpr std::uint32_t kVersionMagic = 0x67647876;  // "gdxv"
constexpr std::ptrdiff_t kBytes = 8;

/// 0: what came is from a gdrx that does not say.
std::uint32_t version_in(const Blob& blob) {
  std::array<std::uint32_t, 2> words{};
  if (blob.size() < sizeof words) return 0;
  std::memcpy(words.data(), blob.data(), sizeof words);
  return words[0] == kVersionMagic ? words[1] : 0;
}

}  // namespace

std::string version_text(std::uint32_t version) {
  if (version == 0) return "of a version too old to say which";
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

Blob say_version(std::uint32_t mine, std::span<const std::byte> more) {
  const std::array<std::uint32_t, 2> words{kVersionMagic, mine};
  const auto head = std::as_bytes(std::span(words));
  Blob told(head.begin(), head.end());
  told.insert(told.end(), more.begin(), more.end());
  return told;
}

Result<std::vector<Blob>> check_versions(Bootstrap& bootstrap, std::span<const std::byte> told,
                                         Deadline deadline) {
  std::vector<Blob> all = GDRX_TRY(bootstrap.all_gather(told, deadline));
  const std::uint32_t first = version_in(all.front());
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    const std::uint32_t other = version_in(all[rank]);
    if (other == first) continue;
    bootstrap.end();  // every rank finds it
    return fail(Errc::mismatch, fmt::format("rank 0 runs gdrx {} and rank {} gdrx {}: install the "
                                            "same version everywhere",
                                            version_text(first), rank, version_text(other)));
  }
  for (Blob& blob : all) blob.erase(blob.begin(), blob.begin() + kBytes);
  return all;
}

}  // namespace gdrx

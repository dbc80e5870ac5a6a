// SPDX-License-Identifier: Apache-2.0
// What a rank that cannot go on says in place of what the others gather.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "base/printable.hpp"
#include "gdrx/bootstrap.hpp"

namespace gdrx {

/// Nothing else that ranks gather begins like this.
inline constexpr std::string_view kFarewell = "\x01gdrx gives up\x02";
inline constexpr std::size_t kMostFarewell = 4096;

inline Blob write_farewell(const Error& why) {
  const std::string text = describe(why);
  const auto head = std::as_bytes(std::span(kFarewell));
  const auto rest = std::as_bytes(std::span(text)).first(std::min(text.size(), kMostFarewell));
  Blob blob(head.begin(), head.end());
  blob.push_back(static_cast<std::byte>(why.code));
  blob.insert(blob.end(), rest.begin(), rest.end());
  return blob;
}

/// Nothing: it is something else. What comes is not trusted.
inline std::optional<Error> read_farewell(std::span<const std::byte> blob) {
  const auto head = std::as_bytes(std::span(kFarewell));
  if (blob.size() <= head.size() || !std::equal(head.begin(), head.end(), blob.begin())) return {};
  const auto code = std::to_integer<unsigned>(blob[head.size()]);
  const auto last = static_cast<unsigned>(Errc::internal);
  const auto rest = blob.subspan(head.size() + 1);
  return Error{code <= last ? Errc{static_cast<std::uint8_t>(code)} : Errc::protocol,
               printable(rest.first(std::min(rest.size(), kMostFarewell))), 0};
}

}  // namespace gdrx

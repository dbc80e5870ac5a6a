// SPDX-License-Identifier: Apache-2.0
// A secret that all ranks share, read from a file. With it a connection's hello carries not the
// nonce, which whoever sees it could repeat, but a token that fits one place in one communicator
// alone: from whom, to whom, of which nonce. It lets nobody in who lacks the secret, and lets no
// rank join somebody else's root. It hides nothing, and does not protect what follows the hello
// from those who can change packets on their way.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gdrx/result.hpp"

namespace gdrx {

/// In place of a nonce.
using Token = std::array<std::uint64_t, 2>;

// Roles: a rank to its root and the root's answer; the two ends of a link between ranks.
inline constexpr std::string_view kRankRole = "gdrx rank";
inline constexpr std::string_view kRootRole = "gdrx root";
inline constexpr std::string_view kLinkRole = "gdrx link";

class Secret {
 public:
  Secret() = default;  // none: tokens are the nonce itself
  explicit Secret(std::span<const std::byte> key) : key_(key.begin(), key.end()) {}
  /// Errc::invalid_argument for a file that others may read, or with fewer than 16 bytes or more
  /// than 4096; white space at its end does not count. No path: no secret.
  static Result<Secret> load(const std::string& path);

  bool given() const noexcept { return !key_.empty(); }
  /// `role` tells conversations apart; `a` and `b` are the two ends, or a rank and the size.
  Token token(std::string_view role, const std::uint64_t (&nonce)[2], std::int32_t a,
              std::int32_t b) const;
  /// What only who knows the secret can say to `challenge`, numbers that nobody used before.
  Token answer(std::string_view role, std::span<const std::uint64_t> challenge) const;

 private:
  std::vector<std::byte> key_;
};

/// Takes as long wherever they differ.
bool same(const Token& a, const std::uint64_t (&b)[2]) noexcept;

}  // namespace gdrx

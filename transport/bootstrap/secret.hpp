// SPDX-License-Identifier: Apache-2.0
// The secret of GDRX_SECRET_FILE, and a job's key. The key is 32 random bytes that a launcher hands
// on (in a unique id, by MPI, in NCCL's handle); the secret is mixed in, so that who sees what the
// launcher carries still has no key.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "gdrx/result.hpp"
#include "transport/secure/key.hpp"

namespace gdrx {

class Secret {
 public:
  Secret() = default;  // none
  /// Stretched with scrypt, some 40 ms once a process: guessing it costs as much a guess.
  /// Errc::invalid_argument for fewer than 16 bytes or more than 4096.
  static Result<Secret> of(std::span<const std::byte> text);
  /// A regular file of this user's or root's that nobody else may read or write; white space at its
  /// end does not count. Errc::invalid_argument says what is wrong with it. No path: no secret.
  static Result<Secret> load(const std::string& path);

  bool given() const noexcept { return stretched_.has_value(); }
  /// The job's key from what the launcher handed on. Not the same with a secret and without.
  Result<Key> job_key(const Key& handed_on) const;
  friend bool operator==(const Secret&, const Secret&) = default;

 private:
  std::optional<Key> stretched_;
};

}  // namespace gdrx

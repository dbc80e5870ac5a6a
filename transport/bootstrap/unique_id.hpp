// SPDX-License-Identifier: Apache-2.0
// The 128 bytes by which ranks find each other without MPI. They hold the job's key, so that they
// are a secret.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "gdrx/log.hpp"
#include "gdrx/result.hpp"
#include "transport/bootstrap/secret.hpp"
#include "transport/bootstrap/socket.hpp"

namespace gdrx {

struct UniqueId {
  std::uint32_t magic = 0;
  std::uint32_t version = 0;
  std::uint64_t nonce[2] = {};
  std::array<std::byte, Key::kBytes> key{};
  SocketAddress root;
  std::uint32_t checksum = 0;  // of everything before it
  std::array<std::uint8_t, 48> reserved{};
};
static_assert(sizeof(UniqueId) == 128 && std::is_trivially_copyable_v<UniqueId>);

/// An id with a fresh nonce and key for a root that listens at `root`.
Result<UniqueId> make_id_for(const SocketAddress& root);

/// Refuses ids that were cut, mangled or made by another version.
Result<UniqueId> decode_unique_id(std::span<const std::byte> bytes);

/// What ranks and root of that id talk by, and what a rank says that it wants.
Result<Key> root_key(const UniqueId& id, const Secret& secret);
/// By which ranks of its host find it without a network: of its address, too. Not of the secret:
/// everyone on the host can read the name.
Result<std::string> root_name(const UniqueId& id);
inline constexpr std::string_view kRootIdentity = "gdrx-root-2";

/// Starts a root in this process (see root.hpp) and returns its id. The root serves one set of
/// ranks and ends with them, or with the process.
Result<UniqueId> make_unique_id(const std::string& socket_ifname, const Log& log,
                                const Secret& secret = {}, PortRange ports = {});
/// Its root ends, if it is in this process: who waits there is told by the end of the connection.
void retire_unique_id(const UniqueId& id) noexcept;

}  // namespace gdrx

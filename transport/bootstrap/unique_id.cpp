// SPDX-License-Identifier: Apache-2.0
#include "transport/bootstrap/unique_id.hpp"

#include <fmt/format.h>
#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>

namespace gdrx {
namespace {

constexpr std::uint32_t kIdMagic = 0x64697267;  // "grid"
constexpr std::uint32_t kIdVersion = 2;

// FNV-1a: against mangling, not against forging.
std::uint32_t checksum_of(const UniqueId& id) {
  std::uint32_t hash = 2166136261u;
  const auto bytes = std::as_bytes(std::span(&id, 1)).first(offsetof(UniqueId, checksum));
  for (const std::byte b : bytes) hash = (hash ^ static_cast<std::uint32_t>(b)) * 16777619u;
  return hash;
}

}  // namespace

Result<UniqueId> make_id_for(const SocketAddress& root) {
  UniqueId id;
  id.magic = kIdMagic;
  id.version = kIdVersion;
  id.root = root;
  if (getrandom(id.nonce, sizeof id.nonce, 0) != sizeof id.nonce) {
    return fail(Errc::system, "getrandom", errno);
  }
  const Key key = GDRX_TRY(Key::random());
  std::copy(key.bytes().begin(), key.bytes().end(), id.key.begin());
  id.checksum = checksum_of(id);
  return id;
}

Result<Key> root_key(const UniqueId& id, const Secret& secret) {
  return derive(GDRX_TRY(secret.job_key(Key(id.key))), "gdrx root",
                KeyContext().add(id.nonce[0]).add(id.nonce[1]));
}

Result<std::string> root_name(const UniqueId& id) {
  const Key name =
      GDRX_TRY(derive(Key(id.key), "gdrx root name", KeyContext().add(to_string(id.root))));
  std::string text = "gdrx-root-";
  for (const std::byte byte : name.bytes())
    text += fmt::format("{:02x}", std::to_integer<int>(byte));
  return text;
}

Result<UniqueId> decode_unique_id(std::span<const std::byte> bytes) {
  UniqueId id;
  if (bytes.size() != sizeof id) {
    return fail(Errc::invalid_argument,
                fmt::format("a unique id has {} bytes, not {}", sizeof id, bytes.size()));
  }
  std::memcpy(&id, bytes.data(), sizeof id);
  if (id.magic != kIdMagic) {
    return fail(Errc::invalid_argument,
                "this is no unique id: make one with gdrxGetUniqueId and "
                "hand its 128 bytes on unchanged");
  }
  if (id.version != kIdVersion) {
    return fail(Errc::invalid_argument,
                fmt::format("a unique id of version {} where {} is understood: use the same gdrx "
                            "everywhere",
                            id.version, kIdVersion));
  }
  if (id.checksum != checksum_of(id) || (id.root.family != 4 && id.root.family != 6)) {
    return fail(Errc::invalid_argument,
                "the unique id was changed on its way: hand its 128 bytes "
                "on unchanged");
  }
  return id;
}

}  // namespace gdrx

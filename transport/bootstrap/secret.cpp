// SPDX-License-Identifier: Apache-2.0
#include "transport/bootstrap/secret.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <initializer_list>

#include "transport/bootstrap/sha256.hpp"

namespace gdrx {
namespace {

constexpr std::size_t kLeast = 16;
constexpr std::size_t kMost = 4096;

tl::unexpected<Error> refused(const std::string& path, const std::string& why, int error = 0) {
  return fail(Errc::invalid_argument, fmt::format("GDRX_SECRET_FILE={}: {}", path, why), error);
}

bool is_space(std::byte byte) {
  return byte == std::byte{'\n'} || byte == std::byte{'\r'} || byte == std::byte{' '};
}

Token sign(std::span<const std::byte> key,
           std::initializer_list<std::span<const std::byte>> parts) {
  std::vector<std::byte> message;
  for (const auto part : parts) message.insert(message.end(), part.begin(), part.end());
  const Digest digest = hmac_sha256(key, message);
  Token token;
  static_assert(sizeof token <= sizeof digest);
  std::memcpy(token.data(), digest.data(), sizeof token);
  return token;
}

}  // namespace

Result<Secret> Secret::load(const std::string& path) {
  if (path.empty()) return Secret();
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return refused(path, "it cannot be read", errno);
  struct stat facts {};
  std::vector<std::byte> bytes(kMost + 1);
  const bool known = fstat(fd, &facts) == 0;
  std::size_t size = 0;
  while (size < bytes.size()) {
    const ssize_t count = read(fd, bytes.data() + size, bytes.size() - size);
    if (count <= 0) break;
    size += static_cast<std::size_t>(count);
  }
  close(fd);
  if (!known || (facts.st_mode & 077) != 0) {
    return refused(path, "others may read or write it: chmod 600");
  }
  while (size > 0 && is_space(bytes[size - 1])) --size;
  if (size < kLeast || size > kMost) {
    return refused(path, fmt::format("a secret has {} to {} bytes", kLeast, kMost));
  }
  return Secret(std::span(bytes).first(size));
}

Token Secret::token(std::string_view role, const std::uint64_t (&nonce)[2], std::int32_t a,
                    std::int32_t b) const {
  if (!given()) return {nonce[0], nonce[1]};
  const std::array<std::int32_t, 2> ends{a, b};
  return sign(key_, {std::as_bytes(std::span(nonce)), std::as_bytes(std::span(ends)),
                     std::as_bytes(std::span(role))});
}

Token Secret::answer(std::string_view role, std::span<const std::uint64_t> challenge) const {
  return sign(key_, {std::as_bytes(challenge), std::as_bytes(std::span(role))});
}

bool same(const Token& a, const std::uint64_t (&b)[2]) noexcept {
  return ((a[0] ^ b[0]) | (a[1] ^ b[1])) == 0;
}

}  // namespace gdrx

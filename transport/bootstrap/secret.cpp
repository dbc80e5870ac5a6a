// SPDX-License-Identifier: Apache-2.0
#include "transport/bootstrap/secret.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <mutex>
#include <vector>

namespace gdrx {
namespace {

constexpr std::size_t kLeast = 16;
constexpr std::size_t kLongestSecret = 4096;

tl::unexpected<Error> refused(const std::string& path, const std::string& why, int error = 0) {
  return fail(Errc::invalid_argument, fmt::format("GDRX_SECRET_FILE={}: {}", path, why), error);
}

bool is_space(std::byte byte) {
  return byte == std::byte{'\n'} || byte == std::byte{'\r'} || byte == std::byte{' '};
}

struct Descriptor {
  int fd = -1;
  ~Descriptor() {
    if (fd >= 0) close(fd);
  }
};

struct Wiped {
  std::vector<std::byte> bytes;
  ~Wiped() { wipe(bytes); }
};

Result<void> check_owner(const std::string& path, int fd) {
  struct stat facts {};
  if (fstat(fd, &facts) != 0) return refused(path, "fstat", errno);
  if (!S_ISREG(facts.st_mode)) return refused(path, "it is no regular file");
  if (facts.st_uid != geteuid() && facts.st_uid != 0) {
    return refused(
        path, fmt::format("it belongs to user {}, neither to this one nor to root", facts.st_uid));
  }
  if ((facts.st_mode & 077) != 0) return refused(path, "others may read or write it: chmod 600");
  return {};
}

}  // namespace

Result<Secret> Secret::of(std::span<const std::byte> text) {
  if (text.size() < kLeast || text.size() > kLongestSecret) {
    return fail(Errc::invalid_argument,
                fmt::format("a secret has {} to {} bytes", kLeast, kLongestSecret));
  }
  // A process that makes many communicators stretches once.
  static std::mutex mutex;
  static std::optional<Key> last_name;
  static Key last;
  const Key name = GDRX_TRY(derive(text, "gdrx secret seen before"));
  const std::lock_guard lock(mutex);
  if (!last_name || !(*last_name == name)) {
    last = GDRX_TRY(stretch(text, "gdrx secret"));
    last_name = name;
  }
  Secret secret;
  secret.stretched_ = last;
  return secret;
}

Result<Secret> Secret::load(const std::string& path) {
  if (path.empty()) return Secret();
  // Not blocking: what is no file might make us wait.
  const Descriptor file{open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)};
  if (file.fd < 0) return refused(path, "it cannot be read", errno);
  GDRX_TRY(check_owner(path, file.fd));
  Wiped text{std::vector<std::byte>(kLongestSecret + 1)};
  std::size_t size = 0;
  while (size < text.bytes.size()) {
    const ssize_t count = read(file.fd, text.bytes.data() + size, text.bytes.size() - size);
    if (count <= 0) break;
    size += static_cast<std::size_t>(count);
  }
  while (size > 0 && is_space(text.bytes[size - 1])) --size;
  auto secret = of(std::span(text.bytes).first(size));
  if (!secret) return refused(path, secret.error().what);
  return secret;
}

Result<Key> Secret::job_key(const Key& handed_on) const {
  if (!given()) return derive(handed_on, "gdrx job without a secret");
  Wiped both;
  both.bytes.reserve(2 * Key::kBytes);  // never moved, which would leave a copy
  for (const Key* key : {&handed_on, &*stretched_}) {
    both.bytes.insert(both.bytes.end(), key->bytes().begin(), key->bytes().end());
  }
  return derive(both.bytes, "gdrx job with a secret");
}

}  // namespace gdrx

// SPDX-License-Identifier: Apache-2.0
// A peer is killed after it has told where its memory is, and before anybody has asked for it.
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "tests/ucx/pair.hpp"

namespace gdrx::test {
namespace {

// What the importing process ends with.
constexpr int kRefused = 0;
constexpr int kImported = 1;
constexpr int kOther = 2;

struct Told {
  std::array<std::byte, 4096> bytes;
  std::size_t address = 0;
  std::size_t key = 0;
};

std::shared_ptr<Device> open_ucx(int rank, const std::string& tls) {
  const Config config = ucx_config(tls);
  auto fabric = open_fabric("ucx", config, Log({}, nullptr));
  if (!fabric) _exit(kOther);
  auto device = (*fabric)->open_device(Rank{rank}, config, Log({}, nullptr));
  if (!device) _exit(kOther);
  return *device;
}

[[noreturn]] void tell(int to, const std::string& tls) {
  const auto device = open_ucx(1, tls);
  const auto region = device->allocate_memory(1 << 20);
  if (!region) _exit(kOther);
  const Blob address = device->address();
  const Blob key = (*region)->export_key();
  Told told;
  told.address = address.size();
  told.key = key.size();
  if (address.size() + key.size() > told.bytes.size()) _exit(kOther);
  std::ranges::copy(address, told.bytes.begin());
  std::ranges::copy(key, told.bytes.begin() + static_cast<std::ptrdiff_t>(address.size()));
  if (write(to, &told, sizeof told) != sizeof told) _exit(kOther);
  while (true) pause();
}

[[noreturn]] void import(const std::string& tls, bool alive) {
  int ends[2];
  if (pipe(ends) != 0) _exit(kOther);
  const pid_t peer = fork();
  if (peer == 0) tell(ends[1], tls);
  close(ends[1]);
  Told told;
  if (read(ends[0], &told, sizeof told) != sizeof told) _exit(kOther);
  const std::span<const std::byte> words = told.bytes;
  const auto device = open_ucx(0, tls);
  const auto endpoint = device->connect(Rank{1}, words.first(told.address));
  if (!endpoint) _exit(kOther);
  const auto end = [peer] {
    kill(peer, SIGKILL);
    waitpid(peer, nullptr, 0);
  };
  if (!alive) end();
  const auto region = (*endpoint)->import_region(words.subspan(told.address, told.key));
  if (alive) end();
  if (region) _exit(kImported);
  _exit(region.error().code == Errc::peer_lost ? kRefused : kOther);
}

int status_of_import(const std::string& tls, bool alive) {
  const pid_t child = fork();
  if (child == 0) import(tls, alive);
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

TEST(DeadPeer, WhoseMemoryIsGoneIsLostAndEndsNobodyElse) {
  EXPECT_EQ(status_of_import({}, true), kImported << 8);
  EXPECT_EQ(status_of_import({}, false), kRefused << 8);
}

}  // namespace
}  // namespace gdrx::test

// SPDX-License-Identifier: Apache-2.0
// Ranks as processes: what one maps of another, and what stays when it dies.
#include <dirent.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "tests/shm/pair.hpp"
#include "transport/shm/wire.hpp"

namespace gdrx::test {
namespace {

constexpr std::size_t kBytes = 1 << 20;

/// What a rank tells the other.
struct Told {
  std::array<std::byte, sizeof(shm::Address)> address;
  std::array<std::byte, sizeof(shm::RegionKey)> key;
};

Told tell(const Device& device, const MemoryRegion& region) {
  Told told;
  std::ranges::copy(device.address(), told.address.begin());
  std::ranges::copy(region.export_key(), told.key.begin());
  return told;
}

/// Rank 1 in a child, connected with the test's rank 0 by two pipes.
class ShmProcess : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(pipe(down_), 0);
    ASSERT_EQ(pipe(up_), 0);
  }
  void TearDown() override {
    end();
    for (const int fd : {down_[0], down_[1], up_[0], up_[1]}) close(fd);
  }
  void start(const std::function<int()>& life) {
    child_ = fork();
    if (child_ == 0) _exit(life());
  }
  // The child's exit status, or -signal.
  int end(int signal = SIGKILL) {
    if (child_ <= 0) return 0;
    if (signal != 0) kill(child_, signal);
    int status = 0;
    waitpid(child_, &status, 0);
    child_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  static bool give(const int* ends, const Told& told) {
    return write(ends[1], &told, sizeof told) == sizeof told;
  }
  static bool get(const int* ends, Told& told) {
    return read(ends[0], &told, sizeof told) == sizeof told;
  }

  int down_[2] = {-1, -1}, up_[2] = {-1, -1};
  pid_t child_ = 0;
};

// Each message's number is in its payload; the other rank gives it back.
TEST_F(ShmProcess, ExchangesMessagesWhoseBytesAreThereWhenTheirWordIs) {
  constexpr std::uint32_t kRounds = 20'000;
  start([this] {
    const auto device = open_shm(Rank{1}, 2);
    const auto region = device->allocate_memory(kBytes).value();
    Told theirs;
    if (!give(up_, tell(*device, *region)) || !get(down_, theirs)) return 1;
    const auto endpoint = device->connect(Rank{0}, theirs.address).value();
    const RemoteRegionId remote = endpoint->import_region(theirs.key).value();
    std::array<Completion, 4> some;
    for (std::uint32_t left = kRounds; left > 0;) {
      const auto count = device->poll(some);
      if (!count) return 2;
      for (std::size_t i = 0; i < *count; ++i) {
        if (some[i].kind != CompletionKind::immediate) continue;
        const std::size_t at = some[i].immediate % 1000 * 1000;
        WriteOp op = write_of(region->bytes().subspan(at, 1000), remote, at);
        op.immediate = some[i].immediate;
        if (endpoint->post(op).value() != Progress::done) return 3;
        --left;
      }
      if (*count == 0) sched_yield();
    }
    return 0;
  });
  const auto device = open_shm(Rank{0}, 2);
  const auto region = device->allocate_memory(kBytes).value();
  Told theirs;
  ASSERT_TRUE(get(up_, theirs));
  const auto endpoint = device->connect(Rank{1}, theirs.address).value();
  const RemoteRegionId remote = endpoint->import_region(theirs.key).value();
  ASSERT_TRUE(give(down_, tell(*device, *region)));
  std::array<Completion, 16> some;
  std::uint32_t posted = 0, got = 0;
  while (got < kRounds) {
    if (posted < kRounds && posted - got < 100) {
      const Blob payload(1000, static_cast<std::byte>(posted % 251));
      WriteOp op = write_of(payload, remote, posted % 1000 * 1000);
      op.immediate = posted;
      ASSERT_EQ(endpoint->post(op).value(), Progress::done);
      ++posted;
    }
    const std::size_t count = device->poll(some).value();
    for (std::size_t i = 0; i < count; ++i) {
      if (some[i].kind != CompletionKind::immediate) continue;
      ASSERT_EQ(some[i].immediate, got);
      const auto bytes = region->bytes().subspan(got % 1000 * 1000, 1000);
      ASSERT_TRUE(std::all_of(bytes.begin(), bytes.end(), [&](std::byte b) {
        return b == static_cast<std::byte>(got % 251);
      })) << got;
      ++got;
    }
    if (count == 0) sched_yield();
  }
  EXPECT_EQ(end(0), 0);
}

TEST_F(ShmProcess, ThatIsKilledLeavesItsMemoryToWhomHasMappedItAndIsLostToOthers) {
  start([this] {
    const auto device = open_shm(Rank{1}, 2);
    const auto region = device->allocate_memory(kBytes).value();
    if (!give(up_, tell(*device, *region))) return 1;
    while (true) pause();
  });
  Told theirs;
  ASSERT_TRUE(get(up_, theirs));
  const auto device = open_shm(Rank{0}, 2);
  const auto endpoint = device->connect(Rank{1}, theirs.address).value();
  const RemoteRegionId remote = endpoint->import_region(theirs.key).value();
  const auto late = device->connect(Rank{1}, theirs.address).value();
  end();
  EXPECT_EQ(endpoint->post(write_of(Blob(1000), remote, 0)).value(), Progress::done);
  endpoint->release_region(remote);
  const auto imported = late->import_region(theirs.key);
  ASSERT_FALSE(imported);
  EXPECT_EQ(imported.error().code, Errc::peer_lost);
  EXPECT_NE(imported.error().what.find("rank 1"), std::string::npos) << imported.error().what;
}

std::size_t memfds() {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const auto target = std::filesystem::read_symlink(entry.path(), gone);
    if (target.string().find("memfd:gdrx") != std::string::npos) ++count;
  }
  return count;
}

TEST_F(ShmProcess, HasNoDescriptorOfItsParentsMemoryAndLeavesNoneBehind) {
  const std::size_t before = memfds();
  {
    ShmPair pair;
    pair.import();
    EXPECT_EQ(memfds(), before + 3) << "two mailboxes and a region, each with its maker";
    start([] { return static_cast<int>(memfds()); });
    EXPECT_EQ(end(0), 0);
  }
  EXPECT_EQ(memfds(), before);
}

TEST_F(ShmProcess, MapsWhatItsRanksShareOnce) {
  const auto mappings = [] {
    std::size_t count = 0;
    std::unique_ptr<FILE, int (*)(FILE*)> maps(fopen("/proc/self/maps", "re"), &fclose);
    std::array<char, 512> line{};
    while (fgets(line.data(), line.size(), maps.get()) != nullptr) {
      if (std::strstr(line.data(), "memfd:gdrx") != nullptr) ++count;
    }
    return count;
  };
  const std::size_t before = mappings();
  {
    ShmPair pair;
    pair.import();
    EXPECT_EQ(mappings(), before + 3);
  }
  EXPECT_EQ(mappings(), before);
}

}  // namespace
}  // namespace gdrx::test

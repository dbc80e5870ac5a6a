// SPDX-License-Identifier: Apache-2.0
// Strangers at the doors of a mesh and of an id's root: whatever they say, they cost no thread, no
// more descriptors than a bound, and no rank its place.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <filesystem>
#include <thread>

#include "transport/bootstrap/acceptor.hpp"
#include "transport/bootstrap/root.hpp"
#include "transport/bootstrap/tcp_bootstrap.hpp"
#include "transport/bootstrap/thread_bootstrap.hpp"

namespace gdrx {
namespace {

using namespace std::chrono_literals;

Deadline in(Duration time) { return Deadline::after(steady_clock(), time); }

std::ptrdiff_t entries_of(const std::string& folder) {
  const std::filesystem::directory_iterator entries(folder);
  return std::distance(begin(entries), end(entries));
}

/// What it says; then it hangs on.
enum class Says : std::uint8_t { nothing, garbage, half_a_hello, a_hello_by_another_key };

Socket stranger(const SocketAddress& at, const std::string& identity, Says what) {
  Socket socket = std::move(*Socket::connect(at, in(5s)));
  Blob words;
  if (what == Says::garbage) words = Blob(1000, std::byte{0x5a});
  if (what == Says::half_a_hello || what == Says::a_hello_by_another_key) {
    auto session = TlsSession::client(identity, *Key::random());
    EXPECT_TRUE(session->handshake());
    words.assign(session->unsent().begin(), session->unsent().end());
    if (what == Says::half_a_hello) words.resize(words.size() / 2);
  }
  EXPECT_TRUE(words.empty() || socket.send_all(words, in(5s)));
  return socket;
}

std::vector<Socket> crowd(const SocketAddress& at, const std::string& identity, int of_each) {
  std::vector<Socket> all;
  for (int i = 0; i < of_each; ++i) {
    for (const Says what :
         {Says::nothing, Says::garbage, Says::half_a_hello, Says::a_hello_by_another_key}) {
      all.push_back(stranger(at, identity, what));
    }
  }
  return all;
}

// In a process that may have few descriptors, so that their bound is near.
TEST(Strangers, AtARootAreBoundedAndKeepNoRankOut) {
  constexpr rlim_t kDescriptors = 80;
  int ends[2] = {};
  ASSERT_EQ(pipe(ends), 0);
  const pid_t process = fork();
  if (process == 0) {
    const rlimit few{kDescriptors, kDescriptors};
    setrlimit(RLIMIT_NOFILE, &few);
    const auto root = BootstrapRoot::start(loopback_address(), Log());
    [[maybe_unused]] const auto told = write(ends[1], &(*root)->id(), sizeof(UniqueId));
    std::this_thread::sleep_for(60s);
    _exit(0);
  }
  std::array<std::byte, sizeof(UniqueId)> bytes{};
  ASSERT_EQ(read(ends[0], bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  const auto id = std::bit_cast<UniqueId>(bytes);
  const std::string folder = "/proc/" + std::to_string(process);
  const auto threads = entries_of(folder + "/task");
  const auto descriptors = entries_of(folder + "/fd");
  const std::vector<Socket> all = crowd(id.root, std::string(kRootIdentity), 12);
  std::atomic<bool> made{false};
  std::jthread rank([&] {
    const auto joined = TcpBootstrap::create(id, Rank{0}, 1, Log(), in(30s));
    EXPECT_TRUE(joined) << describe(joined.error());
    EXPECT_TRUE(joined && (*joined)->all_gather(Blob(8), in(30s)));
    made = true;
  });
  while (!made) {
    EXPECT_EQ(entries_of(folder + "/task"), threads);
    EXPECT_LE(entries_of(folder + "/fd"), descriptors + std::ptrdiff_t{kDescriptors} / 4 + 1);
    std::this_thread::sleep_for(10ms);
  }
  kill(process, SIGKILL);
  waitpid(process, nullptr, 0);
  close(ends[0]);
  close(ends[1]);
}

TEST(Strangers, AtAnAcceptorsDoorKeepNoRankOut) {
  const auto listener = Socket::listen(loopback_address());
  const SocketAddress address = *listener->local_address();
  const MeshSelf self{*Key::random(), 1, 2};
  const std::vector<Socket> all = crowd(address, link_identity(0, 1), 12);
  const auto threads = entries_of("/proc/self/task");
  std::jthread caller([&] {
    Socket socket = std::move(*Socket::connect(address, in(5s)));
    auto rank = *SecureSocket::client(std::move(socket), link_identity(0, 1), *self.link_key(0, 1));
    EXPECT_TRUE(rank.handshake(in(20s)));
    EXPECT_LE(entries_of("/proc/self/task"), threads + 1);  // this one
  });
  const std::vector<MeshMember> members(2);
  MeshCalls none(self, members);
  const auto links = Acceptor(*listener, self, {0}).admit(none, in(20s));
  ASSERT_TRUE(links) << links.error().what;
  EXPECT_EQ(links->size(), 1U);
}

// Once it is made a mesh has no door: who shares it later needs none.
TEST(Strangers, FindNoPortOfAMeshThatIsMade) {
  auto bootstraps = ThreadBootstrap::create_all(2);
  std::array<std::unique_ptr<ControlMesh>, 2> meshes;
  std::vector<std::jthread> ranks;
  for (std::size_t rank = 0; rank < 2; ++rank) {
    ranks.emplace_back([&, rank] {
      auto mesh = ControlMesh::create(*bootstraps[rank], {"", 1s, "here"}, Log(), in(20s));
      ASSERT_TRUE(mesh) << mesh.error().what;
      meshes[rank] = std::move(*mesh);
    });
  }
  ranks.clear();
  for (const auto& mesh : meshes) {
    const std::string where = mesh->describe();  // "loopback 127.0.0.1:41234"
    SocketAddress address = loopback_address();
    address.port = static_cast<std::uint16_t>(std::stoi(where.substr(where.rfind(':') + 1)));
    const auto connected = Socket::connect_again(address, in(5s));
    ASSERT_FALSE(connected);
    EXPECT_EQ(connected.error().code, Errc::peer_lost) << connected.error().what;
  }
}

}  // namespace
}  // namespace gdrx

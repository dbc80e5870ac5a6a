// SPDX-License-Identifier: Apache-2.0
// Ranks among strangers who connect and say nothing, and more ranks than descriptors.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <future>
#include <thread>

#include "transport/bootstrap/acceptor.hpp"
#include "transport/bootstrap/control_mesh.hpp"
#include "transport/bootstrap/root.hpp"
#include "transport/bootstrap/tcp_bootstrap.hpp"
#include "transport/bootstrap/thread_bootstrap.hpp"

namespace gdrx {
namespace {

using namespace std::chrono_literals;

constexpr int kCrowd = 300;

Deadline in(Duration time) { return Deadline::after(steady_clock(), time); }

std::vector<Socket> crowd_at(const SocketAddress& address) {
  std::vector<Socket> crowd;
  for (int i = 0; i < kCrowd; ++i) {
    crowd.push_back(std::move(*Socket::connect(address, in(5s))));
  }
  return crowd;
}

// The root as a process, so that it can be stopped while others queue up before it.
class RootProcess {
 public:
  RootProcess() {
    int ends[2] = {};
    EXPECT_EQ(pipe(ends), 0);
    pid_ = fork();
    if (pid_ == 0) {
      auto root = BootstrapRoot::start(loopback_address(), Log());
      [[maybe_unused]] const auto told = write(ends[1], &(*root)->id(), sizeof(UniqueId));
      std::this_thread::sleep_for(30s);
      _exit(0);
    }
    std::array<std::byte, sizeof id_> bytes{};
    EXPECT_EQ(read(ends[0], bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
    id_ = std::bit_cast<UniqueId>(bytes);
    close(ends[0]);
    close(ends[1]);
  }
  ~RootProcess() {
    signal(SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  void signal(int number) const { kill(pid_, number); }
  const UniqueId& id() const { return id_; }

 private:
  pid_t pid_ = -1;
  UniqueId id_;
};

SecureSocket greet(const SocketAddress& to, std::string identity, const Key& key) {
  Socket socket = std::move(*Socket::connect(to, in(5s)));
  auto secure = *SecureSocket::client(std::move(socket), std::move(identity), key);
  EXPECT_TRUE(secure.handshake());  // begins
  return secure;
}

TEST(Crowd, AtTheRootDoesNotPushOutARankWhoseHelloLiesUnread) {
  const RootProcess root;
  root.signal(SIGSTOP);
  SecureSocket rank =
      greet(root.id().root, std::string(kRootIdentity), *root_key(root.id(), Secret()));
  const std::vector<Socket> crowd = crowd_at(root.id().root);
  root.signal(SIGCONT);
  const auto heard = rank.handshake(in(5s));
  EXPECT_TRUE(heard) << heard.error().what;
}

TEST(Crowd, AtTheRootDelaysNoRankThatComesAfterIt) {
  const RootProcess root;
  const std::vector<Socket> crowd = crowd_at(root.id().root);
  const Instant begin = steady_clock().now();
  const auto joined = TcpBootstrap::create(root.id(), Rank{0}, 1, Log(), in(10s));
  EXPECT_TRUE(joined) << joined.error().what;
  EXPECT_LT(steady_clock().now() - begin, 1s);
}

TEST(Crowd, AtAnAcceptorsDoorDoesNotPushOutARankWhoseHelloLiesUnread) {
  const auto listener = Socket::listen(loopback_address());
  const SocketAddress address = *listener->local_address();
  const MeshSelf self{*Key::random(), 1, 2};
  SecureSocket rank = greet(address, link_identity(0, 1), *self.link_key(0, 1));
  const std::vector<Socket> crowd = crowd_at(address);
  const std::jthread caller([&] { EXPECT_TRUE(rank.handshake(in(5s))); });
  const std::vector<MeshMember> members(2);
  MeshCalls none(self, members);
  const auto links = Acceptor(*listener, self, {0}).admit(none, in(2s));
  EXPECT_TRUE(links) << links.error().what;
}

// Whoever was let in sees the end of the acceptor's work; the others stand before the door.
std::ptrdiff_t let_in(const std::vector<Socket>& crowd) {
  return std::ranges::count_if(crowd, [](const Socket& one) {
    std::array<std::byte, 1> byte;
    return !one.receive_some(byte);
  });
}

TEST(Crowd, AtAnAcceptorsDoorIsLetInAFewATurn) {
  const auto listener = Socket::listen(loopback_address());
  const std::vector<Socket> crowd = crowd_at(*listener->local_address());
  const MeshSelf self{*Key::random(), 1, 2};
  const std::vector<MeshMember> members(2);
  MeshCalls none(self, members);
  EXPECT_FALSE(Acceptor(*listener, self, {0}).admit(none, in(0s)));  // one turn
  EXPECT_GT(let_in(crowd), 0);
  EXPECT_LE(let_in(crowd), 32);
}

TEST(Crowd, IsLetInAFewATurnAndOnlyWhileThereIsRoom) {
  const auto listener = Socket::listen(loopback_address());
  const std::vector<Socket> crowd = crowd_at(*listener->local_address());
  std::vector<Socket> inside;
  Admission admission;
  const auto turn = [&](bool makes_room) {
    const std::size_t before = inside.size();
    admission.turn(
        *listener, [&] { return makes_room ? inside.size() : most_strangers(); },
        [] { return false; }, [&](Socket one) { inside.push_back(std::move(one)); });
    return inside.size() - before;
  };
  EXPECT_EQ(turn(true), Admission::kAtOnce);
  EXPECT_EQ(turn(false), 0);
  EXPECT_TRUE(admission.paused());
}

TEST(Crowd, OfConnectionsThatCannotBeTakenIsSpokenOfOnce) {
  const Socket none;
  Admission admission;
  const auto turn = [&] {
    return admission.turn(
        none, [] { return 0U; }, [] { return true; }, [](const Socket&) {});
  };
  EXPECT_TRUE(turn());
  EXPECT_FALSE(turn());
}

rlimit limits() {
  rlimit now{};
  getrlimit(RLIMIT_NOFILE, &now);
  return now;
}

// The ranks of a process make a mesh; what those say that fail, a line each.
std::string make_mesh(int ranks, Duration time) {
  auto bootstraps = ThreadBootstrap::create_all(ranks);
  std::vector<std::future<std::string>> results;
  std::vector<std::unique_ptr<ControlMesh>> meshes(static_cast<std::size_t>(ranks));
  for (std::size_t r = 0; r < meshes.size(); ++r) {
    results.push_back(std::async(std::launch::async, [&, r]() -> std::string {
      auto mesh = ControlMesh::create(*bootstraps[r], {"", 1s, "here"}, Log(), in(time));
      if (!mesh) return describe(mesh.error());
      meshes[r] = std::move(*mesh);
      return "";
    }));
  }
  std::string all;
  for (auto& result : results) {
    const std::string text = result.get();
    all += text.empty() ? text : text + '\n';
  }
  return all;
}

TEST(Crowd, OfMoreRanksThanTheSoftLimitOfDescriptorsGetsThoseOfTheHardOne) {
  const rlimit before = limits();
  rlimit low = before;
  low.rlim_cur = 40;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  EXPECT_EQ(make_mesh(12, 10s), "");
  setrlimit(RLIMIT_NOFILE, &before);
}

TEST(Crowd, OfMoreRanksThanTheHardLimitOfDescriptorsIsToldSo) {
  const pid_t child = fork();
  if (child == 0) {
    const rlimit low{40, 40};
    setrlimit(RLIMIT_NOFILE, &low);
    const std::string text = make_mesh(12, 2s);
    std::fprintf(stderr, "%s\n", text.c_str());
    _exit(text.find("may have 40 descriptors open") != std::string::npos ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace gdrx

// SPDX-License-Identifier: Apache-2.0
// The door of an id's root for ranks of its own host.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <thread>

#include "transport/bootstrap/host_socket.hpp"
#include "transport/bootstrap/root.hpp"
#include "transport/bootstrap/tcp_bootstrap.hpp"

namespace gdrx {
namespace {

using namespace std::chrono_literals;

Deadline in(Duration time) { return Deadline::after(steady_clock(), time); }

class HostDoor : public testing::Test {
 protected:
  const UniqueId& id() const { return root_->id(); }
  std::string name() const { return *root_name(id()); }
  auto join() const { return TcpBootstrap::create(id(), Rank{0}, 1, Log(), in(10s)); }
  // Connections of this process with the root's port.
  int network_connections() const {
    int found = 0;
    for (int fd = 3; fd < 200; ++fd) {
      sockaddr_storage peer{};
      socklen_t length = sizeof peer;
      if (getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &length) != 0) continue;
      const auto address = from_sockaddr(reinterpret_cast<const sockaddr*>(&peer));
      found += address && *address == id().root ? 1 : 0;
    }
    return found;
  }
  std::unique_ptr<BootstrapRoot> root_ =
      std::move(*BootstrapRoot::start(loopback_address(), Log()));
};

TEST_F(HostDoor, LetsRanksInWithoutTheNetwork) {
  const auto joined = join();
  ASSERT_TRUE(joined) << describe(joined.error());
  EXPECT_EQ(network_connections(), 0);
  EXPECT_TRUE((*joined)->all_gather(Blob(8), in(10s)));
}

// Who has garbage, or nothing, to say hears nothing, and is soon gone.
TEST_F(HostDoor, SaysNothingToAStranger) {
  const Socket silent = std::move(*connect_on_host(name()));
  const Socket loud = std::move(*connect_on_host(name()));
  ASSERT_TRUE(loud.send_all(Blob(1000, std::byte{0x5a}), in(5s)));
  std::array<std::byte, 100> answer{};
  EXPECT_EQ(loud.receive_exact(answer, in(5s)).error().code, Errc::peer_lost);
  EXPECT_EQ(silent.receive_some(answer), 0u);
  EXPECT_TRUE(join());
}

TEST_F(HostDoor, IsShutToAnotherUser) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  const std::string at = name();
  const pid_t other = fork();
  if (other == 0) {
    if (setresuid(12345, 12345, 12345) != 0) _exit(2);
    const auto socket = connect_on_host(at);
    std::array<std::byte, 1> answer{};
    const auto heard = socket ? socket->receive_exact(answer, in(5s)) : Result<void>();
    _exit(!heard && heard.error().code == Errc::peer_lost ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(other, &status, 0), other);
  EXPECT_EQ(status, 0);
}

// Somebody has the name where the root is not: what he says is no word of the root's.
TEST_F(HostDoor, OfSomebodyElseLeadsToTheNetwork) {
  const UniqueId gone = id();
  const std::string at = name();
  root_.reset();
  const Socket squatter = std::move(*listen_on_host(at));
  std::jthread loud([&] {
    int guest = -1;
    for (int tries = 0; guest < 0 && tries < 300; ++tries) {
      guest = accept(squatter.fd(), nullptr, nullptr);
      std::this_thread::sleep_for(10ms);
    }
    (void)Socket(guest).send_all(Blob(100, std::byte{0x5a}), in(1s));
  });
  const auto joined = TcpBootstrap::create(gone, Rank{0}, 1, Log(), in(4s));
  ASSERT_FALSE(joined);
  EXPECT_NE(joined.error().what.find(to_string(gone.root)), std::string::npos)
      << describe(joined.error());
  EXPECT_NE(joined.error().code, Errc::protocol);
}

// Of another root's key, or of an address that is not this root's, it has another name.
TEST_F(HostDoor, IsFoundByTheIdAlone) {
  UniqueId elsewhere = id();
  ++elsewhere.root.port;
  EXPECT_NE(*root_name(elsewhere), name());
  UniqueId other = id();
  other.key[0] ^= std::byte{1};
  EXPECT_NE(*root_name(other), name());
}

}  // namespace
}  // namespace gdrx

// SPDX-License-Identifier: Apache-2.0
// What the kernel says of a connection that passes by itself. accept4(), connect(), send() and
// recv() are replaced, so that each error can be had.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <functional>
#include <future>
#include <thread>

#include "transport/bootstrap/control_mesh.hpp"
#include "transport/bootstrap/root.hpp"
#include "transport/bootstrap/socket.hpp"
#include "transport/bootstrap/tcp_bootstrap.hpp"
#include "transport/bootstrap/thread_bootstrap.hpp"

namespace {

std::atomic<int> accept_error{0};   // of the next call
std::atomic<int> accept_drops{0};   // connections that end as soon as they are taken
std::atomic<int> connect_error{0};  // of the next call
std::atomic<int> send_error{0};     // of every call
std::atomic<int> receive_error{0};  // of every call of a thread that receives_nothing
std::atomic<int> silence_error{0};  // of every call of recv()
constexpr int kEnd = -1;            // as such an error: the stream ends
thread_local bool receives_nothing = false;
thread_local bool sends_always = false;

template <class F>
F next(const char* name) {
  return reinterpret_cast<F>(dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" int accept4(int fd, sockaddr* address, socklen_t* length, int flags) {
  static const auto real = next<int (*)(int, sockaddr*, socklen_t*, int)>("accept4");
  const int error = accept_error.exchange(0);
  if (error != 0) {
    errno = error;
    return -1;
  }
  const int taken = real(fd, address, length, flags);
  if (taken < 0 || accept_drops.load() == 0) return taken;
  --accept_drops;
  close(taken);
  errno = ECONNABORTED;
  return -1;
}

extern "C" int connect(int fd, const sockaddr* address, socklen_t length) {
  static const auto real = next<int (*)(int, const sockaddr*, socklen_t)>("connect");
  const int error = connect_error.exchange(0);
  if (error == 0) return real(fd, address, length);
  errno = error;
  return -1;
}

extern "C" ssize_t send(int fd, const void* data, size_t bytes, int flags) {
  static const auto real = next<ssize_t (*)(int, const void*, size_t, int)>("send");
  if (send_error == 0 || sends_always) return real(fd, data, bytes, flags);
  errno = send_error;
  return -1;
}

extern "C" ssize_t recv(int fd, void* data, size_t bytes, int flags) {
  static const auto real = next<ssize_t (*)(int, void*, size_t, int)>("recv");
  const int error = receives_nothing ? receive_error : silence_error;
  if (error == kEnd) return 0;
  if (error == 0) return real(fd, data, bytes, flags);
  errno = error;
  return -1;
}

namespace gdrx {
namespace {

using namespace std::chrono_literals;

Deadline in(Duration time) { return Deadline::after(steady_clock(), time); }

class Accepting : public testing::TestWithParam<int> {};

TEST_P(Accepting, GoesOnAfterAnErrorThatIsOneConnectionsAlone) {
  const auto listener = Socket::listen(loopback_address());
  const auto client = Socket::connect(*listener->local_address(), in(5s));
  accept_error = GetParam();
  const auto accepted = listener->accept();
  ASSERT_TRUE(accepted) << describe(accepted.error());
  EXPECT_TRUE(accepted->valid());
}

// accept(2): "Linux accept() passes already-pending network errors on the new socket".
INSTANTIATE_TEST_SUITE_P(Errors, Accepting,
                         testing::Values(EINTR, ECONNABORTED, EPERM, ENETDOWN, EPROTO, ENOPROTOOPT,
                                         EHOSTDOWN, ENONET, EHOSTUNREACH, EOPNOTSUPP, ENETUNREACH));

// poll(2) knows of room in a socket's buffer; send(2) may want for memory all the same.
TEST(Sending, IntoASocketThatIsReadyAndTakesNothingEndsAtTheDeadline) {
  const auto listener = Socket::listen(loopback_address());
  const auto client = Socket::connect(*listener->local_address(), in(5s));
  send_error = EAGAIN;
  auto sending = std::async(
      std::launch::async, [&] { return client->send_all(std::array<std::byte, 4>{}, in(100ms)); });
  const bool ended = sending.wait_for(5s) == std::future_status::ready;
  send_error = 0;  // or it would go on for ever
  EXPECT_TRUE(ended);
  const auto sent = sending.get();
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().code, Errc::timeout);
}

// The root's word lies there and cannot be read.
TEST(Receiving, FromARootThatIsReadyAndGivesNothingEndsAtTheDeadline) {
  const auto root = std::move(*BootstrapRoot::start(loopback_address(), Log()));
  const auto one = TcpBootstrap::create(root->id(), Rank{0}, 1, Log(), in(5s));
  ASSERT_TRUE(one) << describe(one.error());
  receive_error = EINTR;
  auto gathering = std::async(std::launch::async, [&] {
    receives_nothing = true;
    return (*one)->all_gather(Blob(8), in(300ms));
  });
  const bool ended = gathering.wait_for(5s) == std::future_status::ready;
  receive_error = 0;  // or it would go on for ever
  EXPECT_TRUE(ended);
  const auto gathered = gathering.get();
  ASSERT_FALSE(gathered);
  EXPECT_EQ(gathered.error().code, Errc::timeout);
}

class Connecting : public testing::TestWithParam<int> {};

TEST_P(Connecting, TriesAgainWhileTheNetworkSettles) {
  const auto listener = Socket::listen(loopback_address());
  connect_error = GetParam();
  const auto client = Socket::connect(*listener->local_address(), in(5s));
  EXPECT_TRUE(client) << describe(client.error());
}

INSTANTIATE_TEST_SUITE_P(Errors, Connecting,
                         testing::Values(EHOSTUNREACH, ETIMEDOUT, EADDRNOTAVAIL, ECONNREFUSED));

std::string make_two_ranks() {
  auto bootstraps = ThreadBootstrap::create_all(2);
  const auto make = [&](std::size_t rank) {
    return ControlMesh::create(*bootstraps[rank], {"", 1s, "here"}, Log(), in(5s));
  };
  auto other = std::async(std::launch::async, [&] { return make(1); });
  const auto mine = make(0);
  const auto theirs = other.get();
  return !mine ? describe(mine.error()) : !theirs ? describe(theirs.error()) : "";
}

TEST(Link, ComesAboutAlthoughTheOtherSideLetsGoOfTheFirstConnection) {
  accept_drops = 2;
  EXPECT_EQ(make_two_ranks(), "");
}

TEST(Link, ComesAboutAlthoughTheAcceptingSideRunsOutOfDescriptorsForAMoment) {
  accept_error = EMFILE;
  EXPECT_EQ(make_two_ranks(), "");
}

TEST(Link, ComesAboutAlthoughMemoryIsShortForAMoment) {
  accept_error = ENOBUFS;
  EXPECT_EQ(make_two_ranks(), "");
}

// More than TLS keeps for a socket that takes nothing.
TEST(Sending, WithoutBuffersForAWhileLosesNothingOfAMesh) {
  constexpr std::size_t kBytes = 1 << 20;
  auto bootstraps = ThreadBootstrap::create_all(2);
  std::array<std::unique_ptr<ControlMesh>, 2> meshes;
  std::array<std::future<bool>, 2> ranks;
  const auto on_both = [&](const std::function<bool(std::size_t)>& body) {
    for (std::size_t rank = 0; rank < 2; ++rank) {
      ranks[rank] = std::async(std::launch::async, [&body, rank] { return body(rank); });
    }
  };
  const std::function<bool(std::size_t)> make = [&](std::size_t rank) {
    auto made = ControlMesh::create(*bootstraps[rank], {"", 1s, "here"}, Log(), in(10s));
    if (made) meshes[rank] = std::move(*made);
    return made.has_value();
  };
  on_both(make);
  for (auto& rank : ranks) ASSERT_TRUE(rank.get());
  const std::function<bool(std::size_t)> gather = [&](std::size_t rank) {
    const Blob mine(kBytes, static_cast<std::byte>(rank + 1));
    const auto all = meshes[rank]->all_gather(mine, in(10s));
    return all && (*all)[0] == Blob(kBytes, std::byte{1}) &&
           (*all)[1] == Blob(kBytes, std::byte{2});
  };
  send_error = ENOBUFS;
  on_both(gather);
  std::this_thread::sleep_for(200ms);
  send_error = 0;
  for (auto& rank : ranks) EXPECT_TRUE(rank.get());
}

Duration processor_time() {
  timespec used{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
}

using Meshes = std::array<std::unique_ptr<ControlMesh>, 2>;

Meshes two_ranks() {
  auto bootstraps = ThreadBootstrap::create_all(2);
  Meshes meshes;
  std::vector<std::jthread> ranks;
  for (std::size_t rank = 0; rank < 2; ++rank) {
    ranks.emplace_back([&, rank] {
      auto made = ControlMesh::create(*bootstraps[rank], {"", 20ms, "here"}, Log(), in(10s));
      ASSERT_TRUE(made) << describe(made.error());
      meshes[rank] = std::move(*made);
    });
  }
  return ranks.clear(), std::move(meshes);
}

TEST(Sending, WithoutBuffersForEverEndsAtTheDeadlineAndCostsNoProcessor) {
  const Meshes meshes = two_ranks();
  const Duration before = processor_time();
  send_error = ENOBUFS;
  std::vector<std::jthread> ranks;
  for (const auto& mesh : meshes) {
    ranks.emplace_back([&mesh] {
      const auto all = mesh->all_gather(Blob(1 << 20), in(1s));
      ASSERT_FALSE(all);
      EXPECT_EQ(all.error().code, Errc::timeout) << all.error().what;
    });
  }
  ranks.clear();
  const Duration used = processor_time() - before;
  send_error = 0;
  EXPECT_LT(used, 250ms);
}

TEST(Sending, WithoutBuffersAMeshIsNotMadeAndThatCostsNoProcessor) {
  const Duration before = processor_time();
  send_error = ENOBUFS;
  auto bootstraps = ThreadBootstrap::create_all(2);
  std::atomic<int> late{0};
  std::vector<std::jthread> ranks;
  for (const auto& bootstrap : bootstraps) {
    ranks.emplace_back([&bootstrap, &late] {
      const auto made = ControlMesh::create(*bootstrap, {"", 1s, "here"}, Log(), in(1s));
      ASSERT_FALSE(made);
      // Who looks a moment after the other's deadline finds that he listens no more.
      const Errc code = made.error().code;
      EXPECT_TRUE(code == Errc::timeout || code == Errc::peer_lost) << made.error().what;
      if (code == Errc::timeout) ++late;
    });
  }
  ranks.clear();
  const Duration used = processor_time() - before;
  EXPECT_GE(late, 1);
  send_error = 0;
  EXPECT_LT(used, 250ms);
}

TEST(Sending, OfARootWithoutBuffersCostsNoProcessor) {
  sends_always = true;
  const auto root = std::move(*BootstrapRoot::start(loopback_address(), Log()));
  const auto one = TcpBootstrap::create(root->id(), Rank{0}, 1, Log(), in(5s));
  ASSERT_TRUE(one) << describe(one.error());
  const Duration before = processor_time();
  send_error = ENOBUFS;
  const auto all = (*one)->all_gather(Blob(8), in(1s));
  const Duration used = processor_time() - before;
  send_error = 0;
  sends_always = false;
  ASSERT_FALSE(all);
  EXPECT_EQ(all.error().code, Errc::timeout);
  EXPECT_LT(used, 250ms);
}

// The network is gone, and the data path still hears of the peer: what there is goes on.
class Cut : public testing::Test {
 protected:
  Cut() : meshes_(two_ranks()) {
    for (const auto& mesh : meshes_) {
      mesh->start(
          {[this](const FailureNotice&) { ++notices_; }, nullptr, [](Rank) { return true; }});
    }
  }
  ~Cut() override { silence_error = send_error = 0; }
  static void cut() {
    silence_error = ETIMEDOUT;
    std::this_thread::sleep_for(300ms);  // more than a heartbeat
  }
  static void expect_unreachable(ControlMesh& mesh) {
    const Instant begin = steady_clock().now();
    const auto all = mesh.all_gather(Blob(8), in(20s));
    ASSERT_FALSE(all);
    EXPECT_EQ(all.error().code, Errc::peer_lost);
    EXPECT_NE(all.error().what.find("rank 1"), std::string::npos) << all.error().what;
    EXPECT_NE(all.error().what.find("is unreachable"), std::string::npos) << all.error().what;
    EXPECT_LT(steady_clock().now() - begin, 2s);
  }
  Meshes meshes_;
  std::atomic<int> notices_{0};
};

TEST_F(Cut, NothingIsMadeOverItAndWhatThereIsGoesOn) {
  cut();
  const auto made = meshes_[0]->split(MeshGroupId{7}, std::array{0, 1});
  ASSERT_TRUE(made) << describe(made.error());
  expect_unreachable(**made);
  EXPECT_EQ(notices_, 0);
}

// An error of the connection is told once, to whoever calls first.
TEST_F(Cut, IsNotTakenForADeathWhereSendingHearsOfItAndReadingFindsAnEnd) {
  const auto made = meshes_[0]->split(MeshGroupId{7}, std::array{0, 1});
  ASSERT_TRUE(made) << describe(made.error());
  send_error = ETIMEDOUT;
  std::jthread later([] {
    std::this_thread::sleep_for(100ms);
    silence_error = kEnd;
  });
  expect_unreachable(**made);
  EXPECT_EQ(notices_, 0);
}

TEST_F(Cut, WhatIsBeingMadeOverItEnds) {
  const auto made = meshes_[0]->split(MeshGroupId{7}, std::array{0, 1});
  ASSERT_TRUE(made) << describe(made.error());
  std::jthread later([] { cut(); });
  expect_unreachable(**made);
  EXPECT_EQ(notices_, 0);
}

}  // namespace
}  // namespace gdrx

// SPDX-License-Identifier: Apache-2.0
#include "transport/bootstrap/secret.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <thread>

#include "gdrx/clock.hpp"
#include "transport/bootstrap/control_mesh.hpp"
#include "transport/bootstrap/mesh_links.hpp"
#include "transport/bootstrap/root.hpp"
#include "transport/bootstrap/tcp_bootstrap.hpp"
#include "transport/bootstrap/thread_bootstrap.hpp"

namespace gdrx {
namespace {

using namespace std::chrono_literals;

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}
Deadline in(Duration time) { return Deadline::after(steady_clock(), time); }
Secret secret(std::string_view text) {
  return text.empty() ? Secret() : *Secret::of(bytes_of(text));
}
Key key_of(const Secret& secret) { return *secret.job_key(Key()); }

class SecretFile : public testing::Test {
 protected:
  SecretFile() : path_(testing::TempDir() + "gdrx-secret-" + std::to_string(getpid())) {}
  ~SecretFile() override { std::remove(path_.c_str()); }
  Result<Secret> load(const std::string& content, mode_t mode = 0600) {
    std::remove(path_.c_str());
    std::ofstream(path_) << content;
    chmod(path_.c_str(), mode);
    return Secret::load(path_);
  }
  std::string path_;
};

TEST_F(SecretFile, IsReadAndTheLinesEndDoesNotCount) {
  const auto one = load("a secret of twenty b\n");
  ASSERT_TRUE(one.has_value()) << one.error().what;
  EXPECT_TRUE(one->given());
  EXPECT_TRUE(key_of(*one) == key_of(secret("a secret of twenty b")));
}

TEST_F(SecretFile, IsRefusedWhenOthersMayReadItOrItIsNoSecret) {
  EXPECT_NE(load("a secret of twenty b", 0640).error().what.find("chmod 600"), std::string::npos);
  EXPECT_NE(load("short\n").error().what.find("16 to 4096 bytes"), std::string::npos);
  EXPECT_FALSE(load(std::string(5000, 'x')).has_value());
  std::remove(path_.c_str());
  EXPECT_NE(Secret::load(path_).error().what.find(path_), std::string::npos);
  EXPECT_FALSE(Secret::load("")->given());
}

// A pipe would make us wait for its writer, a folder reads as nothing.
TEST_F(SecretFile, IsRefusedWhenItIsNoRegularFile) {
  std::remove(path_.c_str());
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  EXPECT_NE(Secret::load(path_).error().what.find("no regular file"), std::string::npos);
  EXPECT_NE(Secret::load("/").error().what.find("no regular file"), std::string::npos);
}

TEST_F(SecretFile, IsRefusedWhenItIsSomebodyElses) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
  ASSERT_TRUE(load("a secret of twenty b"));
  ASSERT_EQ(chown(path_.c_str(), 12345, 12345), 0);
  EXPECT_NE(Secret::load(path_).error().what.find("user 12345"), std::string::npos);
}

TEST(JobKey, IsAnotherForEachSecretAndForEachKeyHandedOn) {
  const Key one = *Key::random();
  const Key two = *Key::random();
  const Secret ours = secret("0123456789abcdef");
  EXPECT_TRUE(*ours.job_key(one) == *secret("0123456789abcdef").job_key(one));
  EXPECT_FALSE(*ours.job_key(one) == *ours.job_key(two));
  EXPECT_FALSE(*ours.job_key(one) == *secret("0123456789abcdeg").job_key(one));
  EXPECT_FALSE(*ours.job_key(one) == *Secret().job_key(one));
  EXPECT_FALSE(*Secret().job_key(one) == one);
}

struct RootCase {
  const char* name;
  std::string root;
  std::string rank;
  std::string refusal;  // empty: it is let in
};

class SecretRoot : public testing::TestWithParam<RootCase> {};

TEST_P(SecretRoot, LetsInWhoKnowsItsSecretAndIsJoinedByThoseAlone) {
  const auto root = BootstrapRoot::start(loopback_address(), Log(), secret(GetParam().root));
  ASSERT_TRUE(root.has_value());
  const auto joined =
      TcpBootstrap::create((*root)->id(), Rank{0}, 1, Log(), in(10s), secret(GetParam().rank));
  EXPECT_EQ(joined.has_value(), GetParam().refusal.empty());
  if (joined) return;
  EXPECT_NE(joined.error().what.find(GetParam().refusal), std::string::npos) << joined.error().what;
}

INSTANTIATE_TEST_SUITE_P(
    Cases, SecretRoot,
    testing::Values(RootCase{"TheSame", "0123456789abcdef", "0123456789abcdef", ""},
                    RootCase{"AnotherOne", "0123456789abcdef", "0123456789abcdeX",
                             "GDRX_SECRET_FILE"},
                    RootCase{"TheRankHasNone", "0123456789abcdef", "", "GDRX_SECRET_FILE"},
                    RootCase{"TheRootHasNone", "", "0123456789abcdef", "GDRX_SECRET_FILE"}),
    [](const auto& info) { return std::string(info.param.name); });

// What a listening socket hears from the first who comes, until that one goes.
std::string hear_one(const Socket& listener) {
  Socket from;
  while (!from.valid()) from = *listener.accept();
  std::string heard;
  std::array<std::byte, 4096> piece;
  for (const Deadline end = in(300ms); !end.passed(steady_clock().now());) {
    const auto some = from.receive_some(piece);
    if (!some) break;
    heard.append(reinterpret_cast<const char*>(piece.data()), *some);
    if (*some == 0) std::this_thread::sleep_for(1ms);
  }
  return heard;
}

TEST(SecretRank, SaysNothingToARootThatHasNotShownTheKey) {
  auto listener = Socket::listen(loopback_address());
  ASSERT_TRUE(listener.has_value());
  const auto id = make_id_for(*listener->local_address());
  std::string heard;
  std::jthread impostor([&] {
    heard = hear_one(*listener);
    *listener = Socket();
  });
  const auto joined = TcpBootstrap::create(*id, Rank{0}, 1, Log(), in(600ms));
  impostor.join();
  EXPECT_FALSE(joined.has_value());
  EXPECT_NE(heard.find(kRootIdentity), std::string::npos) << "one TLS greeting";
  EXPECT_LT(heard.size(), 600u);
  const std::string_view nonce(reinterpret_cast<const char*>(id->nonce), sizeof id->nonce);
  EXPECT_EQ(heard.find(nonce), std::string::npos);
}

// A wire between a rank and its root, with somebody who reads it.
class Wire {
 public:
  explicit Wire(const SocketAddress& to)
      : listener_(*Socket::listen(loopback_address())),
        address_(*listener_.local_address()),
        thread_([this, to](const std::stop_token& stop) { carry(to, stop); }) {}
  const SocketAddress& address() const { return address_; }
  std::string seen() {
    thread_.request_stop();
    thread_.join();
    return seen_;
  }

 private:
  void carry(const SocketAddress& to, const std::stop_token& stop) {
    Socket one;
    while (!one.valid() && !stop.stop_requested()) one = *listener_.accept();
    if (!one.valid()) return;
    Socket other = *Socket::connect(to, in(5s));
    std::array<std::byte, 4096> piece;
    while (!stop.stop_requested()) {
      for (const auto& [from, into] : {std::pair(&one, &other), std::pair(&other, &one)}) {
        const auto some = from->receive_some(piece);
        if (!some || !into->send_all(std::span(piece).first(*some), in(5s))) return;
        seen_.append(reinterpret_cast<const char*>(piece.data()), *some);
      }
      std::this_thread::sleep_for(1ms);
    }
  }

  Socket listener_;
  SocketAddress address_;
  std::string seen_;
  std::jthread thread_;
};

// The id leads over the wire: its checksum is made anew by its decoder's rule, FNV-1a.
UniqueId through(UniqueId id, const SocketAddress& wire) {
  id.root = wire;
  std::uint32_t hash = 2166136261u;
  for (const std::byte b : std::as_bytes(std::span(&id, 1)).first(offsetof(UniqueId, checksum))) {
    hash = (hash ^ static_cast<std::uint32_t>(b)) * 16777619u;
  }
  id.checksum = hash;
  return id;
}

TEST(RootsWire, ShowsAListenerNothingOfWhatRanksGather) {
  const auto root = BootstrapRoot::start(loopback_address(), Log());
  ASSERT_TRUE(root.has_value());
  Wire wire((*root)->id().root);
  auto joined =
      TcpBootstrap::create(through((*root)->id(), wire.address()), Rank{0}, 1, Log(), in(10s));
  ASSERT_TRUE(joined.has_value()) << joined.error().what;
  const std::string_view card = "addresses, pids and the mesh's key";
  const auto all = (*joined)->all_gather(bytes_of(card), in(10s));
  ASSERT_TRUE(all.has_value()) << all.error().what;
  const std::string seen = wire.seen();
  EXPECT_FALSE(seen.empty());
  EXPECT_EQ(seen.find("addresses"), std::string::npos);
}

TEST(LinkIdentity, NamesItsTwoEndsAndIsReadStrictly) {
  EXPECT_EQ(read_link_identity(link_identity(3, 64)), std::pair(3, 64));
  for (const char* bad : {"", "gdrx-link-3 ", "gdrx-link-3 3", "gdrx-link-3 3 ", "gdrx-link-3 3 4x",
                          "gdrx-link-2 3 4", "gdrx-link-3 99999999999 1"}) {
    EXPECT_FALSE(read_link_identity(bad)) << bad;
  }
}

TEST(LinkKey, FitsOnePlaceOfOneMeshAlone) {
  const MeshSelf self{*Key::random(), 3, 8};
  const MeshSelf other{*Key::random(), 3, 8};
  EXPECT_TRUE(*self.link_key(3, 4) == *self.link_key(3, 4));
  EXPECT_FALSE(*self.link_key(3, 4) == *self.link_key(4, 3));
  EXPECT_FALSE(*self.link_key(3, 4) == *self.link_key(3, 5));
  EXPECT_FALSE(*self.link_key(3, 4) == *other.link_key(3, 4));
}

TEST(SecretMesh, LinksRanksOfOneSecretAndNoOthers) {
  for (const bool alike : {true, false}) {
    constexpr int kRanks = 4;
    auto bootstraps = ThreadBootstrap::create_all(kRanks);
    std::array<bool, kRanks> linked{};
    {
      std::vector<std::jthread> threads;
      for (int rank = 0; rank < kRanks; ++rank) {
        threads.emplace_back([&, rank] {
          const auto at = static_cast<std::size_t>(rank);
          const bool odd_one = !alike && rank == 2;
          const ControlMesh::Options options{
              "", 1s, "this-host", secret(odd_one ? "another secret!!" : "0123456789abcdef")};
          linked[at] = ControlMesh::create(*bootstraps[at], options, Log(), in(alike ? 20s : 2s))
                           .has_value();
        });
      }
    }
    EXPECT_EQ(linked[2], alike);
    EXPECT_EQ(linked[0], alike);
  }
}

TEST(PortRange, BoundsARootAndAMesh) {
  const PortRange ports{28150, 28151};
  std::vector<std::unique_ptr<BootstrapRoot>> roots;
  for (int i = 0; i < 2; ++i) {
    auto root = BootstrapRoot::start(loopback_address(), Log(), {}, ports);
    ASSERT_TRUE(root) << root.error().what;
    const std::uint16_t port = (*root)->id().root.port;
    EXPECT_TRUE(port == 28150 || port == 28151) << port;
    roots.push_back(std::move(*root));
  }
  const auto third = BootstrapRoot::start(loopback_address(), Log(), {}, ports);
  ASSERT_FALSE(third);
  EXPECT_NE(third.error().what.find("GDRX_PORT_RANGE=28150-28151"), std::string::npos);
  auto bootstraps = ThreadBootstrap::create_all(2);
  std::vector<std::jthread> ranks;
  for (auto& bootstrap : bootstraps) {
    ranks.emplace_back([&bootstrap, ports] {
      const ControlMesh::Options options{"lo", 1s, "here", {}, 30s, ports};
      const auto mesh = ControlMesh::create(*bootstrap, options, Log(), in(5s));
      ASSERT_FALSE(mesh);
      EXPECT_NE(mesh.error().what.find("GDRX_PORT_RANGE=28150-28151"), std::string::npos)
          << mesh.error().what;
    });
  }
}

}  // namespace
}  // namespace gdrx

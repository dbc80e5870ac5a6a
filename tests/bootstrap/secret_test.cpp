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

TEST(SecretToken, FitsOnePlaceOfOneCommunicatorAlone) {
  const Secret key = secret("0123456789abcdef");
  const std::uint64_t nonce[2] = {1, 2};
  const std::uint64_t other[2] = {1, 3};
  const Token token = key.token(kLinkRole, nonce, 3, 4);
  EXPECT_EQ(token, key.token(kLinkRole, nonce, 3, 4));
  EXPECT_NE(token, key.token(kLinkRole, nonce, 4, 3));
  EXPECT_NE(token, key.token(kLinkRole, nonce, 3, 5));
  EXPECT_NE(token, key.token(kRankRole, nonce, 3, 4));
  EXPECT_NE(token, key.token(kLinkRole, other, 3, 4));
  EXPECT_NE(token, secret("0123456789abcdeg").token(kLinkRole, nonce, 3, 4));
  EXPECT_EQ(Secret().token(kLinkRole, nonce, 3, 4), (Token{1, 2}));
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
                    RootCase{"TheRankHasNone", "0123456789abcdef", "", "it shows no secret"},
                    RootCase{"TheRootHasNone", "", "0123456789abcdef", "GDRX_SECRET_FILE"}),
    [](const auto& info) { return std::string(info.param.name); });

// A root that takes anybody: it lacks the secret, and has no proof to show.
TEST(SecretRank, DoesNotJoinARootThatOnlySaysYes) {
  auto listener = Socket::listen(loopback_address());
  ASSERT_TRUE(listener.has_value());
  const auto id = make_id_for(*listener->local_address());
  std::jthread impostor([&] {
    Socket from;
    while (!from.valid()) from = *listener->accept();
    Blob hello(sizeof(FrameHeader) + sizeof(HelloFrame));
    (void)from.receive_exact(hello, in(10s));
    (void)from.send_all(encode_frame(FrameKind::accepted, {}), in(10s));
  });
  const auto joined =
      TcpBootstrap::create(*id, Rank{0}, 1, Log(), in(10s), secret("0123456789abcdef"));
  ASSERT_FALSE(joined.has_value());
  EXPECT_NE(joined.error().what.find("does not know the secret"), std::string::npos);
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

}  // namespace
}  // namespace gdrx

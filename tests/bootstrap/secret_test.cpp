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
#include "transport/bootstrap/sha256.hpp"
#include "transport/bootstrap/tcp_bootstrap.hpp"
#include "transport/bootstrap/thread_bootstrap.hpp"

namespace gdrx {
namespace {

using namespace std::chrono_literals;

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}
std::string hex(const Digest& digest) {
  std::string text;
  for (const std::byte byte : digest) text += fmt::format("{:02x}", std::to_integer<int>(byte));
  return text;
}
Deadline in(Duration time) { return Deadline::after(steady_clock(), time); }
Secret secret(std::string_view text) { return Secret(bytes_of(text)); }

// FIPS 180-4's examples, as NIST publishes them.
TEST(Sha256, GivesThePublishedDigests) {
  EXPECT_EQ(hex(sha256(bytes_of("abc"))),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hex(sha256({})), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(hex(sha256(bytes_of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"))),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(hex(sha256(bytes_of(std::string(1'000'000, 'a')))),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

// RFC 4231, cases 1, 2 and 6 (a key longer than a block).
TEST(Sha256, GivesThePublishedHmacs) {
  EXPECT_EQ(hex(hmac_sha256(bytes_of(std::string(20, '\x0b')), bytes_of("Hi There"))),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(hex(hmac_sha256(bytes_of("Jefe"), bytes_of("what do ya want for nothing?"))),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(hex(hmac_sha256(bytes_of(std::string(131, '\xaa')),
                            bytes_of("Test Using Larger Than Block-Size Key - Hash Key First"))),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

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
  const std::uint64_t nonce[2] = {1, 2};
  const auto one = load("a secret of twenty b\n");
  ASSERT_TRUE(one.has_value()) << one.error().what;
  EXPECT_TRUE(one->given());
  EXPECT_EQ(one->token("x", nonce, 0, 1), secret("a secret of twenty b").token("x", nonce, 0, 1));
}

TEST_F(SecretFile, IsRefusedWhenOthersMayReadItOrItIsNoSecret) {
  EXPECT_NE(load("a secret of twenty b", 0640).error().what.find("chmod 600"), std::string::npos);
  EXPECT_NE(load("short\n").error().what.find("16 to 4096 bytes"), std::string::npos);
  EXPECT_FALSE(load(std::string(5000, 'x')).has_value());
  std::remove(path_.c_str());
  EXPECT_NE(Secret::load(path_).error().what.find(path_), std::string::npos);
  EXPECT_FALSE(Secret::load("")->given());
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

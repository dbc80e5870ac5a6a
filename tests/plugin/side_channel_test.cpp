// SPDX-License-Identifier: Apache-2.0
// Who may make a connection, and what a listener on the wire learns of it.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>

#include "plugin/core/wire.hpp"
#include "tests/plugin/pair.hpp"

namespace gdrx::test {
namespace {

class SideChannel : public testing::Test {
 protected:
  void SetUp() override {
    path_ = testing::TempDir() + "gdrx-side-channel-" + std::to_string(getpid());
    have("the secret of this job");
    setenv("GDRX_SECRET_FILE", path_.c_str(), 1);
    setenv("GDRX_PORT_RANGE", "28120-28149", 1);
    setenv("GDRX_SOCKET_IFNAME", "lo", 1);
    std::string why;
    net = AnyNet::open(GDRX_PLUGIN, 11, &why);
    ASSERT_NE(net, nullptr) << why;
    ASSERT_EQ(net->init(&context, nccl_logger), NetResult::success) << heard();
    heard().clear();
  }
  void TearDown() override {
    std::remove(path_.c_str());
    if (net != nullptr) {
      EXPECT_EQ(net->finalize(context), NetResult::success);
    }
  }
  void have(const std::string& secret) {
    std::remove(path_.c_str());
    std::ofstream(path_) << secret;
    chmod(path_.c_str(), 0600);
  }
  net::Handle listen() {
    EXPECT_EQ(net->listen(context, 0, handle.data(), &listener), NetResult::success) << heard();
    net::Handle made;
    std::memcpy(&made, handle.data(), sizeof made);
    return made;
  }
  std::string path_;
  std::unique_ptr<AnyNet> net;
  void* context = nullptr;
  void* listener = nullptr;
  std::array<std::byte, nccl::kHandleMaxSize> handle{};
};

TEST_F(SideChannel, IsMadeBetweenRanksOfOneSecretAndNoOthers) {
  listen();
  have("the secret of another job");
  void* send = nullptr;
  void* recv = nullptr;
  NetResult connected = NetResult::success;
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  while (connected == NetResult::success && send == nullptr &&
         std::chrono::steady_clock::now() < until) {
    connected = net->connect(context, 0, handle.data(), &send);
    EXPECT_EQ(net->accept(listener, &recv), NetResult::success);
  }
  EXPECT_EQ(send, nullptr);
  EXPECT_EQ(recv, nullptr);
  EXPECT_NE(connected, NetResult::success);
  EXPECT_NE(heard().find("GDRX_SECRET_FILE"), std::string::npos) << heard();
  EXPECT_EQ(net->close_listen(listener), NetResult::success);
}

TEST_F(SideChannel, SaysOfManyRefusedStrangersOnlyHowManyThereWere) {
  const net::Handle to = listen();
  for (int i = 0; i < 40; ++i) {
    auto stranger =
        Socket::connect(to.address, Deadline::after(steady_clock(), std::chrono::seconds(5)));
    ASSERT_TRUE(stranger);
    const std::string garbage(600, '\x55');
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(10);
    (void)stranger->send_some(std::as_bytes(std::span(garbage)));
    void* recv = nullptr;
    while (std::chrono::steady_clock::now() < until) {
      EXPECT_EQ(net->accept(listener, &recv), NetResult::success);
    }
  }
  const auto lines = std::count(heard().begin(), heard().end(), '\n');
  EXPECT_GE(lines, 4) << heard();
  EXPECT_LE(lines, 10) << heard();
  EXPECT_EQ(net->close_listen(listener), NetResult::success);
}

TEST_F(SideChannel, ShowsWhoeverAnswersNothingOfWhatItIsFor) {
  net::Handle to = listen();
  const auto impostor = Socket::listen(loopback_address());
  ASSERT_TRUE(impostor);
  to.address = *impostor->local_address();
  std::memcpy(handle.data(), &to, sizeof to);
  Socket taken;
  std::string seen;
  void* send = nullptr;
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(300);
  while (std::chrono::steady_clock::now() < until) {
    ASSERT_EQ(net->connect(context, 0, handle.data(), &send), NetResult::success) << heard();
    if (!taken.valid()) taken = *impostor->accept();
    std::array<std::byte, 4096> piece;
    const std::size_t some = taken.valid() ? *taken.receive_some(piece) : 0;
    seen.append(reinterpret_cast<const char*>(piece.data()), some);
  }
  EXPECT_FALSE(seen.empty());
  EXPECT_EQ(seen.find("ucx"), std::string::npos) << "the name of the fabric";
  EXPECT_EQ(seen.find("gdxn"), std::string::npos) << "a greeting's magic";
  EXPECT_LT(seen.size(), 600u) << "one TLS greeting, no addresses and keys";
  taken = Socket();  // it is called again, and shows as little as before
  EXPECT_EQ(net->connect(context, 0, handle.data(), &send), NetResult::success);
  EXPECT_EQ(send, nullptr);
  EXPECT_EQ(net->close_listen(listener), NetResult::success);
}

TEST_F(SideChannel, TakesAPortOfTheRangeOnItsInterfaceAlone) {
  const net::Handle made = listen();
  EXPECT_GE(made.address.port, 28120);
  EXPECT_LE(made.address.port, 28149);
  EXPECT_EQ(made.address.ip, loopback_address().ip);
  EXPECT_EQ(net->close_listen(listener), NetResult::success);
}

}  // namespace
}  // namespace gdrx::test

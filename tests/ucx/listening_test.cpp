// SPDX-License-Identifier: Apache-2.0
// UCX's TCP writes wherever a packet says: whoever reaches its port writes this process's memory.
#include <sys/socket.h>

#include <cstdlib>

#include "tests/ucx/listening.hpp"
#include "tests/ucx/pair.hpp"

namespace gdrx::test {
namespace {

TEST(UcxDevice, ListensAtNoSocket) {
  const Pair pair;
  EXPECT_EQ(listening(), std::vector<std::string>());
}

TEST(UcxDevice, ListensAtNoSocketWhateverUcxIsToldElsewhere) {
  for (const char* tls : {"tcp,self,posix", "all", "^sysv", "sm,tcp"}) {
    setenv("UCX_TLS", tls, 1);
    const Pair pair;
    EXPECT_EQ(listening(), std::vector<std::string>()) << tls;
  }
  unsetenv("UCX_TLS");
}

// So the registry of fork can do without UCX's sockets: a child that keeps them hides no death.
TEST(UcxDevice, HasNoSocketOfWhichAPeerAwaitsTheEnd) {
  Pair pair;
  const WriteOp op = write_of({}, pair.import(pair.region->export_key()), 0);
  ASSERT_EQ(pair.endpoint->post(op).value(), Progress::done);
  ASSERT_TRUE(pair.receive());
  EXPECT_FALSE(own_sockets().empty());
  for (int fd = 0; fd < 256; ++fd) {
    int type = SOCK_DGRAM;
    socklen_t size = sizeof type;
    getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size);
    EXPECT_EQ(type, SOCK_DGRAM) << fd;
  }
}

TEST(UcxDevice, RefusesTcpAskedForByName) {
  Config config;
  config.ucx_tls = "posix,tcp";
  const auto fabric = open_fabric("ucx", config, Log()).value();
  const auto device = fabric->open_device(Rank{0}, config, Log());
  ASSERT_FALSE(device);
  EXPECT_EQ(device.error().code, Errc::invalid_argument);
  EXPECT_NE(device.error().what.find("GDRX_TRANSPORT=tcp"), std::string::npos)
      << device.error().what;
}

}  // namespace
}  // namespace gdrx::test

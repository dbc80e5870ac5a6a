// SPDX-License-Identifier: Apache-2.0
// UCX's TCP writes wherever a packet says: whoever reaches its port writes this process's memory.
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

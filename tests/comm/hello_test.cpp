// SPDX-License-Identifier: Apache-2.0
#include "collectives/comm/hello.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "gdrx/gdrx.h"

namespace gdrx {
namespace {

Hello sample() {
  Hello hello;
  hello.version = GDRX_VERSION;
  hello.pid = 4711;
  hello.host_id = "boot/host-a";
  hello.host_name = "host-a";
  hello.settings = "GDRX_ALGO=auto";
  hello.cpu = "AMD EPYC";
  hello.gpu_name = "NVIDIA H200";
  hello.cpus.set(3);
  hello.memory = {4711, 5, 1 << 20, 99};
  hello.process = {4711, 0, 0x7000, 98};
  hello.device_address = Blob(300, std::byte{7});
  hello.no_gpu = "GDRX_GPU=0";
  hello.needs_gpu = true;
  return hello;
}

TEST(Hello, SurvivesTheWire) {
  const auto decoded = decode_hello(encode(sample()));
  ASSERT_TRUE(decoded);
  EXPECT_EQ(decoded->host_id, "boot/host-a");
  EXPECT_EQ(decoded->cpu, "AMD EPYC");
  EXPECT_EQ(decoded->gpu_name, "NVIDIA H200");
  EXPECT_TRUE(decoded->cpus.test(3));
  EXPECT_EQ(decoded->memory.nonce, 99u);
  EXPECT_EQ(decoded->process.nonce, 98u);
  EXPECT_EQ(decoded->device_address.size(), 300u);
  EXPECT_TRUE(decoded->receive_ring_key.empty());
  EXPECT_EQ(decoded->no_gpu, "GDRX_GPU=0");
  EXPECT_TRUE(decoded->needs_gpu);
}

TEST(Hello, EveryShorterOneIsRefused) {
  const Blob whole = encode(sample());
  for (std::size_t length = 0; length < whole.size(); ++length) {
    EXPECT_FALSE(decode_hello(std::span(whole).first(length))) << length;
  }
}

TEST(Hello, ALongerOneIsRefused) {
  Blob longer = encode(sample());
  longer.push_back(std::byte{0});
  EXPECT_FALSE(decode_hello(longer));
}

// Its layout is not this version's, so that its end is anywhere.
TEST(Hello, AnotherVersionsIsNamedWithBothVersions) {
  Hello other = sample();
  other.version = GDRX_VERSION + 10100;
  const Blob whole = encode(other);
  for (const std::size_t length : {whole.size(), std::size_t{8}, std::size_t{20}}) {
    const auto decoded = decode_hello(std::span(whole).first(length));
    ASSERT_FALSE(decoded);
    EXPECT_EQ(decoded.error().code, Errc::mismatch);
    EXPECT_NE(decoded.error().what.find("gdrx 1.2.0"), std::string::npos) << decoded.error().what;
    EXPECT_NE(decoded.error().what.find("gdrx 0.1.0"), std::string::npos) << decoded.error().what;
  }
}

TEST(Hello, SettingsThatDifferAreTold) {
  const auto [ours, theirs] = difference_of("GDRX_ALGO=ring GDRX_SHM=1 GDRX_LANES=2",
                                            "GDRX_ALGO=auto GDRX_SHM=1 GDRX_LANES=4");
  EXPECT_EQ(ours, "GDRX_ALGO=ring GDRX_LANES=2");
  EXPECT_EQ(theirs, "GDRX_ALGO=auto GDRX_LANES=4");
}

RC_GTEST_PROP(Hello, GarbageIsRefusedWithoutHarm, (const std::vector<std::uint8_t>& bytes)) {
  RC_ASSERT(!decode_hello(std::as_bytes(std::span(bytes))));
}

}  // namespace
}  // namespace gdrx

// SPDX-License-Identifier: Apache-2.0
// What needs no NIC: the filter, the choice of a GID, the striper, the wire.
#include <gtest/gtest.h>

#include "gdrx/config.hpp"
#include "transport/verbs/gid.hpp"
#include "transport/verbs/hca_filter.hpp"
#include "transport/verbs/options.hpp"
#include "transport/verbs/striper.hpp"
#include "transport/verbs/wire.hpp"

namespace gdrx::verbs {
namespace {

struct FilterCase {
  const char* text;
  const char* device;
  std::uint8_t port;
  bool takes;
};

class Filter : public ::testing::TestWithParam<FilterCase> {};

TEST_P(Filter, ReadsTheGrammarOfNcclIbHca) {
  const FilterCase& c = GetParam();
  auto filter = HcaFilter::parse(c.text);
  ASSERT_TRUE(filter.has_value());
  EXPECT_EQ(filter->takes(c.device, c.port), c.takes) << c.text << " " << c.device;
}

INSTANTIATE_TEST_SUITE_P(Cases, Filter,
                         ::testing::Values(FilterCase{"", "mlx5_0", 1, true},
                                           FilterCase{"mlx5", "mlx5_3", 2, true},
                                           FilterCase{"mlx5", "irdma0", 1, false},
                                           FilterCase{"=mlx5_1", "mlx5_10", 1, false},
                                           FilterCase{"mlx5_1", "mlx5_10", 1, true},
                                           FilterCase{"=mlx5_1", "mlx5_1", 1, true},
                                           FilterCase{"^mlx5_3", "mlx5_3", 1, false},
                                           FilterCase{"^mlx5_3", "mlx5_2", 1, true},
                                           FilterCase{"^=mlx5_1,mlx5_4", "mlx5_10", 1, true},
                                           FilterCase{"^=mlx5_1,mlx5_4", "mlx5_4", 1, false},
                                           FilterCase{"mlx5_0:1,mlx5_1:2", "mlx5_0", 1, true},
                                           FilterCase{"mlx5_0:1,mlx5_1:2", "mlx5_0", 2, false},
                                           FilterCase{"mlx5_0:1,mlx5_1:2", "mlx5_1", 2, true},
                                           FilterCase{"=mlx5_0:1:0:1", "mlx5_0", 1, true}));

TEST(Filter, RefusesAPortThatIsNoNumber) {
  EXPECT_FALSE(HcaFilter::parse("mlx5_0:x").has_value());
  EXPECT_FALSE(HcaFilter::parse("mlx5_0:999").has_value());
  EXPECT_FALSE(HcaFilter::parse(":1").has_value());
}

Gid gid(std::uint32_t index, std::uint32_t type, std::initializer_list<int> head, bool ipv4) {
  Gid made;
  made.index = index;
  made.type = type;
  std::size_t i = 0;
  for (const int byte : head) made.raw.raw[i++] = static_cast<std::uint8_t>(byte);
  if (ipv4) {
    made.raw.raw[10] = made.raw.raw[11] = 0xff;
    made.raw.raw[12] = 10;
  }
  made.raw.raw[15] = 1;
  return made;
}

TEST(GidChoice, PrefersRoutableThenVersionTwoThenIpv4) {
  const Gid local1 = gid(0, IBV_GID_TYPE_ROCE_V1, {0xfe, 0x80}, false);
  const Gid local2 = gid(1, IBV_GID_TYPE_ROCE_V2, {0xfe, 0x80}, false);
  const Gid ip1 = gid(2, IBV_GID_TYPE_ROCE_V1, {}, true);
  const Gid ip2 = gid(3, IBV_GID_TYPE_ROCE_V2, {}, true);
  const Gid global2 = gid(4, IBV_GID_TYPE_ROCE_V2, {0xfd, 0}, false);
  const auto choose = [](std::vector<Gid> table) { return choose_gid(table, true)->index; };
  EXPECT_EQ(choose({local1, local2, ip1, ip2, global2}), 3U);
  EXPECT_EQ(choose({local1, local2, ip1, global2}), 4U);
  EXPECT_EQ(choose({local1, local2, ip1}), 2U);
  EXPECT_EQ(choose({local1, local2}), 1U);
  EXPECT_FALSE(choose_gid({}, true).has_value());
  EXPECT_FALSE(choose_gid(std::vector<Gid>{Gid{}}, true).has_value());
}

Bytes total(const Stripes& stripes) {
  Bytes sum = 0;
  for (std::size_t i = 0; i < stripes.count; ++i) {
    EXPECT_EQ(stripes.item[i].offset, sum);
    EXPECT_EQ(stripes.item[i].offset % kStripeAlign, 0U);
    sum += stripes.item[i].bytes;
  }
  return sum;
}

bool near(Bytes value, Bytes wanted) {
  return value + 2 * kStripeAlign >= wanted && wanted + 2 * kStripeAlign >= value;
}

TEST(Striper, CutsEvenlyOverEqualRailsOnBoundariesOf128Bytes) {
  const std::vector<RailLoad> rails{{100, 0}, {100, 0}, {100, 0}};
  const Stripes cut = stripe(1'000'001, rails);
  ASSERT_EQ(cut.count, 3U);
  EXPECT_EQ(total(cut), 1'000'001U);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_TRUE(near(cut.item[i].bytes, 333'333));
}

TEST(Striper, GivesNothingToARailThatIsDown) {
  const std::vector<RailLoad> rails{{100, 0}, {0, 0}, {100, 0}};
  const Stripes cut = stripe(1 << 20, rails);
  ASSERT_EQ(cut.count, 2U);
  EXPECT_EQ(cut.item[0].rail, 0);
  EXPECT_EQ(cut.item[1].rail, 2);
  EXPECT_EQ(stripe(100, std::vector<RailLoad>{{0, 0}}).count, 0U);
}

TEST(Striper, WeighsBySpeedAndByWhatIsOutstanding) {
  const Stripes fast = stripe(3 << 20, std::vector<RailLoad>{{100, 0}, {200, 0}});
  ASSERT_EQ(fast.count, 2U);
  EXPECT_TRUE(near(fast.item[1].bytes, 2 << 20));
  const Stripes behind = stripe(1 << 20, std::vector<RailLoad>{{100, 512 << 10}, {100, 0}});
  ASSERT_EQ(behind.count, 2U);
  EXPECT_TRUE(near(behind.item[0].bytes, 256 << 10));
  EXPECT_EQ(stripe(1 << 20, std::vector<RailLoad>{{100, 8 << 20}, {100, 0}}).count, 1U);
}

TEST(Striper, LeavesShortMessagesWhole) {
  const std::vector<RailLoad> rails{{100, 0}, {100, 0}};
  EXPECT_EQ(stripe(kLeastStripe, rails).count, 1U);
  EXPECT_EQ(stripe(0, rails).count, 1U);
  EXPECT_EQ(total(stripe(kLeastStripe, rails)), kLeastStripe);
}

TEST(Wire, ASignalSurvivesTheWrapOfItsSequenceNumber) {
  for (const std::uint64_t next : {0ULL, 16'300ULL, 1'000'000'007ULL}) {
    for (std::uint64_t ahead = 0; ahead < kWindow; ++ahead) {
      const Signal sent{SignalKind::whole_immediate, next + ahead, 0xbeef};
      const auto got = decode_signal(encode(sent), next);
      ASSERT_TRUE(got.has_value());
      EXPECT_EQ(got->sequence, next + ahead);
      EXPECT_EQ(got->low, 0xbeef);
      EXPECT_EQ(got->kind, SignalKind::whole_immediate);
    }
  }
  EXPECT_FALSE(decode_signal(0xffffffff, 0).has_value());
}

TEST(Wire, ADatagramThatIsShortLongOldOrGarbageIsRefused) {
  Control good;
  good.kind = ControlKind::hello;
  good.rails = good.qps = 1;
  good.rail.mtu = IBV_MTU_1024;
  const auto bytes_of = [](const Control& c) { return std::as_bytes(std::span(&c, 1)); };
  EXPECT_TRUE(decode_control(bytes_of(good)).has_value());
  EXPECT_FALSE(decode_control(bytes_of(good).first(100)).has_value());
  EXPECT_FALSE(decode_control({}).has_value());
  const auto refused = [&](auto change) {
    Control bad = good;
    change(bad);
    return !decode_control(bytes_of(bad)).has_value();
  };
  EXPECT_TRUE(refused([](Control& c) { c.magic = 7; }));
  EXPECT_TRUE(refused([](Control& c) { c.version = 0; }));
  EXPECT_TRUE(refused([](Control& c) { c.kind = ControlKind{9}; }));
  EXPECT_TRUE(refused([](Control& c) { c.pair = kMaxRails; }));
  EXPECT_TRUE(refused([](Control& c) { c.qps = 0; }));
  EXPECT_TRUE(refused([](Control& c) { c.rails = 200; }));
  EXPECT_TRUE(refused([](Control& c) { c.rank = -1; }));
  EXPECT_TRUE(refused([](Control& c) { c.rail.name.fill('x'); }));
  EXPECT_TRUE(refused([](Control& c) { c.rail.mtu = 77; }));
}

TEST(GidChoice, ARangeComesFirstThenTheWishedFamilyAndVersion) {
  Gid ten = gid(2, IBV_GID_TYPE_ROCE_V2, {}, true);
  Gid other = gid(3, IBV_GID_TYPE_ROCE_V2, {}, true);
  ten.raw.raw[12] = 10;
  ten.raw.raw[13] = 1;
  other.raw.raw[12] = 192;
  const Gid v1 = gid(4, IBV_GID_TYPE_ROCE_V1, {}, true);
  const Gid six = gid(5, IBV_GID_TYPE_ROCE_V2, {0xfd, 0}, false);
  const std::vector<Gid> all{ten, other, v1, six};
  const auto choose = [&](const GidWish& wish) { return choose_gid(all, true, wish)->index; };
  const auto range = [](const char* text) {
    const auto loaded = load_config({std::string("NCCL_IB_ADDR_RANGE=") + text});
    return Options::from(loaded->config)->gid;
  };
  EXPECT_EQ(choose({}), 2U);
  EXPECT_EQ(choose(range("192.0.0.0/8")), 3U);
  EXPECT_EQ(choose(range("10.0.0.0/15")), 2U);
  EXPECT_EQ(choose(range("fd00::/8")), 5U);
  EXPECT_EQ(choose(range("11.0.0.0/8")), 2U) << "none of that range";
  GidWish ipv6;
  ipv6.ipv6 = true;
  EXPECT_EQ(choose(ipv6), 5U);
  GidWish version1;
  version1.version = 1;
  EXPECT_EQ(choose(version1), 4U);
}

TEST(GidIndexes, OfAPortComeBeforeThoseOfItsDeviceAndThoseOfAll) {
  const auto indexes = GidIndexes::parse("7,mlx5_1=3,mlx5_1:2=5");
  ASSERT_TRUE(indexes.has_value());
  EXPECT_EQ(indexes->of("mlx5_0", 1), 7U);
  EXPECT_EQ(indexes->of("mlx5_1", 1), 3U);
  EXPECT_EQ(indexes->of("mlx5_1", 2), 5U);
  EXPECT_EQ(indexes->of("mlx5_10", 2), 7U) << "names are exact";
  EXPECT_EQ(GidIndexes::parse("")->of("mlx5_0", 1), std::nullopt);
  EXPECT_EQ(GidIndexes::parse("mlx5_1=0")->of("mlx5_0", 1), std::nullopt);
}

TEST(GidIndexes, RefuseWhatIsNone) {
  for (const char* text : {"x", "mlx5_0", "mlx5_0=", "mlx5_0=-1", "mlx5_0=256", "mlx5_0:x=1", "=3",
                           "mlx5_0=3 ", "mlx5_0=3=4"}) {
    const auto refused = GidIndexes::parse(text);
    ASSERT_FALSE(refused.has_value()) << text;
    EXPECT_EQ(refused.error().code, Errc::invalid_argument);
  }
}

TEST(VerbsConfig, ItsOwnGidIndexesComeBeforeNccls) {
  const auto loaded = load_config({"NCCL_IB_GID_INDEX=3", "GDRX_GID_INDEX=mlx5_0=1"});
  ASSERT_TRUE(loaded.has_value());
  const auto options = Options::from(loaded->config);
  ASSERT_TRUE(options.has_value());
  EXPECT_EQ(options->gid_indexes.of("mlx5_0", 1), 1U);
  EXPECT_EQ(options->gid_indexes.of("mlx5_1", 1), 3U);
}

TEST(VerbsConfig, HonoursNcclsVariablesAndItsOwnFirst) {
  const auto loaded = load_config(
      {"NCCL_IB_HCA=mlx5_1", "NCCL_IB_GID_INDEX=3", "NCCL_IB_TC=106", "NCCL_IB_SL=5",
       "NCCL_IB_TIMEOUT=22", "NCCL_IB_RETRY_CNT=3", "NCCL_IB_PKEY=2",
       "NCCL_IB_QPS_PER_CONNECTION=4", "NCCL_IB_ADAPTIVE_ROUTING=1", "NCCL_IB_AR_THRESHOLD=4096",
       "NCCL_IB_PCI_RELAXED_ORDERING=0", "NCCL_IB_ECE_ENABLE=0", "NCCL_IB_ADDR_FAMILY=AF_INET6",
       "NCCL_IB_ADDR_RANGE=10.1.0.0/16", "NCCL_IB_ROCE_VERSION_NUM=1", "NCCL_DMABUF_ENABLE=0",
       "NCCL_IB_SOMETHING_ELSE=1", "NCCL_DEBUG=INFO"});
  ASSERT_TRUE(loaded.has_value());
  EXPECT_TRUE(loaded->warnings.empty());
  auto options = Options::from(loaded->config);
  ASSERT_TRUE(options.has_value());
  EXPECT_TRUE(options->filter.takes("mlx5_1", 1));
  EXPECT_FALSE(options->filter.takes("mlx5_0", 1));
  EXPECT_EQ(options->gid_indexes.of("mlx5_1", 1), 3U);
  EXPECT_EQ(options->traffic_class, 106);
  EXPECT_EQ(options->service_level, 5);
  EXPECT_EQ(options->timeout, 22);
  EXPECT_EQ(options->retries, 3);
  EXPECT_EQ(options->pkey_index, 2);
  EXPECT_EQ(options->qps, 4);
  EXPECT_EQ(options->adaptive_routing, 1);
  EXPECT_EQ(options->adaptive_threshold, 4096U);
  EXPECT_FALSE(options->relaxed_ordering);
  EXPECT_FALSE(options->ece);
  EXPECT_FALSE(options->dma_buf);
  EXPECT_TRUE(options->gid.ipv6);
  EXPECT_EQ(options->gid.version, 1U);
  EXPECT_EQ(options->gid.bits, 112);
  EXPECT_FALSE(load_config({"NCCL_IB_ADDR_RANGE=10.1/99"}).has_value());
  EXPECT_EQ(options->gpu_direct, GpuDirect::automatic);
  const auto gpu = load_config({"GDRX_GPU_DIRECT=peermem", "GDRX_GPU_FLUSH=always"});
  EXPECT_EQ(Options::from(gpu->config)->gpu_direct, GpuDirect::peermem);
  EXPECT_TRUE(Options::from(gpu->config)->gpu_flush);
  EXPECT_FALSE(load_config({"GDRX_GPU_DIRECT=nvlink"}).has_value());
  const auto ours = load_config({"GDRX_HCA=mlx5_0", "NCCL_IB_HCA=mlx5_1"});
  EXPECT_TRUE(Options::from(ours->config)->filter.takes("mlx5_0", 1));
  EXPECT_FALSE(load_config({"NCCL_IB_SL=16"}).has_value());
}

}  // namespace
}  // namespace gdrx::verbs

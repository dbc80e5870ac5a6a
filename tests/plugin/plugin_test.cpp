// SPDX-License-Identifier: Apache-2.0
// The plugin's library, loaded and driven as NCCL does, in each version of the ABI.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>

#include "plugin/stats/prometheus.hpp"
#include "tests/plugin/pair.hpp"

namespace gdrx::test {
namespace {

using Bytes = std::vector<std::byte>;

class Plugin : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    std::string why;
    net = AnyNet::open(GDRX_PLUGIN, GetParam(), &why);
    ASSERT_NE(net, nullptr) << why;
    ASSERT_EQ(net->init(&context, nccl_logger), NetResult::success);
    ASSERT_EQ(net->init(&other, nccl_logger), NetResult::success);
    heard().clear();
  }
  void TearDown() override {
    if (net == nullptr) return;
    EXPECT_EQ(net->finalize(context), NetResult::success);
    EXPECT_EQ(net->finalize(other), NetResult::success);
    if (!expects_warning) {
      EXPECT_EQ(heard(), "");
    }
  }
  std::unique_ptr<AnyNet> net;
  void* context = nullptr;
  void* other = nullptr;
  bool expects_warning = false;
};

TEST_P(Plugin, SaysWhatItIs) {
  int count = 0;
  ASSERT_EQ(net->devices(&count), NetResult::success);
  ASSERT_GE(count, 1);
  Properties properties;
  ASSERT_EQ(net->properties(0, &properties), NetResult::success);
  EXPECT_EQ(net->name(), "gdrx");
  EXPECT_EQ(properties.ptr_support, nccl::kPtrHost);
  EXPECT_EQ(properties.max_recvs, 8);
  EXPECT_GT(properties.speed, 0);
  EXPECT_GT(properties.max_p2p_bytes, 0U);
  EXPECT_LE(properties.max_p2p_bytes, nccl::kMaxNetSize);
  expects_warning = true;
  EXPECT_NE(net->properties(count, &properties), NetResult::success);
}

TEST_P(Plugin, CarriesEverySizeInALoopAndBetweenTwoContexts) {
  for (void* receiver : {context, other}) {
    Pair pair(*net);
    pair.connect(context, receiver);
    for (std::size_t bytes : {0UL, 1UL, 127UL, 8128UL, 8129UL, 131008UL, 131009UL, 5'000'003UL}) {
      Bytes out = pattern(bytes, static_cast<unsigned>(bytes));
      Bytes in(bytes + 5, std::byte{0x55});
      const auto recv = pair.post_recv({&in}, {7});
      const auto send = pair.post_send(out, 7);
      ASSERT_TRUE(pair.finish()) << bytes;
      for (const auto request : {recv, send}) {
        EXPECT_EQ(pair.size(request), static_cast<int>(bytes));
        EXPECT_EQ(pair.size(request, 1), -7) << "written beyond the one size";
      }
      EXPECT_TRUE(std::equal(out.begin(), out.end(), in.begin())) << bytes;
      EXPECT_EQ(in[bytes], std::byte{0x55});
    }
  }
}

TEST_P(Plugin, KeepsManyMessagesInTheOrderOfTheReceives) {
  Pair pair(*net);
  pair.connect(context, other);
  constexpr std::size_t kUnderWay = 32;
  std::vector<Bytes> in(kUnderWay), out(kUnderWay);
  for (int round = 0; round < 20; ++round) {
    pair.forget();
    for (std::size_t i = 0; i < kUnderWay; ++i) {
      in[i].assign(100'000, std::byte{0});
      pair.post_recv({&in[i]}, {1});
    }
    for (std::size_t i = 0; i < kUnderWay; ++i) {
      out[i] = pattern(i % 3 == 0 ? 17 : 100'000 - i, static_cast<unsigned>(round * 100) + 1);
      pair.post_send(out[i], 1);
    }
    ASSERT_TRUE(pair.finish()) << round;
    for (std::size_t i = 0; i < kUnderWay; ++i) {
      ASSERT_TRUE(std::equal(out[i].begin(), out[i].end(), in[i].begin())) << round << ' ' << i;
    }
  }
}

TEST_P(Plugin, MatchesAGroupByTagsAndRepeatedTagsInOrder) {
  Pair pair(*net);
  pair.connect(context, other);
  std::vector<Bytes> in(8, Bytes(300'000)), out;
  std::vector<Bytes*> places;
  for (Bytes& one : in) places.push_back(&one);
  const auto recv = pair.post_recv(places, {5, 6, 5, 7, 8, 9, 10, 5});
  const std::vector<int> tags{10, 5, 9, 8, 5, 7, 6, 5};
  const std::vector<std::size_t> lands{6, 0, 5, 4, 2, 3, 1, 7};
  for (std::size_t i = 0; i < tags.size(); ++i) out.push_back(pattern(1000 * i, 3));
  for (std::size_t i = 0; i < tags.size(); ++i) pair.post_send(out[i], tags[i]);
  ASSERT_TRUE(pair.finish());
  EXPECT_EQ(pair.size(recv, 8), -7) << "written beyond the eight sizes";
  for (std::size_t i = 0; i < tags.size(); ++i) {
    EXPECT_EQ(pair.size(recv, lands[i]), static_cast<int>(out[i].size()));
    EXPECT_TRUE(std::equal(out[i].begin(), out[i].end(), in[lands[i]].begin())) << i;
  }
}

TEST_P(Plugin, CutsASendThatIsLongerThanItsReceive) {
  Pair pair(*net);
  pair.connect(context, other);
  Bytes out = pattern(500'000, 1);
  Bytes in(200'001, std::byte{0x33});
  in.resize(200'000);
  const auto recv = pair.post_recv({&in}, {0});
  const auto send = pair.post_send(out, 0);
  ASSERT_TRUE(pair.finish());
  EXPECT_EQ(pair.size(recv), 200'000);
  EXPECT_EQ(pair.size(send), 200'000);
  EXPECT_TRUE(std::equal(in.begin(), in.end(), out.begin()));
}

TEST_P(Plugin, CarriesRegisteredMemoryWholeAndAtItsOffset) {
  for (void* receiver : {context, other}) {
    Pair pair(*net);
    pair.connect(context, receiver);
    Bytes out = pattern(3'000'000, 2);
    Bytes in(3'000'000, std::byte{0x77});
    void *send_mr = nullptr, *recv_mr = nullptr;
    ASSERT_EQ(net->reg_mr(pair.send, out.data(), out.size(), nccl::kPtrHost, &send_mr),
              NetResult::success);
    ASSERT_EQ(net->reg_mr(pair.recv, in.data(), in.size(), nccl::kPtrHost, &recv_mr),
              NetResult::success);
    for (std::size_t bytes : {1UL, 20'000UL, 1'000'001UL}) {
      void *recv = nullptr, *send = nullptr;
      pair.post(recv, [&] {
        return net->irecv(pair.recv, {in.data() + 1000}, {2'000'000}, {0}, {recv_mr}, &recv);
      });
      pair.post(send,
                [&] { return net->isend(pair.send, out.data() + 77, bytes, 0, send_mr, &send); });
      ASSERT_TRUE(pair.finish());
      EXPECT_EQ(pair.size(0), static_cast<int>(bytes));
      pair.forget();
      EXPECT_TRUE(std::equal(out.begin() + 77, out.begin() + 77 + static_cast<long>(bytes),
                             in.begin() + 1000));
      EXPECT_EQ(in[999], std::byte{0x77});
      EXPECT_EQ(in[1000 + bytes], std::byte{0x77});
    }
    const std::string counters = stats::prometheus(**stats::open_page(stats::page_path(getpid())));
    const char* transport = getenv("GDRX_TRANSPORT");
    const bool verbs = transport != nullptr && std::string_view(transport) == "verbs";
    EXPECT_EQ(counters.find("direct_messages_total{") != std::string::npos &&
                  counters.find(",path=\"verbs: itself\"} 2\n") != std::string::npos,
              verbs && receiver == context)
        << counters;
    EXPECT_EQ(net->dereg_mr(pair.send, send_mr), NetResult::success);
    EXPECT_EQ(net->dereg_mr(pair.recv, recv_mr), NetResult::success);
  }
}

TEST_P(Plugin, AsksToTryAgainWithoutAReceiveOfThatTag) {
  Pair pair(*net);
  pair.connect(context, other);
  Bytes out(10), in(10);
  void* request = out.data();
  ASSERT_EQ(net->isend(pair.send, out.data(), 10, 1, nullptr, &request), NetResult::success);
  EXPECT_EQ(request, nullptr);
  pair.post_recv({&in}, {2});
  for (int i = 0; i < 1000; ++i) {
    ASSERT_EQ(net->isend(pair.send, out.data(), 10, 1, nullptr, &request), NetResult::success);
    ASSERT_EQ(request, nullptr);
  }
  pair.post_send(out, 2);
  ASSERT_TRUE(pair.finish());
}

TEST_P(Plugin, ClosesAtOnceWithRequestsOpen) {
  Pair pair(*net);
  pair.connect(context, other);
  Bytes in(1'000'000), out(4'000'000);
  pair.post_recv({&in}, {1});
  pair.post_recv({&out}, {2});
  pair.post_send(in, 1);
  const auto begin = std::chrono::steady_clock::now();
  pair.close();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(1));
  expects_warning = true;
}

TEST_P(Plugin, SaysThatThePeerHasClosed) {
  Pair pair(*net);
  pair.connect(context, other);
  Bytes in(100);
  void* recv = pair.requests[pair.post_recv({&in}, {1})].handle;
  ASSERT_EQ(net->close_send(pair.send), NetResult::success);
  pair.send = nullptr;
  NetResult result = NetResult::success;
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (result == NetResult::success && std::chrono::steady_clock::now() < end) {
    int done = 0;
    result = net->test(recv, &done, nullptr);
    ASSERT_EQ(done, 0);
  }
  EXPECT_EQ(result, NetResult::remote_error);
  EXPECT_NE(heard().find("has closed or died"), std::string::npos) << heard();
  expects_warning = true;
}

TEST_P(Plugin, RefusesARequestThatIsDone) {
  Pair pair(*net);
  pair.connect(context, other);
  Bytes in(4), out(4);
  void* recv = pair.requests[pair.post_recv({&in}, {1})].handle;
  pair.post_send(out, 1);
  ASSERT_TRUE(pair.finish());
  int done = 1;
  EXPECT_NE(net->test(recv, &done, nullptr), NetResult::success);
  EXPECT_EQ(done, 0);
  EXPECT_NE(net->test(&in, &done, nullptr), NetResult::success);
  expects_warning = true;
}

INSTANTIATE_TEST_SUITE_P(Abi, Plugin, testing::Values(8, 9, 10, 11, 12),
                         [](const auto& info) { return "v" + std::to_string(info.param); });

}  // namespace
}  // namespace gdrx::test

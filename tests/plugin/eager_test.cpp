// SPDX-License-Identifier: Apache-2.0
// Messages that travel before their receives are posted, and what they leave for many peers.
#include <unistd.h>

#include <cstdlib>
#include <string_view>

#include "plugin/stats/prometheus.hpp"
#include "tests/plugin/each_abi.hpp"

namespace gdrx::test {
namespace {

/// Of all connections of one way that are open.
std::uint64_t counted(const std::string& metric, const std::string& way) {
  const std::string all = stats::prometheus(**stats::open_page(stats::page_path(getpid())));
  const std::string start = "\ngdrx_net_" + metric + "{";
  std::uint64_t sum = 0;
  for (std::size_t at = 0; (at = all.find(start, at)) != std::string::npos; ++at) {
    const std::size_t end = all.find("} ", at);
    const std::string_view labels(all.data() + at, end - at);
    if (labels.find("way=\"" + way + '"') == std::string_view::npos) continue;
    sum += std::stoull(all.substr(end + 2));
  }
  return sum;
}

TEST_P(Plugin, SendsSmallMessagesBeforeTheirReceivesArePosted) {
  const char* transport = getenv("GDRX_TRANSPORT");
  if (transport == nullptr || std::string_view(transport) != "verbs") GTEST_SKIP() << "verbs alone";
  Pair pair(*net);
  pair.connect(context, other);
  constexpr int kMost = 16;
  std::vector<Bytes> out, in(kMost + 2, Bytes(8192));
  const std::vector<int> tags{1, 2, 1, 3, 3, 1, 2, 2, 4, 1, 2, 3, 4, 1, 1, 2};
  for (int i = 0; i < kMost; ++i) {
    out.push_back(
        pattern(i == 5 ? 0 : 8192 - static_cast<std::size_t>(i) * 500, static_cast<unsigned>(i)));
    pair.post_send(out.back(), tags[static_cast<std::size_t>(i)]);
  }
  ASSERT_TRUE(pair.finish()) << "done though nobody has posted a receive";
  void* request = nullptr;
  ASSERT_EQ(net->isend(pair.send, out[0].data(), 1, 1, nullptr, &request), NetResult::success);
  EXPECT_EQ(request, nullptr) << "one too many";
  EXPECT_EQ(counted("early_messages_total", "send"), 16U);
  pair.forget();
  // Groups whose tags come in another order than the messages, one message of them not sent yet.
  const std::vector<std::vector<int>> groups{
      {2, 1, 9}, {1}, {3, 3, 2, 4, 1, 2, 1, 2}, {1, 4, 3, 1, 2}};
  std::vector<std::vector<std::size_t>> places;
  std::size_t next = 0;
  for (const auto& group : groups) {
    std::vector<Bytes*> where;
    for (std::size_t i = 0; i < group.size(); ++i) where.push_back(&in[next++]);
    pair.post_recv(where, group);
  }
  ASSERT_EQ(next, in.size() - 1);
  Bytes last = pattern(100'000, 3);  // the first group's third: cut, and not eager
  pair.post_send(last, 9);
  ASSERT_TRUE(pair.finish());
  std::size_t at = 0;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    for (std::size_t item = 0; item < groups[g].size(); ++item, ++at) {
      const int tag = groups[g][item];
      // The n-th receive of a tag has its n-th message.
      int n = 0;
      for (std::size_t h = 0, seen = 0; h <= g; ++h) {
        for (std::size_t k = 0; k < groups[h].size() && seen < at; ++k, ++seen)
          n += groups[h][k] == tag;
      }
      const Bytes* expected = &last;
      for (std::size_t m = 0; m < tags.size(); ++m) {
        if (tags[m] == tag && n-- == 0) expected = &out[m];
      }
      const auto size = std::min(expected->size(), tag == 9 ? std::size_t{8192} : expected->size());
      EXPECT_EQ(pair.size(g, item), static_cast<int>(size)) << g << ' ' << item;
      EXPECT_TRUE(
          std::equal(in[at].begin(), in[at].begin() + static_cast<long>(size), expected->begin()))
          << g << ' ' << item;
    }
  }
}

TEST_P(Plugin, ToldByTheWriteAloneWhereItFillsTheNextReceive) {
  const char* transport = getenv("GDRX_TRANSPORT");
  if (transport == nullptr || std::string_view(transport) != "verbs") GTEST_SKIP() << "verbs alone";
  constexpr std::size_t kItems = 8, kSize = 40'000;
  Pair pair(*net);
  pair.connect(context, other);
  Bytes out = pattern(kItems * kSize, 4), in(kItems * kSize);
  void *send_mr = nullptr, *recv_mr = nullptr;
  ASSERT_EQ(net->reg_mr(pair.send, out.data(), out.size(), nccl::kPtrHost, &send_mr),
            NetResult::success);
  ASSERT_EQ(net->reg_mr(pair.recv, in.data(), in.size(), nccl::kPtrHost, &recv_mr),
            NetResult::success);
  const auto group = [&](const std::vector<int>& order, std::size_t size) {
    pair.forget();
    std::fill(in.begin(), in.end(), std::byte{0});
    std::vector<void*> places, mrs(kItems, recv_mr);
    std::vector<int> tags;
    for (std::size_t i = 0; i < kItems; ++i) {
      places.push_back(in.data() + i * kSize);
      tags.push_back(static_cast<int>(i));
    }
    const std::uint64_t heads = counted("chunks_total", "receive");
    void* request = nullptr;
    pair.post(request, [&] {
      return net->irecv(pair.recv, places, std::vector<std::size_t>(kItems, kSize), tags, mrs,
                        &request);
    });
    for (const int tag : order) {
      void* send = nullptr;
      pair.post(send, [&] {
        return net->isend(pair.send, out.data() + static_cast<std::size_t>(tag) * kSize, size, tag,
                          send_mr, &send);
      });
    }
    EXPECT_TRUE(pair.finish());
    for (std::size_t i = 0; i < kItems; ++i) {
      EXPECT_EQ(pair.size(0, i), static_cast<int>(size));
      EXPECT_TRUE(std::equal(in.begin() + static_cast<long>(i * kSize),
                             in.begin() + static_cast<long>(i * kSize + size),
                             out.begin() + static_cast<long>(i * kSize)))
          << i;
    }
    return counted("chunks_total", "receive") - heads;
  };
  EXPECT_EQ(group({0, 1, 2, 3, 4, 5, 6, 7}, kSize), 0U);
  EXPECT_EQ(group({0, 1, 2, 3, 4, 5, 6, 7}, kSize - 1), 8U);  // shorter: the head says how long
  EXPECT_EQ(group({7, 6, 5, 4, 3, 2, 1, 0}, kSize), 7U);      // and which one it is
  EXPECT_EQ(group({1, 0, 2, 3, 5, 4, 6, 7}, kSize), 2U);
  EXPECT_EQ(net->dereg_mr(pair.send, send_mr), NetResult::success);
  EXPECT_EQ(net->dereg_mr(pair.recv, recv_mr), NetResult::success);
}

TEST_P(Plugin, KeepsLessRoomForEachOfManyPeers) {
  if (!net->takes_hints()) GTEST_SKIP() << "no setNetAttr before v11";
  const char* transport = std::getenv("GDRX_TRANSPORT");
  if (transport != nullptr && std::string_view(transport) == "tcp") {
    GTEST_SKIP() << "what nobody polls gets nothing over tcp";
  }
  const auto posted = [&](std::int32_t peers) {
    nccl::NetAttributes hints{};
    hints.recv.max_concurrent_peers = peers;
    EXPECT_EQ(net->set_net_attr(other, hints), NetResult::success);
    Pair pair(*net);
    pair.connect(context, other);
    Bytes in(5'000'000), out(5'000'000);
    pair.post_recv({&in}, {1});
    pair.forget();  // nobody polls the receiver's side
    pair.post_send(out, 1);
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(200);
    int done = 0;
    while (std::chrono::steady_clock::now() < end) {
      EXPECT_EQ(net->test(pair.requests[0].handle, &done, nullptr), NetResult::success);
    }
    EXPECT_EQ(done, 0);
    return counted("chunks_total", "send");
  };
  EXPECT_EQ(posted(2), 16U);
  EXPECT_EQ(posted(100), 4U);
  EXPECT_EQ(posted(nccl::kUndefined), 16U);
}

}  // namespace
}  // namespace gdrx::test

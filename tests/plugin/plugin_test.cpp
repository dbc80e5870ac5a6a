// SPDX-License-Identifier: Apache-2.0
// The plugin's library, loaded and driven as NCCL does, in each version of the ABI.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <string_view>

#include "plugin/stats/prometheus.hpp"
#include "tests/plugin/each_abi.hpp"

namespace gdrx::test {
namespace {

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
  constexpr std::size_t kSize = 10'000;  // too large to go eagerly
  Pair pair(*net);
  pair.connect(context, other);
  Bytes out(kSize), in(kSize);
  void* request = out.data();
  ASSERT_EQ(net->isend(pair.send, out.data(), kSize, 1, nullptr, &request), NetResult::success);
  EXPECT_EQ(request, nullptr);
  pair.post_recv({&in}, {2});
  for (int i = 0; i < 1000; ++i) {
    ASSERT_EQ(net->isend(pair.send, out.data(), kSize, 1, nullptr, &request), NetResult::success);
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
  told().clear();
  const auto begin = std::chrono::steady_clock::now();
  pair.close();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(1));
  // All that is known of them: an abort's post-mortem.
  EXPECT_NE(told().find("closeRecv: closed with requests open"), std::string::npos) << told();
  EXPECT_NE(told().find("receive 1: tag 1 has "), std::string::npos) << told();
  EXPECT_NE(told().find("2 open requests, 0 messages and 0 bytes before; "), std::string::npos)
      << told();
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
  // By the connection's end, or by what the fabric says of it.
  EXPECT_TRUE(heard().find("has closed or died") != std::string::npos ||
              heard().find(" is lost: ") != std::string::npos)
      << heard();
  EXPECT_NE(heard().find("the peer "), std::string::npos) << heard();
  expects_warning = true;
}

// Connections to where the handle says, by which nobody says anything.
std::vector<int> crowd_at(const void* handle, int count) {
  struct {
    std::uint32_t magic, version;
    std::uint16_t family, port;
    std::array<std::uint8_t, 16> ip;
  } head{};
  std::memcpy(&head, handle, sizeof head);
  std::vector<int> crowd;
  for (int i = 0; i < count; ++i) {
    const int fd = socket(head.family == 6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in in4{};
    sockaddr_in6 in6{};
    in4.sin_family = AF_INET;
    in6.sin6_family = AF_INET6;
    in4.sin_port = in6.sin6_port = htons(head.port);
    std::memcpy(&in4.sin_addr, head.ip.data(), 4);
    std::memcpy(&in6.sin6_addr, head.ip.data(), 16);
    const bool four = head.family != 6;
    EXPECT_EQ(
        ::connect(fd, four ? reinterpret_cast<sockaddr*>(&in4) : reinterpret_cast<sockaddr*>(&in6),
                  four ? sizeof in4 : sizeof in6),
        0);
    crowd.push_back(fd);
  }
  return crowd;
}

TEST_P(Plugin, LetsInARankWhoseGreetingLiesUnreadBeforeACrowd) {
  Pair pair(*net);
  std::array<std::byte, nccl::kHandleMaxSize> handle{};
  ASSERT_EQ(net->listen(other, 0, handle.data(), &pair.listener), NetResult::success);
  for (int i = 0; i < 3; ++i) {  // it connects and says hello
    ASSERT_EQ(net->connect(context, 0, handle.data(), &pair.send), NetResult::success);
    usleep(1000);
  }
  const std::vector<int> crowd = crowd_at(handle.data(), 100);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  while ((pair.send == nullptr || pair.recv == nullptr) && std::chrono::steady_clock::now() < end) {
    if (pair.send == nullptr) {
      ASSERT_EQ(net->connect(context, 0, handle.data(), &pair.send), NetResult::success) << heard();
    }
    if (pair.recv == nullptr) {
      ASSERT_EQ(net->accept(pair.listener, &pair.recv), NetResult::success) << heard();
    }
  }
  EXPECT_NE(pair.recv, nullptr);
  for (const int fd : crowd) close(fd);
}

std::ptrdiff_t descriptors() {
  using Folder = std::filesystem::directory_iterator;
  return std::distance(Folder("/proc/self/fd"), Folder());
}

TEST_P(Plugin, LetsInAFewOfACrowdAtATime) {
  Pair pair(*net);
  std::array<std::byte, nccl::kHandleMaxSize> handle{};
  ASSERT_EQ(net->listen(other, 0, handle.data(), &pair.listener), NetResult::success);
  const std::vector<int> crowd = crowd_at(handle.data(), 100);
  const std::ptrdiff_t before = descriptors();
  ASSERT_EQ(net->accept(pair.listener, &pair.recv), NetResult::success) << heard();
  EXPECT_GT(descriptors(), before);
  EXPECT_LE(descriptors(), before + 32) << "by one call";
  for (const int fd : crowd) close(fd);
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

// SPDX-License-Identifier: Apache-2.0
// Whoever reaches the port without the key: he costs nothing, changes nothing and keeps nobody out.
#include <sys/resource.h>

#include <algorithm>
#include <thread>

#include "tests/tcp/pair.hpp"
#include "transport/bootstrap/socket.hpp"
#include "transport/bootstrap/strangers.hpp"
#include "transport/tcp/greeting.hpp"

namespace gdrx::test {
namespace {

using tcp::Address;
using tcp::Challenge;
using tcp::Knock;

Address address_of(const Device& device) {
  Address address;
  std::memcpy(&address, device.address().data(), sizeof address);
  return address;
}

Socket reach(const Device& device) {
  return Socket::connect(address_of(device).at,
                         Deadline::after(steady_clock(), std::chrono::seconds(5)))
      .value();
}

// The pair goes on as if nobody else were there.
void expect_service(TcpPair& pair) {
  const Blob payload(1000, std::byte{0x42});
  ASSERT_TRUE(pair.endpoint->post(write_of(payload, pair.import(), 0)));
  const auto got = pair.receive();
  ASSERT_TRUE(got && *got) << (got ? (*got).error().what : "nothing came");
  EXPECT_EQ(pair.region->bytes()[999], std::byte{0x42});
}

bool closed_by_other_side(TcpPair& pair, const Socket& socket) {
  return drive({pair.receiver.get()}, [&] {
    std::array<std::byte, 256> bytes;
    const auto got = socket.receive_some(bytes);
    return !got;
  });
}

TEST(TcpStranger, WhoSaysGarbageIsClosedAndChangesNothing) {
  TcpPair pair(false);
  const Socket socket = reach(*pair.receiver);
  const Blob garbage(100'000, std::byte{0xAB});
  (void)socket.send_some(garbage);
  EXPECT_TRUE(closed_by_other_side(pair, socket));
  EXPECT_TRUE(pair.untouched());
  expect_service(pair);
}

// A whole greeting that was right once, byte for byte.
TEST(TcpStranger, WhoRepeatsAnHonestKnockIsClosed) {
  TcpPair pair(true);
  tcp::Identity thief;  // he has the address at first, so that the knock is honest
  thief.rank = Rank{0};
  thief.plain = true;
  auto caller = tcp::Caller::create(thief, address_of(*pair.receiver)).value();
  const Socket first = reach(*pair.receiver);
  Challenge challenge;
  std::size_t got = 0;
  ASSERT_TRUE(drive({pair.receiver.get()}, [&] {
    got +=
        first.receive_some(std::as_writable_bytes(std::span(&challenge, 1)).subspan(got)).value();
    return got == sizeof challenge;
  }));
  const Knock knock = caller.answer(challenge).value();
  const Socket second = reach(*pair.receiver);
  ASSERT_EQ(second.send_some(std::as_bytes(std::span(&knock, 1))).value(), sizeof knock);
  EXPECT_TRUE(closed_by_other_side(pair, second)) << "the knock was taken twice";
  EXPECT_TRUE(pair.untouched());
}

TEST(TcpPorts, AreOfTheRangeAndOfTheInterface) {
  Config config = tcp_config(false);
  config.port_range = {28140, 28141};
  const TcpPair pair(config);
  for (const Device* const device : {pair.sender.get(), pair.receiver.get()}) {
    const SocketAddress at = address_of(*device).at;
    EXPECT_TRUE(at.port == 28140 || at.port == 28141) << at.port;
    EXPECT_EQ(to_string(at).rfind("127.0.0.1:", 0), 0U) << to_string(at);
  }
  const auto third = open_fabric("tcp", config, Log()).value()->open_device(Rank{2}, config, Log());
  ASSERT_FALSE(third);
  EXPECT_NE(third.error().what.find("GDRX_PORT_RANGE=28140-28141"), std::string::npos);
}

TEST(TcpStranger, ThousandSilentOnesKeepNobodyOut) {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  TcpPair pair(false);
  pair.sender->isolate_peers();
  std::vector<Socket> crowd;
  for (int i = 0; i < 1000; ++i) {
    auto socket = Socket::begin_connect(address_of(*pair.receiver).at);
    ASSERT_TRUE(socket) << socket.error().what;
    crowd.push_back(std::move(*socket));
  }
  const Instant begin = steady_clock().now();
  expect_service(pair);
  EXPECT_LT(steady_clock().now() - begin, std::chrono::seconds(2));
}

bool challenged(const Socket& socket) {
  std::array<std::byte, sizeof(Challenge)> bytes;
  const auto got = socket.receive_some(bytes);
  return got && *got > 0;
}

// The data path's thread serves them.
TEST(TcpStranger, InACrowdAreServedAFewAtATime) {
  TcpPair pair(false);
  expect_service(pair);
  std::vector<Socket> crowd;
  for (int i = 0; i < 64; ++i) crowd.push_back(reach(*pair.receiver));
  std::array<Completion, 4> some;
  std::ptrdiff_t served = 0;
  std::ptrdiff_t most = 0;
  EXPECT_TRUE(drive({pair.sender.get()}, [&] {
    (void)pair.receiver->poll(some);
    const std::ptrdiff_t now = std::ranges::count_if(crowd, challenged);
    most = std::max(most, now);
    served += now;
    return served == 64;
  }));
  EXPECT_LE(most, 4) << "by one poll";
}

TEST(TcpStranger, WhoSpeaksIsHeardBeforeHeIsPutOutForAnother) {
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  rlimit few = before;
  few.rlim_cur = 256;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  TcpPair pair(false);
  std::vector<Socket> crowd;
  for (std::size_t i = 0; i < most_strangers(); ++i) {
    crowd.push_back(reach(*pair.receiver));
    ASSERT_TRUE(drive({pair.receiver.get()}, [&] { return challenged(crowd.back()); }));
  }
  std::this_thread::sleep_for(kStrangerSilence);
  const Socket another = reach(*pair.receiver);
  const std::byte word{};
  ASSERT_TRUE(crowd.front().send_some(std::span(&word, 1)));
  EXPECT_TRUE(drive({pair.receiver.get()}, [&] { return challenged(another); }));
  std::array<std::byte, 1> more;
  EXPECT_TRUE(crowd.front().receive_some(more));
  setrlimit(RLIMIT_NOFILE, &before);
}

TEST(TcpStranger, GuessingTheKeyIsRefusedByBothSides) {
  TcpPair pair(false);
  Address guessed = address_of(*pair.receiver);
  guessed.key[0] ^= std::byte{1};
  const auto other = open_tcp(Rank{2}, tcp_config(false));
  const auto endpoint = other->connect(Rank{1}, std::as_bytes(std::span(&guessed, 1))).value();
  const RemoteRegionId remote = endpoint->import_region(pair.region->export_key()).value();
  const Blob payload(64, std::byte{0x77});
  ASSERT_TRUE(endpoint->post(write_of(payload, remote, 0)));
  std::optional<Error> error;
  EXPECT_TRUE(drive({pair.receiver.get()}, [&] {
    std::array<Completion, 4> some;
    const auto polled = other->poll(some);
    if (!polled) error = polled.error();
    return error.has_value();
  }));
  ASSERT_TRUE(error);
  EXPECT_NE(error->what.find("GDRX_SECRET_FILE"), std::string::npos) << error->what;
  EXPECT_TRUE(pair.untouched());
  expect_service(pair);
}

// An impostor that listens where the peer did.
TEST(TcpStranger, WhoListensInThePeersPlaceLearnsNothingAndIsRefused) {
  Config config = tcp_config(false);
  config.init_timeout = std::chrono::milliseconds(300);
  TcpPair pair(config);
  const Socket listener = Socket::listen(loopback_address()).value();
  Address address = address_of(*pair.receiver);
  address.at = listener.local_address().value();
  const auto endpoint =
      pair.sender->connect(Rank{1}, std::as_bytes(std::span(&address, 1))).value();
  const auto third = open_tcp(Rank{5}, config);
  const auto fooled = third->connect(Rank{1}, std::as_bytes(std::span(&address, 1))).value();
  const RemoteRegionId remote = fooled->import_region(pair.region->export_key()).value();
  const Blob payload(64, std::byte{0x77});
  ASSERT_TRUE(fooled->post(write_of(payload, remote, 0)));
  std::vector<Socket> fooling;
  std::size_t heard = 0;
  std::optional<Error> error;
  EXPECT_TRUE(drive({}, [&] {
    if (Socket came = listener.accept().value(); came.valid()) {
      const Challenge challenge;
      (void)came.send_some(std::as_bytes(std::span(&challenge, 1)));
      fooling.push_back(std::move(came));
    }
    for (const Socket& one : fooling) {
      std::array<std::byte, 4096> bytes;
      const auto got = one.receive_some(bytes);
      if (!got || *got == 0) continue;
      heard += *got;
      tcp::Reply reply;
      (void)one.send_some(std::as_bytes(std::span(&reply, 1)));
    }
    std::array<Completion, 4> some;
    const auto polled = third->poll(some);
    if (!polled) error = polled.error();
    return error.has_value();
  }));
  ASSERT_TRUE(error);
  EXPECT_EQ(heard % sizeof(Knock), 0u) << "more than knocks was said to an impostor";
}

}  // namespace
}  // namespace gdrx::test

// SPDX-License-Identifier: Apache-2.0
// Which ports a device opens, and what it says when there is none.
#include <set>
#include <string>

#include "tests/fabric/cluster.hpp"

namespace gdrx::sim {
namespace {

struct Opened {
  Result<std::shared_ptr<verbs::VerbsDevice>> device;
  std::string log;
};

Opened open(Network& network, std::shared_ptr<const verbs::VerbsTable> table,
            std::string_view filter, std::string_view gid_indexes = "") {
  verbs::Options options;
  options.filter = *verbs::HcaFilter::parse(filter);
  options.gid_indexes = *verbs::GidIndexes::parse(gid_indexes);
  options.staging = 1 << 20;
  auto lines = std::make_shared<std::string>();
  const Log log(Level::info, [lines](Level, std::string_view line) { *lines += line; });
  auto device =
      verbs::VerbsDevice::create(std::move(table), Rank{0}, options, network.clock(), log, 1);
  return {std::move(device), *lines};
}

TEST(DeviceChoice, TakesAllActivePortsInTheOrderOfNamesWithTheirRoutableGid) {
  Network network(Network::Mode::deterministic);
  const auto opened = open(network, network.add_host({.nics = 3}), "");
  ASSERT_TRUE(opened.device.has_value());
  EXPECT_EQ((*opened.device)->ports(),
            "sim0:1 (10.0.0.1, 100 Gb/s), sim1:1 (10.1.0.1, 100 Gb/s), sim2:1 (10.2.0.1, 100 "
            "Gb/s)");
}

// A process that makes many communicators has a simulated host for each.
TEST(SimulatedNetwork, HasAnAddressForEveryHost) {
  Network network(Network::Mode::deterministic);
  const auto address_of = [&](const std::shared_ptr<const verbs::VerbsTable>& table) {
    const auto opened = open(network, table, "");
    return opened.device ? (*opened.device)->ports() : "";
  };
  std::set<std::string> addresses;
  for (int host = 0; host < 4096; ++host) {
    const auto table = network.add_host({.nics = 1});
    ASSERT_NE(table, nullptr);
    if (host % 128 == 5) addresses.insert(address_of(table));
  }
  EXPECT_EQ(addresses.size(), 4096U / 128);
  EXPECT_EQ(network.add_host({.nics = 1}), nullptr);
}

TEST(DeviceChoice, SkipsAndNamesWhatIsDownOrNotChosen) {
  Network network(Network::Mode::deterministic);
  const auto table = network.add_host({.nics = 3});
  network.set_port(0, 1, false);
  const auto opened = open(network, table, "^sim2");
  ASSERT_TRUE(opened.device.has_value());
  EXPECT_EQ((*opened.device)->ports(), "sim0:1 (10.0.0.1, 100 Gb/s)");
  EXPECT_NE(opened.log.find("sim1:1 is down"), std::string::npos);
  EXPECT_NE(opened.log.find("sim2:1 is not chosen by GDRX_HCA"), std::string::npos);
}

TEST(DeviceChoice, SaysWhyNoPortIsUsable) {
  Network network(Network::Mode::deterministic);
  const auto none = open(network, network.add_host({.nics = 0}), "");
  ASSERT_FALSE(none.device.has_value());
  EXPECT_EQ(none.device.error().code, Errc::unsupported);
  EXPECT_EQ(none.device.error().what, "no RDMA NIC is on this host");
  const auto other = open(network, network.add_host({.nics = 1}), "=mlx5_0");
  ASSERT_FALSE(other.device.has_value());
  EXPECT_NE(other.device.error().what.find("not chosen by GDRX_HCA"), std::string::npos);
}

Error refused_list(int error) {
  Network network(Network::Mode::deterministic);
  auto table = std::make_shared<verbs::VerbsTable>(*network.add_host({.nics = 0}));
  table->get_device_list = [error](int*) -> ibv_device** {
    errno = error;
    return nullptr;
  };
  const auto none = open(network, table, "");
  EXPECT_FALSE(none.device.has_value());
  return none.device ? Error{} : none.device.error();
}

TEST(DeviceChoice, AKernelWithoutRdmaIsAHostWithoutANic) {
  const Error error = refused_list(ENOSYS);
  EXPECT_EQ(error.code, Errc::unsupported);
  EXPECT_EQ(describe(error), "no RDMA NIC is on this host");
}

TEST(DeviceChoice, ARefusedListOfNicsIsNamedWithItsReason) {
  EXPECT_EQ(describe(refused_list(ENOMEM)), "ibv_get_device_list: Cannot allocate memory");
}

TEST(DeviceChoice, AGidIndexIsUsedAsGivenAndRefusedIfItIsNotThere) {
  Network network(Network::Mode::deterministic);
  const auto table = network.add_host({.nics = 1});
  const auto linklocal = open(network, table, "", "1");
  ASSERT_TRUE(linklocal.device.has_value());
  EXPECT_NE((*linklocal.device)->describe().find("fe80:"), std::string::npos);
  const auto hidden = open(network, table, "", "2");
  ASSERT_FALSE(hidden.device.has_value());
  EXPECT_EQ(hidden.device.error().code, Errc::invalid_argument);
}

TEST(DeviceChoice, AGidIndexOfOneNicLeavesTheOthersTheirs) {
  Network network(Network::Mode::deterministic);
  const auto opened = open(network, network.add_host({.nics = 3}), "", "sim1=1,sim2:2=1");
  ASSERT_TRUE(opened.device.has_value());
  const std::string ports = (*opened.device)->ports();
  EXPECT_NE(ports.find("sim0:1 (10.0.0.1,"), std::string::npos) << ports;
  EXPECT_NE(ports.find("sim1:1 (fe80:"), std::string::npos) << ports;
  EXPECT_NE(ports.find("sim2:1 (10.2.0.1,"), std::string::npos) << "that was of port 2: " << ports;
}

TEST(DeviceChoice, InfinibandNeedsNoGlobalRoute) {
  Network network(Network::Mode::deterministic);
  NicSettings settings;
  settings.infiniband = true;
  std::vector<std::shared_ptr<verbs::VerbsDevice>> devices;
  for (int rank = 0; rank < 2; ++rank) {
    verbs::Options options;
    options.staging = 1 << 20;
    devices.push_back(*verbs::VerbsDevice::create(network.add_host(settings), Rank{rank}, options,
                                                  network.clock(), Log(),
                                                  static_cast<std::uint64_t>(rank) + 5));
  }
  auto receive_ring = *devices[1]->allocate_memory(4096);
  auto endpoint = *devices[0]->connect(Rank{1}, devices[1]->address());  // rank 1 only listens
  WriteOp op;
  op.remote = *endpoint->import_region(receive_ring->export_key());
  op.has_immediate = true;
  op.immediate = 42;
  const auto data = pattern(2000, 1);
  op.payload = data;
  bool posted = false;
  std::vector<Completion> got(4);
  std::size_t arrived = 0;
  // The way to the peer is asked for by a thread, which has no virtual time.
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (arrived == 0 && std::chrono::steady_clock::now() < until) {
    network.run_for(std::chrono::microseconds(5));
    if (!posted) posted = *endpoint->post(op) == Progress::done;
    std::array<Completion, 4> other;
    ASSERT_TRUE(devices[0]->poll(other).has_value());
    arrived = *devices[1]->poll(got);
  }
  ASSERT_EQ(arrived, 1U);
  EXPECT_EQ(got[0].immediate, 42U);
  EXPECT_EQ(std::memcmp(receive_ring->bytes().data(), data.data(), data.size()), 0);
}

/// NICs that refuse one registration: the `left`-th from now on.
std::shared_ptr<const verbs::VerbsTable> refusing(Network& network, std::shared_ptr<int> left) {
  auto table = std::make_shared<verbs::VerbsTable>(*network.add_host({.nics = 2}));
  table->reg_mr = [real = table->reg_mr, left](ibv_pd* pd, void* address, std::size_t length,
                                               int access) -> ibv_mr* {
    errno = ENOMEM;
    return --*left == 0 ? nullptr : real(pd, address, length, access);
  };
  return table;
}

TEST(Registration, ThatOneOfTwoNicsRefusesFailsAndLeavesNothingBehind) {
  Network network(Network::Mode::deterministic);
  const auto left = std::make_shared<int>(0);
  const auto opened = open(network, refusing(network, left), "");
  ASSERT_TRUE(opened.device.has_value());
  std::vector<std::byte> memory(10'000);
  const std::size_t before = network.live_objects();
  *left = 2;
  const auto refused = (*opened.device)->register_memory(memory, MemoryKind::host);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().native, ENOMEM);
  EXPECT_NE(refused.error().what.find("sim1"), std::string::npos) << refused.error().what;
  EXPECT_EQ(network.live_objects(), before);
  EXPECT_TRUE((*opened.device)->register_memory(memory, MemoryKind::host).has_value());
}

TEST(Registration, ThatIsRefusedWhileADeviceIsOpenedCostsAPortOrTheDevice) {
  bool failed = false;
  bool went_on = false;
  for (int nth = 1; nth <= 4; ++nth) {
    Network network(Network::Mode::deterministic);
    const auto left = std::make_shared<int>(nth);
    auto opened = open(network, refusing(network, left), "");
    if (opened.device) {
      went_on = true;
      EXPECT_NE(opened.log.find("Cannot allocate memory"), std::string::npos) << opened.log;
    } else {
      failed = true;
      EXPECT_EQ(opened.device.error().native, ENOMEM);
    }
    opened.device = fail(Errc::internal, "closed");
    EXPECT_EQ(network.live_objects(), 0U) << nth;
  }
  EXPECT_TRUE(failed && went_on);
}

}  // namespace
}  // namespace gdrx::sim

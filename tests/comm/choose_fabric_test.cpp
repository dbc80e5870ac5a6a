// SPDX-License-Identifier: Apache-2.0
// What carries the messages of one host, and of several in name.
#include "tests/comm/thread_ranks.hpp"

namespace gdrx {
namespace {

class ChooseFabric : public ThreadRanks {
 protected:
  void TearDown() override {
    for_each([&](std::size_t rank) {
      if (!comms_[rank]) return;
      (void)comms_[rank]->drain();
      (void)comms_[rank]->leave();
      comms_[rank].reset();
    });
  }
  std::string fabric_of(std::size_t rank) const {
    const std::string text = comms_[rank]->describe();
    const std::size_t at = text.find("fabric ") + 7;
    return text.substr(at, text.find(';', at) - at);
  }
  // Each rank's error, or nothing.
  std::vector<std::optional<Error>> refuse(
      int ranks, const std::function<void(std::size_t, Config&)>& change) {
    auto bootstraps = ThreadBootstrap::create_all(ranks);
    std::vector<std::optional<Error>> errors(static_cast<std::size_t>(ranks));
    comms_.resize(errors.size());
    for_each([&](std::size_t rank) {
      Communicator::Options options;
      options.config.init_timeout = std::chrono::seconds(20);
      change(rank, options.config);
      auto made = Communicator::create(*bootstraps[rank], std::move(options));
      if (!made) errors[rank] = made.error();
    });
    return errors;
  }
};

TEST_F(ChooseFabric, OfOneHostIsSharedMemory) {
  make(3);
  for (std::size_t rank = 0; rank < 3; ++rank) EXPECT_EQ(fabric_of(rank), "shm");
}

TEST_F(ChooseFabric, OfARankThatIsAloneIsSharedMemory) {
  make(1);
  EXPECT_EQ(fabric_of(0), "shm");
}

TEST_F(ChooseFabric, IsNotSharedMemoryWhereThatIsOff) {
  make(2, {}, [](Config& config) { config.shared_memory = false; });
  EXPECT_NE(fabric_of(0), "shm");
}

TEST_F(ChooseFabric, RefusesSharedMemoryByNameBetweenHosts) {
  const auto errors = refuse(3, [](std::size_t rank, Config& config) {
    config.transport = "shm";
    config.host_id = rank == 1 ? "other" : "one";
  });
  for (const auto& error : errors) {
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code, Errc::unsupported);
    EXPECT_NE(error->what.find("ranks of one host"), std::string::npos) << error->what;
  }
}

TEST_F(ChooseFabric, NamesTheRankThatAsksForAnotherOne) {
  const auto errors = refuse(
      3, [](std::size_t rank, Config& config) { config.transport = rank == 2 ? "tcp" : "auto"; });
  for (const auto& error : errors) {
    ASSERT_TRUE(error);
    EXPECT_NE(error->what.find("GDRX_TRANSPORT"), std::string::npos) << error->what;
  }
}

}  // namespace
}  // namespace gdrx

// SPDX-License-Identifier: Apache-2.0
// What ranks get wrong about each other's parts.
#include <chrono>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/comm/world.hpp"

namespace gdrx::test {
namespace {

using Counts = std::vector<std::size_t>;
using Floats = std::vector<float>;

std::string failure_of(const World& world,
                       const std::function<gdrxResult_t(int, gdrxComm_t)>& call) {
  std::string text;
  std::mutex mutex;
  world.run([&](int rank, gdrxComm_t comm) {
    gdrxResult_t result = call(rank, comm);
    // who is not concerned is told by the communicator
    for (int i = 0; i < 2000 && result == gdrxSuccess; ++i) {
      gdrxCommGetAsyncError(comm, &result);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_EQ(result, gdrxMismatch) << rank;
    const std::lock_guard lock(mutex);
    text += std::string(gdrxGetLastError(comm)) + "\n";
  });
  return text;
}

TEST(PartsThatDisagree, AreNamedWithBothCounts) {
  const World world(3);
  const std::string text = failure_of(world, [](int rank, gdrxComm_t comm) {
    Counts to(3, 10), from(3, 10);
    if (rank == 1) to[2] = 7;
    Floats in(30), out(30);
    return gdrxAllToAllv(in.data(), to.data(), nullptr, out.data(), from.data(), nullptr,
                         gdrxFloat32, comm, nullptr, nullptr);
  });
  EXPECT_NE(text.find("rank 1 sends 7 elements to rank 2"), std::string::npos) << text;
  EXPECT_NE(text.find("expects 10"), std::string::npos) << text;
}

TEST(PartsThatDisagree, OfAnAllGatherAreNamed) {
  const World world(2);
  const std::string text = failure_of(world, [](int rank, gdrxComm_t comm) {
    const Counts counts = rank == 0 ? Counts{10, 20} : Counts{20, 10};
    Floats in(20), out(30);
    return gdrxAllGatherv(in.data(), out.data(), counts.data(), nullptr, gdrxFloat32, comm, nullptr,
                          nullptr);
  });
  EXPECT_NE(text.find("allGatherv #0 of 30 float, counts "), std::string::npos) << text;
}

TEST(PartsThatDisagree, WithAnotherCollectiveAreNamed) {
  const World world(2);
  const std::string text = failure_of(world, [](int rank, gdrxComm_t comm) {
    Floats in(20), out(20);
    if (rank == 0) {
      return gdrxAllToAll(in.data(), out.data(), 10, gdrxFloat32, comm, nullptr, nullptr);
    }
    return gdrxGather(in.data(), out.data(), 10, gdrxFloat32, 0, comm, nullptr, nullptr);
  });
  EXPECT_NE(text.find("allToAll"), std::string::npos) << text;
  EXPECT_NE(text.find("gather"), std::string::npos) << text;
}

TEST(PartsThatMakeNoSense, AreRefusedAtOnceAndTheCommunicatorGoesOn) {
  const World world(1);
  gdrxComm_t comm = world[0];
  Floats in(30), out(30);
  const Counts one{10}, other{20};
  EXPECT_EQ(gdrxAllToAllv(in.data(), one.data(), nullptr, out.data(), other.data(), nullptr,
                          gdrxFloat32, comm, nullptr, nullptr),
            gdrxInvalidArgument);
  EXPECT_EQ(
      gdrxAllGatherv(in.data(), out.data(), nullptr, nullptr, gdrxFloat32, comm, nullptr, nullptr),
      gdrxInvalidArgument);
  EXPECT_EQ(gdrxAllGatherv(in.data(), in.data() + 5, one.data(), nullptr, gdrxFloat32, comm,
                           nullptr, nullptr),
            gdrxInvalidArgument)
      << "overlapping";
  EXPECT_EQ(gdrxGatherv(in.data(), 20, out.data(), one.data(), nullptr, gdrxFloat32, 0, comm,
                        nullptr, nullptr),
            gdrxInvalidArgument);
  EXPECT_EQ(gdrxScan(in.data(), out.data(), 3, gdrxFloat32, gdrxAvg, comm, nullptr, nullptr),
            gdrxInvalidArgument);
  EXPECT_EQ(gdrxAllToAllv(in.data(), one.data(), nullptr, out.data(), one.data(), nullptr,
                          gdrxFloat32, comm, nullptr, nullptr),
            gdrxSuccess);
}

TEST(PartsThatMakeNoSense, OverlapInABuffer) {
  const World world(2);
  world.run([](int, gdrxComm_t comm) {
    Floats in(30), out(30);
    const Counts counts{10, 10}, displs{0, 5};
    EXPECT_EQ(gdrxAllGatherv(in.data(), out.data(), counts.data(), displs.data(), gdrxFloat32, comm,
                             nullptr, nullptr),
              gdrxInvalidArgument);
    EXPECT_NE(std::string(gdrxGetLastError(comm)).find("for ranks 0 and 1 overlap"),
              std::string::npos)
        << gdrxGetLastError(comm);
  });
}

}  // namespace
}  // namespace gdrx::test

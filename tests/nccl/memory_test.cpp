// SPDX-License-Identifier: Apache-2.0
// Memory that NCCL's API allocates, and windows of it.
#include <cuda.h>
#include <dlfcn.h>

#include <array>
#include <cstdlib>
#include <string>

#include "nccl/comm.hpp"
#include "tests/nccl/world.hpp"

namespace gdrx::nccl {
namespace {

class NcclMemory : public Nccl {};

/// Of the allocation, by CUDA's driver.
std::size_t size_of(void* memory) {
  void* const driver = dlopen("libcuda.so.1", RTLD_NOW);
  const auto range_of =
      reinterpret_cast<decltype(&cuMemGetAddressRange)>(dlsym(driver, "cuMemGetAddressRange_v2"));
  CUdeviceptr begin = 0;
  std::size_t bytes = 0;
  EXPECT_EQ(range_of(&begin, &bytes, reinterpret_cast<CUdeviceptr>(memory)), CUDA_SUCCESS);
  EXPECT_EQ(begin, reinterpret_cast<CUdeviceptr>(memory));
  dlclose(driver);
  return bytes;
}

TEST_F(NcclMemory, IsAllocatedInWholePieces) {
  constexpr std::size_t kPiece = 2 << 20;
  struct Row {
    std::size_t asked, given;
  };
  for (const auto& [asked, given] : {Row{1, kPiece}, Row{5000, kPiece}, Row{kPiece - 1, kPiece},
                                     Row{kPiece, kPiece}, Row{kPiece + 1, 2 * kPiece}}) {
    void* memory = nullptr;
    ASSERT_EQ(ncclMemAlloc(&memory, asked), kSuccess) << ncclGetLastError(nullptr);
    EXPECT_EQ(size_of(memory), given) << asked;
    EXPECT_EQ(ncclMemFree(memory), kSuccess);
  }
  void* memory = &memory;
  EXPECT_EQ(ncclMemAlloc(&memory, 0), kSuccess);
  EXPECT_EQ(memory, nullptr);
  for (const std::size_t bytes : {SIZE_MAX, SIZE_MAX - kPiece, SIZE_MAX / 2}) {
    memory = &memory;
    EXPECT_EQ(ncclMemAlloc(&memory, bytes), kUnhandledCudaError) << bytes;
    EXPECT_EQ(memory, nullptr);
  }
  EXPECT_EQ(ncclMemAlloc(nullptr, 1), kInvalidArgument);
  EXPECT_EQ(ncclMemFree(nullptr), kSuccess);
}

bool last_call_was_registered(const Member& self) {
  gdrxOpInfo_t info{};
  info.size = sizeof info;
  EXPECT_EQ(gdrxCommGetLastOp(self.comm->gdrx, &info), gdrxSuccess);
  return info.registered == 1;
}

void double_all(const Member& self, std::byte* words, bool registered) {
  const std::uint32_t value = 21;
  self.upload(words, &value, sizeof value);
  EXPECT_EQ(ncclAllReduce(words, words, 64, kUint32, kSum, self.comm, self.stream), kSuccess)
      << ncclGetLastError(self.comm);
  EXPECT_EQ(self.got<std::uint32_t>(1, words)[0], 42U);
  EXPECT_EQ(last_call_was_registered(self), registered);
}

/// As long as the window is open; with the flag alone.
TEST_F(NcclMemory, CallsInASymmetricWindowUseItsRegistration) {
  setenv("GDRX_ALGO", "direct", 1);  // what registered memory is for, at any size
  World world(2);
  unsetenv("GDRX_ALGO");
  world.each([](const Member& self) {
    void* memory = nullptr;
    ASSERT_EQ(ncclMemAlloc(&memory, 5000), kSuccess);
    auto* const words = static_cast<std::byte*>(memory);
    double_all(self, words, false);
    for (const int flags : {0, kWindowSymmetric}) {
      ncclWindow_t window = nullptr;
      ASSERT_EQ(ncclCommWindowRegister(self.comm, memory, 4096, &window, flags), kSuccess)
          << ncclGetLastError(nullptr);
      ASSERT_NE(window, nullptr);
      void* found = nullptr;
      EXPECT_EQ(ncclWinGetUserPtr(self.comm, window, &found), kSuccess);
      EXPECT_EQ(found, memory);
      double_all(self, words, flags == kWindowSymmetric);
      EXPECT_EQ(ncclCommWindowDeregister(self.comm, window), kSuccess);
      double_all(self, words, false);
    }
    EXPECT_EQ(ncclMemFree(memory), kSuccess);
  });
}

TEST_F(NcclMemory, AWindowThatFailsIsNone) {
  World world(2);
  world.each([](const Member& self) {
    auto* window = reinterpret_cast<ncclWindow_t>(self.in);
    const std::size_t bytes = self.rank == 0 ? 4096 : 8192;
    EXPECT_NE(ncclCommWindowRegister(self.comm, self.in, bytes, &window, kWindowSymmetric),
              kSuccess);
    EXPECT_NE(std::string(ncclGetLastError(nullptr)), "");
    EXPECT_EQ(window, nullptr);
    EXPECT_EQ(ncclCommWindowDeregister(self.comm, window), kSuccess);
  });
}

/// A window is its communicator's, once.
TEST_F(NcclMemory, AWindowThatIsClosedIsNoneAnyMore) {
  World world(2);
  world.each([](Member& self) {
    std::array<ncclWindow_t, 2> windows{};
    for (ncclWindow_t& window : windows) {
      ASSERT_EQ(ncclCommWindowRegister(self.comm, self.in, 4096, &window, 0), kSuccess);
    }
    void* found = nullptr;
    EXPECT_EQ(ncclCommWindowDeregister(self.comm, windows[0]), kSuccess);
    EXPECT_EQ(ncclCommWindowDeregister(self.comm, windows[0]), kInvalidArgument);
    EXPECT_EQ(ncclWinGetUserPtr(self.comm, windows[0], &found), kInvalidArgument);
    EXPECT_EQ(ncclWinGetUserPtr(self.comm, windows[1], &found), kSuccess);
    ncclWindow_t another = nullptr;
    ASSERT_EQ(ncclCommWindowRegister(self.comm, self.in, 4096, &another, 0), kSuccess);
    EXPECT_EQ(ncclCommWindowDeregister(self.comm, windows[0]), kInvalidArgument) << "again";
    EXPECT_EQ(ncclWinGetUserPtr(self.comm, another, &found), kSuccess);
    ncclComm_t const comm = std::exchange(self.comm, nullptr);
    EXPECT_EQ(ncclCommDestroy(comm), kSuccess);  // with a window that is open
    EXPECT_EQ(ncclCommWindowDeregister(comm, windows[1]), kInvalidArgument);
    EXPECT_EQ(ncclWinGetUserPtr(comm, windows[1], &found), kInvalidArgument);
  });
}

TEST_F(NcclMemory, ARegistrationOfOneRankIsTakenAndChangesNothing) {
  World world(2);
  world.each([](const Member& self) {
    void* handle = nullptr;
    EXPECT_EQ(ncclCommRegister(self.comm, self.in, 5000, &handle), kSuccess);
    EXPECT_NE(handle, nullptr);
    EXPECT_EQ(ncclCommDeregister(self.comm, handle), kSuccess);
    EXPECT_EQ(ncclCommRegister(self.comm, self.in, 0, &handle), kInvalidArgument);
  });
}

}  // namespace
}  // namespace gdrx::nccl

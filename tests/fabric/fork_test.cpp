// SPDX-License-Identifier: Apache-2.0
// What children of fork() keep of NICs, asked of a libibverbs of our own.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "transport/verbs/verbs_table.hpp"

namespace gdrx::verbs {
namespace {

/// Under the name of the real one, so that load_verbs() finds it.
class Fork : public testing::Test {
 protected:
  void SetUp() override {
    void* library = dlopen(GDRX_FAKE_IBVERBS, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library, nullptr) << dlerror();
    status_ = static_cast<int*>(dlsym(library, "fake_fork_status"));
    inits_ = static_cast<int*>(dlsym(library, "fake_fork_inits"));
    ASSERT_TRUE(status_ != nullptr && inits_ != nullptr);
    *inits_ = 0;
    device_ends_ = static_cast<int*>(dlsym(library, "fake_device_ends"));
    ASSERT_NE(device_ends_, nullptr);
  }
  /// Calls of ibv_fork_init() where ibv_is_fork_initialized() says `status`.
  int inits(ibv_fork_status status) {
    *status_ = status;
    EXPECT_TRUE(load_verbs());
    return *inits_;
  }

 private:
  int* status_ = nullptr;
  int* inits_ = nullptr;

 protected:
  int* device_ends_ = nullptr;
};

TEST_F(Fork, PagesAreHiddenFromChildrenWhereTheKernelDoesNotCopyThem) {
  EXPECT_EQ(inits(IBV_FORK_DISABLED), 1);
}

TEST_F(Fork, ChildrenKeepTheirCopiesWhereTheKernelMakesThem) {
  EXPECT_EQ(inits(IBV_FORK_UNNEEDED), 0);
}

// Else a NIC goes on to answer for a rank that is dead.
TEST_F(Fork, AChildKeepsNoDeviceOpen) {
  const auto table = *load_verbs();
  ibv_context* context = table->open_device(nullptr);
  ASSERT_NE(context, nullptr);
  const pid_t child = fork();
  if (child == 0) {
    while (true) pause();
  }
  table->close_device(context);
  for (const int end : {device_ends_[0], device_ends_[1]}) {
    pollfd closed{end, 0, 0};
    EXPECT_EQ(poll(&closed, 1, 1000), 1) << "its other end is open";
    close(end);
  }
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

}  // namespace
}  // namespace gdrx::verbs

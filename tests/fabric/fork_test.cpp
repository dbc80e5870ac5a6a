// SPDX-License-Identifier: Apache-2.0
// Whether registered pages are hidden from children, asked of a libibverbs of our own.
#include <dlfcn.h>
#include <gtest/gtest.h>

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
};

TEST_F(Fork, PagesAreHiddenFromChildrenWhereTheKernelDoesNotCopyThem) {
  EXPECT_EQ(inits(IBV_FORK_DISABLED), 1);
}

TEST_F(Fork, ChildrenKeepTheirCopiesWhereTheKernelMakesThem) {
  EXPECT_EQ(inits(IBV_FORK_UNNEEDED), 0);
}

}  // namespace
}  // namespace gdrx::verbs

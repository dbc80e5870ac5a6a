// SPDX-License-Identifier: Apache-2.0
// UCX takes over fatal signals when it is loaded, unless it is told not to.
#include <dlfcn.h>

#include <csignal>

#include "tests/ucx/pair.hpp"

namespace gdrx::test {
namespace {

std::vector<std::pair<void*, int>> dispositions() {
  std::vector<std::pair<void*, int>> all;
  for (int number = 1; number < NSIG; ++number) {
    struct sigaction action {};
    sigaction(number, nullptr, &action);
    constexpr int kRestorer = 0x04000000;  // the C library sets it with anything
    all.emplace_back(reinterpret_cast<void*>(action.sa_sigaction), action.sa_flags & ~kRestorer);
  }
  return all;
}

// In a process of its own, as ctest runs it: another test may have loaded UCX already.
TEST(LoadingUcx, ChangesNoSignalDisposition) {
  if (dlopen("libucs.so.0", RTLD_NOW | RTLD_NOLOAD) != nullptr) {
    GTEST_SKIP() << "UCX is loaded already in this process: run this test alone";
  }
  const auto before = dispositions();
  const Environment environment = process_environment();
  const Pair pair;
  ASSERT_NE(dlopen("libucs.so.0", RTLD_NOW | RTLD_NOLOAD), nullptr);
  EXPECT_EQ(dispositions(), before);
  EXPECT_EQ(process_environment(), environment) << "setenv() is a data race";
}

TEST(LoadingUcx, NamesTheFoldersThatItIsNotIn) {
  Config config;
  config.module_path = "/nowhere:/nothing";
  const auto fabric = open_fabric("ucx", config, Log({}, nullptr));
  ASSERT_FALSE(fabric);
  EXPECT_NE(fabric.error().what.find("not found in /nowhere:/nothing;"), std::string::npos)
      << fabric.error().what;
}

}  // namespace
}  // namespace gdrx::test

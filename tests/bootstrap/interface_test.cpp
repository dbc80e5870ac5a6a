// SPDX-License-Identifier: Apache-2.0
#include "transport/bootstrap/interface.hpp"

#include <gtest/gtest.h>

namespace gdrx {
namespace {

Interface make(const char* name, bool loopback = false, bool route = false) {
  return {name, loopback_address(), loopback, route};
}

const std::vector<Interface> kHost{make("lo", true), make("docker0"), make("eth0"),
                                   make("eth1", false, true), make("ib0")};

std::string chosen(std::string_view wanted) {
  const auto choice = choose_interface(kHost, wanted);
  return choice ? choice->name : "none";
}

TEST(Interface, IsTheOneWithTheDefaultRoute) { EXPECT_EQ(chosen(""), "eth1"); }

TEST(Interface, IsNeitherABridgeNorLoopbackWhereThereIsAnother) {
  const std::vector<Interface> host{make("lo", true), make("docker0"), make("eth0")};
  EXPECT_EQ(choose_interface(host, "")->name, "eth0");
}

TEST(Interface, IsLoopbackWhereThereIsNothingElse) {
  const std::vector<Interface> host{make("lo", true)};
  EXPECT_EQ(choose_interface(host, "")->name, "lo");
}

TEST(Interface, FollowsPrefixesExactNamesAndExclusions) {
  EXPECT_EQ(chosen("ib"), "ib0");
  EXPECT_EQ(chosen("=eth0"), "eth0");
  EXPECT_EQ(chosen("=eth"), "none");
  EXPECT_EQ(chosen("^eth1,docker,lo"), "eth0");
  EXPECT_EQ(chosen("wlan,ib"), "ib0");
}

TEST(Interface, NamesWhatThereIsWhenNothingFits) {
  const auto choice = choose_interface(kHost, "wlan");
  ASSERT_FALSE(choice);
  EXPECT_NE(choice.error().what.find("ib0"), std::string::npos);
}

}  // namespace
}  // namespace gdrx

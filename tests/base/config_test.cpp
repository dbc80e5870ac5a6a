// SPDX-License-Identifier: Apache-2.0
#include "gdrx/config.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace gdrx {
namespace {

using std::chrono::milliseconds;

Config loaded(const Environment& environment) { return load_config(environment).value().config; }

TEST(LoadConfig, TakesItsOwnVariablesAndLeavesTheRest) {
  const Config config =
      loaded({"PATH=/bin", "GDRX_ALGO=ring", "GDRX_TIMEOUT=1.5", "GDRX_SLICE=256K", "GDRX_SHM=0"});
  EXPECT_EQ(config.algo, "ring");
  EXPECT_EQ(config.timeout, milliseconds(1500));
  EXPECT_EQ(config.slice, 256u * 1024);
  EXPECT_FALSE(config.shared_memory);
  EXPECT_EQ(config.heartbeat, Config{}.heartbeat);
}

TEST(LoadConfig, EveryVariableReadsWhatItPrints) {
  for (const Variable& variable : config_table()) {
    Config config;
    const std::string printed = variable.print(config);
    ASSERT_TRUE(variable.parse(config, printed)) << variable.env << '=' << printed;
    EXPECT_EQ(variable.print(config), printed) << variable.env;
    EXPECT_FALSE(variable.help.empty()) << variable.env;
  }
}

TEST(LoadConfig, TakesAVersionOfNcclAsNcclCodesIt) {
  EXPECT_EQ(loaded({"GDRX_NCCL_VERSION=2.30.7"}).nccl_version, 23007);
  for (const std::string wrong : {"2.30", "23007", "3.1.1", "2.30.", "2.30.7.1", "2..1"}) {
    EXPECT_FALSE(load_config({"GDRX_NCCL_VERSION=" + wrong})) << wrong;
  }
}

TEST(LoadConfig, TakesNoPathFromWhoStartedAPrivilegedProgram) {
  const Environment environment{"GDRX_MODULE_PATH=/tmp/evil", "GDRX_TRACE=/etc/passwd",
                                "GDRX_TUNE_FILE=/tmp/x", "GDRX_SECRET_FILE=/root/key",
                                "GDRX_ALGO=ring"};
  const auto privileged = load_config(environment, true);
  ASSERT_TRUE(privileged);
  EXPECT_EQ(privileged->config.module_path, "");
  EXPECT_EQ(privileged->config.trace, "");
  EXPECT_EQ(privileged->config.tune_file, "");
  EXPECT_EQ(privileged->config.secret_file, "");
  EXPECT_EQ(privileged->config.algo, "ring");
  EXPECT_EQ(privileged->warnings.size(), 4u);
  EXPECT_EQ(load_config(environment, false)->config.module_path, "/tmp/evil");
}

class BadValue : public testing::TestWithParam<const char*> {};

TEST_P(BadValue, IsRefusedWithItsNameAndValue) {
  const auto config = load_config({GetParam()});
  ASSERT_FALSE(config);
  EXPECT_EQ(config.error().code, Errc::invalid_argument);
  EXPECT_TRUE(config.error().what.starts_with(std::string(GetParam()) + ": "))
      << config.error().what;
}

INSTANTIATE_TEST_SUITE_P(Values, BadValue,
                         testing::Values("GDRX_ALGO=rink", "GDRX_ALGO= ", "GDRX_TIMEOUT=soon",
                                         "GDRX_TIMEOUT=-1", "GDRX_TIMEOUT=0", "GDRX_TIMEOUT=nan",
                                         "GDRX_TIMEOUT=1e300", "GDRX_SLICE=12x", "GDRX_SLICE=1",
                                         "GDRX_SLICE=99999999999999999999", "GDRX_SLICE=-1",
                                         "GDRX_SLICE=9999999999G", "GDRX_LANES=1.5",
                                         "GDRX_LANES=17", "GDRX_SHM=yes", "GDRX_LOG=loud",
                                         "GDRX_ARENA_BLOCK=0"));

TEST(LoadConfig, AnEmptyVariableIsOneThatIsNotSet) {
  const Config none;
  for (const Variable& variable : config_table()) {
    const auto config = load_config({std::string(variable.env) + "="});
    ASSERT_TRUE(config) << config.error().what;
    EXPECT_EQ(variable.print(config->config), variable.print(none)) << variable.env;
  }
  const auto unknown = load_config({"GDRX_ALGOO="});
  ASSERT_TRUE(unknown);
  EXPECT_TRUE(unknown->warnings.empty());
}

TEST(UnknownVariable, IsReportedWithTheNearestName) {
  const auto config = load_config({"GDRX_ALGOO=ring", "GDRX_COMPLETELY_ELSE=1", "GDRX_TEST_X=1"});
  ASSERT_TRUE(config);
  ASSERT_EQ(config->warnings.size(), 2u);
  EXPECT_NE(config->warnings[0].find("GDRX_ALGO?"), std::string::npos) << config->warnings[0];
  EXPECT_EQ(config->warnings[1].find("did you mean"), std::string::npos) << config->warnings[1];
}

RC_GTEST_PROP(NearestName, FindsEachNameWithOneLetterWrong, ()) {
  std::vector<std::string_view> known;
  for (const Variable& variable : config_table()) known.push_back(variable.env);
  const auto name = *rc::gen::elementOf(known);
  std::string typed(name);
  typed[*rc::gen::inRange<std::size_t>(5, typed.size())] = '#';
  RC_ASSERT(nearest_name(typed, known) == name);
}

}  // namespace
}  // namespace gdrx

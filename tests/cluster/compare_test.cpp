// SPDX-License-Identifier: Apache-2.0
// Hosts beside each other: what differs, and who is the odd one out; and starting gdrx on them.
#include "tools/cluster/compare.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "tools/cluster/remote_launch.hpp"

namespace gdrx::tools {
namespace {

using doctor::Severity;

HostReport host(const std::string& name, const std::string& firmware, Severity severity) {
  HostReport made{name, {}, {}};
  made.report.traits = {{"kernel", "6.8.0"}, {"mlx5_0 firmware", firmware}};
  made.report.findings = {{"memlock", {}, Severity::ok, "unlimited", "x", {}},
                          {"pcie-link", "mlx5_0", severity, "x", "x", {}}};
  return made;
}

TEST(Compare, EqualHostsDifferInNothing) {
  const Comparison found = compare({host("a", "1", Severity::ok), host("b", "1", Severity::ok)});
  EXPECT_EQ(found.hosts, 2u);
  EXPECT_TRUE(found.differences.empty());
  EXPECT_EQ(found.odd, "");
}

TEST(Compare, NamesTheOddOneOut) {
  const Comparison found =
      compare({host("a", "28.43", Severity::ok), host("b", "28.39", Severity::slow),
               host("c", "28.43", Severity::ok)});
  ASSERT_EQ(found.differences.size(), 2u);
  const Difference& firmware = found.differences[0];
  EXPECT_EQ(firmware.what, "mlx5_0 firmware");
  ASSERT_EQ(firmware.groups.size(), 2u);
  EXPECT_EQ(firmware.groups[0].hosts, (std::vector<std::string>{"a", "c"}));
  EXPECT_EQ(firmware.groups[1].value, "28.39");
  EXPECT_EQ(found.differences[1].what, "pcie-link (mlx5_0)");
  EXPECT_TRUE(found.differences[1].is_finding);
  EXPECT_EQ(found.odd, "b");
  EXPECT_EQ(found.worst, Severity::slow);
}

TEST(Compare, OfTwoHostsNoneIsTheOddOne) {
  EXPECT_EQ(compare({host("a", "1", Severity::ok), host("b", "2", Severity::ok)}).odd, "");
}

TEST(Compare, WhatAHostLacksIsADifference) {
  HostReport less = host("b", "1", Severity::ok);
  less.report.traits.pop_back();
  const Comparison found = compare({host("a", "1", Severity::ok), less});
  ASSERT_EQ(found.differences.size(), 1u);
  EXPECT_EQ(found.differences[0].groups[1].value, "not there");
}

TEST(Compare, AHostWithoutAReportIsNamedWithTheReason) {
  const Comparison found = compare({host("a", "1", Severity::ok), {"b", {}, "no route\x1b[2J"}});
  ASSERT_EQ(found.silent.size(), 1u);
  const std::string text = comparison_text(found);
  EXPECT_NE(text.find("no report of b: no route"), std::string::npos);
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
}

TEST(Compare, ManyHostsAreCountedNotListed) {
  std::vector<HostReport> hosts;
  for (int i = 0; i < 64; ++i) hosts.push_back(host("node" + std::to_string(i), "1", Severity::ok));
  hosts.push_back(host("node64", "2", Severity::ok));
  std::string text = comparison_text(compare(hosts));
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;
  text = std::regex_replace(text, std::regex("\\s+"), " ");
  EXPECT_NE(text.find("node5 and 58 more"), std::string::npos);
  EXPECT_NE(text.find("the odd one out: node64"), std::string::npos);
}

TEST(Compare, JsonHoldsEveryGroup) {
  const auto all = nlohmann::json::parse(
      comparison_json(compare({host("a", "1", Severity::ok), host("b", "2", Severity::ok)})));
  EXPECT_EQ(all["differences"][0]["groups"][1]["hosts"][0], "b");
}

TEST(Compare, SaysWhichRailsDoNotReach) {
  const std::vector<HostReport> hosts{host("a", "1", Severity::ok), host("b", "1", Severity::ok)};
  const Comparison found =
      compare(hosts, {{0, "mlx5_0 port 1", 1, "mlx5_0 port 1", {}},
                      {1, "mlx5_0 port 1", 0, "mlx5_0 port 1", "no answer"},
                      {0, "mlx5_0 port 1", 1, "mlx5_1 port 1", "no route"},
                      {0, "mlx5_0 port 1", 9, "mlx5_0 port 1", "no such host"}});
  EXPECT_EQ(found.rails, 2u);
  ASSERT_EQ(found.unreached.size(), 1u);
  EXPECT_EQ(found.unreached[0], "b mlx5_0 port 1 to a: no answer");
  EXPECT_NE(comparison_text(found).find("NCCL_CROSS_NIC=0"), std::string::npos);
}

TEST(Hosts, AreReadFromListsAndHostfiles) {
  EXPECT_EQ(*parse_hosts("a,b,a"), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(*parse_hosts("node1 slots=8\n# x\n\nnode-2.lan slots=8 # y\r\n10.0.0.1\r\n"),
            (std::vector<std::string>{"node1", "node-2.lan", "10.0.0.1"}));
}

TEST(Hosts, ThatWouldBeOptionsOrCommandsAreRefused) {
  for (const char* bad : {"", "-oProxyCommand=x", "a;b", "$(x)", "a\tb", "a'b"}) {
    EXPECT_FALSE(parse_hosts(bad)) << bad;
  }
}

std::vector<HostReport> run(const std::string& launcher, std::chrono::seconds deadline) {
  LaunchOptions options;
  options.launcher = launcher;
  options.command = {R"(echo '{"schema":1,"findings":[{"id":"x","severity":"OK"}]}')"};
  options.deadline = deadline;
  return run_on_hosts({"a", "b"}, options);
}

TEST(Launch, ReadsAReportOfEachHost) {
  const auto reports = run("env HOST={host} sh -c", std::chrono::seconds(20));
  ASSERT_EQ(reports.size(), 2u);
  for (const HostReport& one : reports) EXPECT_EQ(one.problem, "");
  EXPECT_EQ(reports[1].host, "b");
  EXPECT_EQ(reports[1].report.findings[0].id, "x");
}

TEST(Launch, AHostThatSaysNothingIsAProblemWithItsStatus) {
  const auto reports = run("false {host}", std::chrono::seconds(20));
  EXPECT_NE(reports[0].problem.find("status 1"), std::string::npos) << reports[0].problem;
}

TEST(Launch, AMissingLauncherIsNamed) {
  const auto reports = run("/nowhere/ssh {host}", std::chrono::seconds(20));
  EXPECT_NE(reports[0].problem.find("/nowhere/ssh"), std::string::npos) << reports[0].problem;
}

TEST(Launch, AHostThatHangsIsEndedAtTheDeadline) {
  const auto start = std::chrono::steady_clock::now();
  LaunchOptions options;
  options.launcher = "sh -c";
  options.command = {"sleep 100; true"};
  options.deadline = std::chrono::seconds(1);
  const auto reports = run_on_hosts({"a"}, options);
  EXPECT_NE(reports[0].problem.find("deadline"), std::string::npos);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

TEST(Launch, ATalkativeHostIsEnded) {
  LaunchOptions options;
  options.launcher = "sh -c";
  options.command = {"yes"};
  const auto reports = run_on_hosts({"a"}, options);
  EXPECT_NE(reports[0].problem.find("16 MiB"), std::string::npos) << reports[0].problem;
}

}  // namespace
}  // namespace gdrx::tools

// SPDX-License-Identifier: Apache-2.0
// The report as text, JSON, page and script; the gate on a saved one.
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/doctor/host_tree.hpp"
#include "tools/doctor/doctor_view.hpp"

namespace gdrx::tools {
namespace {

using doctor::Finding;
using doctor::Report;
using doctor::Severity;
using doctor::test::HostTree;

Report small() {
  Report report;
  report.host = "1 GPU, 1 RDMA NIC, kernel 6.8.0, Ubuntu 24.04 LTS";
  report.findings = {
      {"port-state", "mlx5_0 port 1", Severity::ok, "ACTIVE", "state: 4: ACTIVE", {}},
      {"port-state", "mlx5_1 port 1", Severity::ok, "ACTIVE", "state: 4: ACTIVE", {}},
      {"memlock",
       "",
       Severity::fail,
       "64 KiB: registering more fails with ENOMEM",
       "getrlimit(RLIMIT_MEMLOCK): 64 KiB; CAP_IPC_LOCK: no",
       {"ulimit -l unlimited", "# log in again"}}};
  report.not_applicable = {"ats"};
  return report;
}

TEST(DoctorText, IsThisForASmallReport) {
  EXPECT_EQ(doctor_text(small(), {}),
            "1 GPU, 1 RDMA NIC, kernel 6.8.0, Ubuntu 24.04 LTS\n"
            "\n"
            "FAIL     memlock: 64 KiB: registering more fails with ENOMEM\n"
            "         seen  getrlimit(RLIMIT_MEMLOCK): 64 KiB; CAP_IPC_LOCK: no\n"
            "         fix   ulimit -l unlimited\n"
            "               # log in again\n"
            "         see   docs/gdr-setup.md#memlock\n"
            "\n"
            "OK       port-state          mlx5_0 port 1 ACTIVE; mlx5_1 port 1 ACTIVE\n"
            "\n"
            "Nothing to look at for: ats\n"
            "\n"
            "1 FAIL, 2 OK\n");
}

// A host on which everything is wrong that can be wrong in files at once.
void break_much(const HostTree& host) {
  host.remove("dev");
  host.remove("sys/module/nvidia_peermem");
  host.write("proc/sys/kernel/osrelease", "5.4.0");
  host.write("sys/class/net/eth1/mtu", "1500");
  host.config(doctor::test::kUp, 0x156, 0x1d);
  host.write(".dockerenv", "");
}

TEST(DoctorText, IsReadableAtEightyColumns) {
  HostTree host;
  break_much(host);
  host.answers.limits[doctor::Resource::memlock] = 65536;
  const Report report = host.diagnose();
  EXPECT_EQ(worst(report), Severity::fail);
  std::istringstream lines(doctor_text(report, {}));
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;
}

TEST(DoctorText, HasColoursOnlyWhenAsked) {
  EXPECT_EQ(doctor_text(small(), {}).find('\033'), std::string::npos);
  const std::string text = doctor_text(small(), {true, 80});
  EXPECT_NE(text.find("\033[31;1mFAIL     \033[0mmemlock"), std::string::npos) << text;
}

TEST(DoctorText, LetsNoFileMoveTheCursor) {
  Report report = small();
  report.findings[2].evidence = "a\033[2Jb\r\nc";
  report.findings[1].id = "port\033[2Jstate";
  report.findings[2].id = "mem\177lock";
  EXPECT_EQ(doctor_text(report, {}).find_first_of("\033\177\r"), std::string::npos);
}

TEST(DoctorJson, ComesBackAsItWas) {
  const auto back = parse_doctor_json(doctor_json(small()));
  ASSERT_TRUE(back) << back.error().what;
  ASSERT_EQ(back->findings.size(), 3u);
  EXPECT_EQ(back->findings[0].subject, "mlx5_0 port 1");
  EXPECT_EQ(back->findings[2].severity, Severity::fail);
  const auto json = nlohmann::json::parse(doctor_json(small()));
  EXPECT_EQ(json["worst"], "FAIL");
  EXPECT_EQ(json["findings"][2]["doc"], "docs/gdr-setup.md#memlock");
  EXPECT_EQ(json["findings"][2]["fix"][0], "ulimit -l unlimited");
}

TEST(DoctorJson, SaysWhatIsWrongWithABadReport) {
  for (const char* text :
       {"", "{", "[]", "{}", "{\"schema\":2}", "{\"schema\":1}", "{\"schema\":1,\"findings\":[1]}",
        "{\"schema\":1,\"findings\":[{\"id\":\"x\",\"severity\":\"BAD\"}]}"}) {
    const auto report = parse_doctor_json(text);
    ASSERT_FALSE(report) << text;
    EXPECT_EQ(report.error().what.find("not a report of gdrx doctor"), 0u);
  }
}

TEST(DoctorGate, HoldsForTheSameHostAndForABetterOne) {
  EXPECT_TRUE(doctor_worse(small(), small()).empty());
  Report better = small();
  better.findings[2].severity = Severity::ok;
  EXPECT_TRUE(doctor_worse(small(), better).empty());
}

TEST(DoctorGate, NamesWhatIsWorseNewOrGone) {
  Report now = small();
  now.findings[0].severity = Severity::warn;
  now.findings[1].subject = "mlx5_9 port 1";
  now.findings.push_back({"shm", "", Severity::fail, "64 MiB", "", {}});
  const auto lines = doctor_worse(small(), now);
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0], "port-state (mlx5_0 port 1): was OK, is WARN: ACTIVE");
  EXPECT_EQ(lines[1], "shm: FAIL (new): 64 MiB");
  EXPECT_EQ(lines[2], "port-state (mlx5_1 port 1): was OK, is not there any more");
}

// A saved report may come from anywhere, and so may the names of this host's devices.
TEST(DoctorGate, LetsNoReportMoveTheCursor) {
  Report saved = small();
  saved.findings[0].subject = "mlx5_0\033[2J";
  Report now = small();
  now.findings[0].severity = Severity::fail;
  now.findings[1].severity = Severity::warn;
  now.findings[1].summary = "DOWN\033[2J";
  const auto lines = doctor_worse(saved, now);
  ASSERT_EQ(lines.size(), 3u);
  for (const std::string& line : lines) EXPECT_EQ(line.find('\033'), std::string::npos) << line;
}

TEST(DoctorScript, DoesNothingUnlessToldTo) {
  const std::string text = doctor_script(small());
  EXPECT_EQ(text.find("#!/bin/sh\n"), 0u);
  EXPECT_LT(text.find("--apply ]; then"), text.find("#? ulimit -l"));
  EXPECT_NE(text.find("# FAIL memlock"), std::string::npos) << text;
}

TEST(DoctorScript, LeavesToAPersonWhatHasToBeCompleted) {
  HostTree host;
  host.write("sys/fs/cgroup/user.slice/rdma.max", "mlx5_0 hca_handle=2");
  host.answers.environment = {"NCCL_IB_DISABLE=1"};
  host.write(".dockerenv", "");
  const std::string text = doctor_script(host.diagnose());
  EXPECT_NE(text.find("#? echo '<device> hca_handle=max hca_object=max' \\\n#?   > /sys"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("#? unset NCCL_IB_DISABLE"), std::string::npos) << text;
  EXPECT_EQ(text.find("\ndocker run"), std::string::npos) << text;
}

TEST(DoctorHtml, EscapesWhatFilesSaid) {
  Report report = small();
  report.findings[2].evidence = "<script>alert(1)</script>";
  const std::string page = doctor_html(report);
  EXPECT_EQ(page.find("<script"), std::string::npos);
  EXPECT_NE(page.find("&lt;script&gt;"), std::string::npos);
  EXPECT_EQ(page.find("http"), std::string::npos) << "nothing to load";
}

}  // namespace
}  // namespace gdrx::tools

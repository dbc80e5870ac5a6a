// SPDX-License-Identifier: Apache-2.0
// The parts below the checks: config space, distributions, answers from files; and this machine.
#include "doctor/checks/config_space.hpp"

#include "doctor/distribution.hpp"
#include "doctor/host_facts.hpp"
#include "tests/doctor/host_tree.hpp"

namespace gdrx::doctor {
namespace {

using test::HostTree;

std::string with(std::size_t size, std::initializer_list<std::pair<std::size_t, unsigned>> words) {
  std::string bytes(size, '\0');
  for (const auto& [at, value] : words) {
    bytes[at] = static_cast<char>(value & 0xff);
    bytes[at + 1] = static_cast<char>(value >> 8);
  }
  return bytes;
}

TEST(ConfigSpace, FindsCapabilitiesByWalkingTheList) {
  const ConfigSpace space(with(4096, {{0x34, 0x40},
                                      {0x40, 0x6001},
                                      {0x60, 0x0010},
                                      {0x100, 0x0001},
                                      {0x102, 0x2a02},
                                      {0x2a0, 0x000d},
                                      {0x2a2, 0x0001}}));
  EXPECT_EQ(space.find(0x10), 0x60u);
  EXPECT_EQ(space.find(0x11), std::nullopt);
  EXPECT_EQ(space.find_extended(0x000d), 0x2a0u);
  EXPECT_EQ(space.find_extended(0x000f), std::nullopt);
}

TEST(ConfigSpace, EndsOnALoopAndOnAnyLength) {
  for (std::size_t size = 0; size < 4200; size += 37) {
    std::string bytes(size, '\xff');
    EXPECT_EQ(ConfigSpace(bytes).find_extended(0x000d), std::nullopt);
    EXPECT_EQ(ConfigSpace(bytes).find(0x10), std::nullopt);
  }
  const ConfigSpace loop(with(4096, {{0x34, 0x40}, {0x40, 0x4001}, {0x100, 1}, {0x102, 0x1001}}));
  EXPECT_EQ(loop.find(0x10), std::nullopt);
  EXPECT_EQ(loop.find_extended(0x000d), std::nullopt);
}

TEST(Distribution, IsKnownByItsFamily) {
  EXPECT_EQ(parse_os_release("ID=ubuntu\nID_LIKE=debian").family, Family::debian);
  EXPECT_EQ(parse_os_release("ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"").family,
            Family::red_hat);
  EXPECT_EQ(parse_os_release("ID=\"sles\"\nID_LIKE=\"suse\"").family, Family::suse);
  EXPECT_EQ(parse_os_release("").family, Family::other);
  EXPECT_EQ(parse_os_release("ID_LIKE=x\nPRETTY_NAME='A B'").name, "A B");
}

TEST(Distribution, FixesAreItsOwn) {
  HostTree host;
  host.remove("sys/module/nvidia");
  host.write("etc/os-release", "ID=rocky\nID_LIKE=\"rhel fedora\"\n");
  EXPECT_EQ(test::of(host.diagnose(), "nvidia-driver")[0].fix[0], "dnf install -y nvidia-open");
}

TEST(FileProbes, ReadLimitsCapabilitiesAndSizesOfACopy) {
  HostTree host;
  host.write("proc/self/limits",
             "Limit                     Soft Limit           Hard Limit           Units\n"
             "Max open files            1024                 524288               files\n"
             "Max locked memory         65536                65536                bytes\n");
  host.write("proc/self/status", "Name: x\nCapEff:\t0000000000004000\nCpus_allowed_list:\t0-3\n");
  host.write("proc/self/mounts", "tmpfs /dev/shm tmpfs rw,size=65536k 0 0\n");
  const Probes probes = file_probes(host.root());
  EXPECT_EQ(probes.limit(Resource::memlock), 65536u);
  EXPECT_EQ(probes.limit(Resource::nofile), 1024u);
  EXPECT_EQ(probes.capabilities(), std::uint64_t{1} << kCapIpcLock);
  EXPECT_EQ(probes.file_system_bytes("/dev/shm"), std::uint64_t{64} << 20);
  EXPECT_EQ(probes.affinity(), "0-3");
  EXPECT_FALSE(probes.cuda());
  const auto report = diagnose({host.root(), probes});
  ASSERT_TRUE(report);
  EXPECT_EQ(test::of(*report, "libibverbs")[0].severity, Severity::unknown);
}

// Root is told why the limit does not matter to it.
TEST(Memlock, DoesNotCountForAProcessWithIpcLock) {
  HostTree host;
  host.answers.limits[Resource::memlock] = 65536;
  host.answers.capabilities = std::uint64_t{1} << kCapIpcLock;
  const Finding one = test::of(host.diagnose(), "memlock")[0];
  EXPECT_EQ(one.severity, Severity::ok);
  EXPECT_NE(one.summary.find("IPC_LOCK"), std::string::npos);
}

TEST(Acs, IsOffWhereGpuAndNicShareAnIommuGroup) {
  HostTree host;
  host.hide_config(test::kUp);
  host.group(test::kGpu, 40, "identity");
  host.group(test::kIb, 40, "identity");
  EXPECT_EQ(test::of(host.diagnose(), "acs")[0].severity, Severity::ok);
}

TEST(Acs, IsLeftAloneInAVirtualMachine) {
  HostTree host;
  host.write("proc/cpuinfo", "flags : hypervisor");
  host.config(test::kUp, 0x156, 0x1d);
  const Finding one = test::of(host.diagnose(), "acs")[0];
  EXPECT_EQ(one.severity, Severity::ok);
  EXPECT_TRUE(one.fix.empty());
}

TEST(Ats, IsOnInAGoodVirtualMachine) {
  HostTree host;
  host.write("proc/cpuinfo", "flags : hypervisor");
  EXPECT_EQ(test::of(host.diagnose(), "ats")[0].severity, Severity::ok);
}

// A Grace's NIC is at another host bridge, and near all the same.
TEST(Distance, OverC2cIsGood) {
  HostTree host;
  host.move_gpu("pci0000:80/0000:80:01.0/0000:81:00.0", 0);
  host.write("gdrx/links", "gpu 0000:81:00.0 90 GH200\n");
  EXPECT_EQ(test::of(host.diagnose(), "gpu-nic-distance")[0].severity, Severity::slow);
  host.write("gdrx/links", "gpu 0000:81:00.0 90 GH200\nc2c 0000:81:00.0 10 400\n");
  const Finding one = test::of(host.diagnose(), "gpu-nic-distance")[0];
  EXPECT_EQ(one.severity, Severity::ok) << one.summary;
  EXPECT_NE(one.summary.find("NVLink-C2C (NODE)"), std::string::npos) << one.summary;
}

TEST(Peermem, IsNotNeededWhereDmabufIsProven) {
  HostTree host;
  host.remove("sys/module/nvidia_peermem");
  const Finding one = test::of(host.diagnose(), "nvidia-peermem")[0];
  EXPECT_EQ(one.severity, Severity::ok) << one.summary;
}

TEST(PcieLink, AnIdleGpusLowRateIsNoFault) {
  HostTree host;
  host.write("sys/devices/" + test::kGpu + "/current_link_speed", "2.5 GT/s PCIe");
  for (const Finding& one : test::of(host.diagnose(), "pcie-link")) {
    EXPECT_EQ(one.severity, Severity::ok) << one.summary;
  }
}

TEST(Probes, ThatDoNotAnswerGiveUnknownWithTheReason) {
  HostTree host;
  host.answers.cuda = fail(Errc::unsupported, "libcuda.so.1 cannot be loaded");
  host.answers.nvml = fail(Errc::unsupported, "libnvidia-ml.so.1 cannot be loaded");
  const Report report = host.diagnose();
  for (const char* id : {"cuda-gdr", "cuda-dmabuf", "bar1", "mig", "driver-library"}) {
    const Finding one = test::of(report, id)[0];
    EXPECT_EQ(one.severity, Severity::unknown) << id;
    EXPECT_NE(one.evidence.find("cannot be loaded"), std::string::npos) << id;
  }
}

TEST(Host, WithoutASysFolderIsOneClearError) {
  const auto report = diagnose({"/nowhere", file_probes("/nowhere")});
  ASSERT_FALSE(report);
  EXPECT_NE(report.error().what.find("no sys folder"), std::string::npos);
}

TEST(Host, WithAnEmptySysFolderIsJudged) {
  HostTree host;
  for (const char* folder : {"sys", "proc", "dev", "etc"}) host.remove(folder);
  host.write("sys/x", "");
  host.answers = {};
  host.answers.limits.clear();
  EXPECT_EQ(worst(host.diagnose()), Severity::fail);
}

// Whatever it is: every finding is whole, and there is one for each check or a word that there is
// nothing to look at.
TEST(ThisMachine, IsJudged) {
  const auto report = diagnose({});
  ASSERT_TRUE(report) << report.error().what;
  for (const Finding& one : report->findings) {
    EXPECT_FALSE(one.summary.empty()) << one.id;
    EXPECT_FALSE(one.evidence.empty()) << one.id;
    EXPECT_EQ(one.fix.empty(), one.severity == Severity::ok) << one.id;
  }
  for (const CheckName& check : checks()) {
    const bool absent = std::find(report->not_applicable.begin(), report->not_applicable.end(),
                                  check.id) != report->not_applicable.end();
    EXPECT_NE(absent, !test::of(*report, check.id).empty()) << check.id;
  }
}

}  // namespace
}  // namespace gdrx::doctor

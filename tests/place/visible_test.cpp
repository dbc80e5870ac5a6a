// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "base/cpu_list.hpp"
#include "tests/topo/sysfs_tree.hpp"
#include "topo/place/placement.hpp"
#include "topo/read/host_files.hpp"

namespace gdrx::topo {
namespace {

class Visible : public test::Sysfs {
 protected:
  Topology three_gpus() const {
    for (int i = 0; i < 3; ++i) {
      const std::string bus = fmt::format("0000:0{}:00.0", i + 1);
      gpu(bridge(fmt::format("pci0000:00/0000:00:0{}.0", i + 1)) + "/" + bus);
      write(
          "proc/driver/nvidia/gpus/" + bus + "/information",
          fmt::format("Model: \t NVIDIA H200\nGPU UUID: \t GPU-{0}{0}-1\nDevice Minor: \t {0}", i));
    }
    return load();
  }
  static std::string shown(const Topology& topology, const char* text,
                           const std::vector<std::size_t>& present = {0, 1, 2}) {
    const auto found = visible_gpus(topology, text, present);
    if (!found) return found.error().what;
    std::string names;
    for (const VisibleGpu& one : *found) {
      names +=
          (names.empty() ? "" : " ") + (one.gpu == kNone ? "?" : topology.gpus()[one.gpu].name);
    }
    return names;
  }
};

TEST_F(Visible, AreNumbersUuidsAndWhatUuidsBeginWith) {
  const Topology topology = three_gpus();
  EXPECT_EQ(topology.gpus()[1].uuid, "GPU-11-1");
  EXPECT_EQ(shown(topology, "2,0"), "GPU2 GPU0");
  EXPECT_EQ(shown(topology, "GPU-11-1, GPU-2"), "GPU1 GPU2");
  EXPECT_EQ(shown(topology, "MIG-GPU-11-1/3/0"), "GPU1");
  EXPECT_EQ(shown(topology, "MIG-6f2a"), "?");
}

TEST_F(Visible, EndAtTheFirstThatIsNone) {
  const Topology topology = three_gpus();
  EXPECT_EQ(shown(topology, "1,-1,0"), "GPU1");
  EXPECT_EQ(shown(topology, "1,3,0"), "GPU1");
  EXPECT_EQ(shown(topology, "GPU-,0"), "") << "what three begin with is none";
  EXPECT_EQ(shown(topology, ""), "");
  EXPECT_EQ(shown(topology, "none"), "");
}

TEST_F(Visible, NamedTwiceAreAnError) {
  EXPECT_EQ(shown(three_gpus(), "0,GPU-00-1"),
            "CUDA_VISIBLE_DEVICES names GPU-00-1 twice: CUDA shows no GPU then");
}

TEST_F(Visible, AreCountedWithoutThoseThatACgroupHides) {
  const Topology topology = three_gpus();
  const HostFiles files(root_.string());
  const auto present =
      present_gpus(topology, files, [](const std::string& path) { return path != "/dev/nvidia1"; });
  EXPECT_EQ(present, (std::vector<std::size_t>{0, 2}));
  EXPECT_EQ(shown(topology, "1", present), "GPU2");
}

TEST_F(Visible, AreThoseTheDriverTellsWhereItTellsAny) {
  const Topology topology = three_gpus();
  std::filesystem::remove_all(root_ / "proc/driver/nvidia/gpus" /
                              topology.nodes()[topology.gpus()[1].node].name);
  const HostFiles files(root_.string());
  const auto all = [](const std::string&) { return true; };
  EXPECT_EQ(present_gpus(topology, files, all), (std::vector<std::size_t>{0, 2}));
  std::filesystem::remove_all(root_ / "proc/driver/nvidia/gpus");
  EXPECT_EQ(present_gpus(topology, files, all), (std::vector<std::size_t>{0, 1, 2}));
}

TEST_F(Visible, CoresAreReadWithTheirThreads) {
  numa(0, "0-3", 0);
  for (int cpu = 0; cpu < 4; ++cpu) {
    write(fmt::format("sys/devices/system/cpu/cpu{}/topology/thread_siblings_list", cpu),
          cpu < 2 ? "0-1" : "2-3");
  }
  const Topology topology = load();
  EXPECT_EQ(topology.numa().at(0).cores, (std::vector<std::string>{"0-1", "2-3"}));
  const auto placement = place(topology, {2});
  ASSERT_TRUE(placement);
  EXPECT_EQ(placement->ranks[1].cpus, (std::vector<int>{2, 3}));
}

TEST_F(Visible, CpusOfAKernelWithoutNumaAreOneNodes) {
  for (int cpu = 0; cpu < 4; ++cpu) {  // as kernels before 2.6.29 had it: masks alone
    write(fmt::format("sys/devices/system/cpu/cpu{}/topology/thread_siblings", cpu),
          cpu % 2 == 0 ? "00000005" : "0000000a");
  }
  const auto placement = place(load(), {});
  ASSERT_TRUE(placement);
  ASSERT_EQ(placement->ranks.size(), 2u);
  EXPECT_EQ(placement->ranks[1].cpus, (std::vector<int>{1, 3}));
}

TEST(CpuList, IsAscendingAndWithoutWhatDoesNotParse) {
  EXPECT_EQ(cpus_of_list("8,0-3,2"), (std::vector<int>{0, 1, 2, 3, 8}));
  EXPECT_TRUE(cpus_of_list("x,-1,3-1").empty());
  EXPECT_LE(cpus_of_list("0-4294967295,0-99999999").size(), 65536u);
  EXPECT_EQ(cpus_of_list("5-65535", 4), (std::vector<int>{5, 6, 7, 8}));
  for (const char* list : {"0", "0-1,5", "3-3"}) EXPECT_TRUE(is_cpu_list(list)) << list;
  for (const char* list : {"", "x", "0-1,x", "0-", "-1", "3-1", "0,", "65536", "0 1"}) {
    EXPECT_FALSE(is_cpu_list(list)) << list;
  }
  EXPECT_EQ(list_of_cpus({0, 1, 2, 5, 7, 8}), "0-2,5,7-8");
  EXPECT_EQ(list_of_cpus({}), "");
}

}  // namespace
}  // namespace gdrx::topo

// SPDX-License-Identifier: Apache-2.0
// What NVML tells of links, by a table of our own: hosts with links that are not here.
#include "topo/read/nvml.hpp"

#include <cstring>
#include <map>

#include "tests/topo/builder.hpp"

namespace gdrx::topo {
namespace {

struct FakeGpu {
  BusId bus;
  std::vector<BusId> links;   // active ones, by what is at their other end
  std::vector<unsigned> c2c;  // each link's state
};
std::vector<FakeGpu>* gpus = nullptr;  // by NVML's index

FakeGpu& at(NvmlDevice device) { return (*gpus)[reinterpret_cast<std::size_t>(device) - 1]; }
NvmlPci pci_of(const BusId& bus) {
  NvmlPci pci{};
  pci.domain = bus.domain;
  pci.bus = bus.bus;
  pci.device = bus.device;
  return pci;
}

NvmlTable table() {
  NvmlTable nvml;
  nvml.count = [](unsigned* count) {
    *count = static_cast<unsigned>(gpus->size());
    return 0;
  };
  nvml.handle = [](unsigned i, NvmlDevice* device) {
    *device = reinterpret_cast<NvmlDevice>(static_cast<std::size_t>(i) + 1);
    return 0;
  };
  nvml.pci = [](NvmlDevice device, NvmlPci* pci) {
    *pci = pci_of(at(device).bus);
    return 0;
  };
  nvml.name = [](NvmlDevice, char* name, unsigned size) {
    std::memset(name, 'x', size);  // a name that fills its field has no end
    return 0;
  };
  nvml.link_state = [](NvmlDevice device, unsigned link, unsigned* active) {
    *active = link < at(device).links.size() ? 1 : 0;
    return link < kMostNvLinks ? 0 : 2;
  };
  nvml.link_remote = [](NvmlDevice device, unsigned link, NvmlPci* pci) {
    *pci = pci_of(at(device).links[link]);
    return 0;
  };
  nvml.capability = [](NvmlDevice, int* major, int* minor) {
    *major = 9;
    *minor = 0;
    return 0;
  };
  nvml.fields = [](NvmlDevice device, int count, NvmlField* field) {
    EXPECT_EQ(count, 1);
    const auto& links = at(device).c2c;
    field->status = field->field == kC2cCount || field->scope < links.size() ? 0 : 3;
    if (field->field == kC2cCount) field->value = links.size();
    if (field->field == kC2cStatus && field->status == 0) field->value = links[field->scope];
    if (field->field == kC2cBandwidth) field->value = 40000;
    return 0;
  };
  return nvml;
}

class Nvml : public ::testing::Test {
 protected:
  void SetUp() override {
    for (int i = 0; i < 2; ++i) {
      const std::size_t node = host_.gpu(host_.bridge(host_.root(i)));
      host_.parts.gpus.back().sm = 0;
      bus_.push_back(*host_.parts.nodes[node].bus);
    }
    gpus = &told_;
  }
  Topology read(const NvmlTable& nvml) {
    add_nvml(nvml, host_.parts);
    return host_.build();
  }
  test::HostBuilder host_;
  std::vector<BusId> bus_;
  std::vector<FakeGpu> told_;
};

TEST_F(Nvml, TellsC2cLinksThatAreUp) {
  told_ = {{bus_[0], {}, std::vector<unsigned>(10, 1)}, {bus_[1], {}, {1, 0, 1}}};
  const Topology topology = read(table());
  EXPECT_EQ(topology.gpus()[0].c2c_links, 10);
  EXPECT_NEAR(topology.gpus()[0].c2c_gbytes, 400, 0.01);
  EXPECT_EQ(topology.gpus()[1].c2c_links, 2);
  EXPECT_EQ(topology.gpus()[0].sm, 90);
  EXPECT_EQ(topology.gpus()[0].model.size(), 95u);
}

TEST_F(Nvml, WithoutTheNewerCallsTellsTheRest) {
  told_ = {{bus_[0], {bus_[1]}, {1}}, {bus_[1], {bus_[0]}, {1}}};
  NvmlTable old = table();
  old.capability = nullptr;
  old.fields = nullptr;
  const Topology topology = read(old);
  EXPECT_EQ(topology.gpus()[0].c2c_links, 0);
  EXPECT_EQ(topology.gpus()[0].sm, 0);
  EXPECT_EQ(test::smi(topology, "GPU0", "GPU1"), "NV1");
}

// Trap 11: indices are masked and reordered, bus ids are not; instances of one GPU share one.
TEST_F(Nvml, IsReadByBusIdWhateverItsOrder) {
  const BusId elsewhere{0xffff, 0xfe, 0, 0};
  told_ = {{elsewhere, {}, {1}}, {bus_[1], {}, {1, 1}}, {bus_[1], {}, {}}};
  const Topology topology = read(table());
  EXPECT_EQ(topology.gpus()[0].c2c_links, 0);
  EXPECT_EQ(topology.gpus()[1].c2c_links, 2);
}

// A VM hides NVSwitches: the other end is a bus id of ones.
TEST_F(Nvml, AnUnknownOtherEndIsANvswitch) {
  const BusId hidden{0xfffffff, 0xff, 0x1f, 0};
  told_ = {{bus_[0], std::vector<BusId>(18, hidden), {}},
           {bus_[1], std::vector<BusId>(12, hidden), {}}};
  EXPECT_EQ(test::smi(read(table()), "GPU0", "GPU1"), "NV12");
}

TEST_F(Nvml, ALinkToAPower9IsNoneToAnotherGpu) {
  PciNode cpu;
  cpu.bus = BusId{4, 1, 0, 0};
  cpu.name = to_string(*cpu.bus);
  cpu.vendor = 0x1014;
  cpu.class_code = 0x068001;
  host_.add(cpu);
  told_ = {{bus_[0], {*cpu.bus, *cpu.bus}, {}}, {bus_[1], {*cpu.bus, *cpu.bus}, {}}};
  EXPECT_EQ(test::smi(read(table()), "GPU0", "GPU1"), "SYS");
}

TEST_F(Nvml, ThatDoesNotAnswerLeavesANote) {
  NvmlTable broken = table();
  broken.count = [](unsigned*) { return 9; };
  const Topology topology = read(broken);
  EXPECT_FALSE(topology.nvlink_known());
  ASSERT_EQ(topology.notes().size(), 1u);
}

}  // namespace
}  // namespace gdrx::topo

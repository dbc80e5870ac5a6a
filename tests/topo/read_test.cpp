// SPDX-License-Identifier: Apache-2.0
// Files that are wrong in every way: one clear line each, and nothing else.
#include <cstdlib>
#include <memory>
#include <random>

#include "tests/topo/builder.hpp"
#include "tests/topo/hwloc_text.hpp"
#include "topo/read/field_text.hpp"
#include "topo/read/xml.hpp"

namespace gdrx::topo {
namespace {

using test::smi;
using test::way;

// hwloc writes banners about bad files to stderr unless its environment forbids it.
class QuietHwloc : public ::testing::Environment {
  void SetUp() override { setenv("HWLOC_HIDE_ERRORS", "2", 0); }
};
[[maybe_unused]] const auto* const kQuiet =
    ::testing::AddGlobalTestEnvironment(std::make_unique<QuietHwloc>().release());

constexpr const char* kGood = R"(<?xml version="1.0"?>
<!-- two sockets -->
<system version="1">
  <cpu numaid="0" affinity="0000000f,ffffffff">
    <pci busid="0000:10:00.0" class="0x060400" link_speed="16 GT/s" link_width="16">
      <pci busid="0000:11:00.0" class="0x030200" vendor="0x10de" link_speed="16 GT/s" link_width="16">
        <gpu dev="0" sm="80" rank="0" gdr="1"><nvlink target="0000:21:00.0" count="4" tclass="0x030200"/></gpu>
      </pci>
      <pci busid="0000:12:00.0" class="0x020700" link_speed="16 GT/s" link_width="16">
        <nic><net name="mlx5_0" dev="0" speed="200000" port="1" guid="0x1" gdr="1"/></nic>
      </pci>
    </pci>
  </cpu>
  <cpu numaid="1">
    <pci busid="0000:21:00.0" class="0x030200" vendor="0x10de"><gpu dev="1" sm="80"/></pci>
  </cpu>
</system>)";

TEST(NcclXml, AGoodFileIsRead) {
  const auto topology = parse(kGood, "good.xml");
  ASSERT_TRUE(topology) << topology.error().what;
  EXPECT_EQ(topology->gpus().size(), 2u);
  EXPECT_EQ(smi(*topology, "GPU0", "GPU1"), "NV4");
  EXPECT_EQ(smi(*topology, "GPU0", "mlx5_0"), "PIX");
  EXPECT_EQ(smi(*topology, "GPU1", "mlx5_0"), "SYS");
  EXPECT_NEAR(*way(*topology, "GPU0", "mlx5_0").bottleneck, 25, 0.01) << "200 Gb/s";
  EXPECT_EQ(topology->cpus_of(0), "0-35");
}

std::string error_of(std::string_view text) {
  const auto topology = parse(text, "bad.xml");
  return topology ? "accepted" : describe(topology.error());
}

std::string nested(int levels) {
  std::string text = "<system>";
  for (int i = 0; i < levels; ++i) text += "<cpu>";
  for (int i = 0; i < levels; ++i) text += "</cpu>";
  return text + "</system>";
}

TEST(BadInput, GivesOneClearLineEach) {
  const std::string bomb =
      "<!DOCTYPE x [<!ENTITY a \"aaaa\"><!ENTITY b \"&a;&a;\">]><system version=\"&b;\"/>";
  const std::string external = "<!DOCTYPE x SYSTEM \"file:///etc/passwd\"><system v=\"&x;\"/>";
  const struct {
    std::string text;
    std::string_view says;
  } cases[] = {
      {"", "empty"},
      {" \n\t", "empty"},
      {std::string("\0\0\0", 3), ""},
      {"<system>", "never closed"},
      {"<system></cpu></system>", "closes what is not open"},
      {"<system", "does not end"},
      {"<system a>", "no value"},
      {"<system a=1>", "quotes"},
      {"<system a=\"1", "does not end"},
      {"<system a=\"<\"/>", "'<'"},
      {"<system a=\"1\" a=\"2\"/>", "twice"},
      {"<system/><system/>", "second root"},
      {"<system/>text", "not XML"},
      {"<!-- <system/>", "comment does not end"},
      {"<?xml", "instruction does not end"},
      {"<?xml version='1.0' encoding='UT8-F'?><system/>", "encoding"},
      {"<?xml encoding=UTF-8?><system/>", "encoding"},
      {"<?xml encoding=?><system/>", "encoding"},
      {"<?xml encoding", "does not end"},
      {"<!DOCTYPE", "does not end"},
      {bomb, "declarations"},
      {external, "entity"},
      {"<![CDATA[x]]>", "not taken"},
      {"<cat/>", "neither"},
      {nested(300), "too deep"},
      {"<topology>", "never closed"},
      {"<topology version=\"9.0\"/>", "hwloc"},
      {"<topology version=\"2.0\"><object type=\"Cat\"/></topology>", "hwloc"},
      {"<system><cpu numaid=\"0\"><pci busid=\"x\"/></cpu></system>", "bus id"},
      {"<system><cpu numaid=\"0\"><pci/></cpu></system>", "bus id"},
      {"a line of text", "not understood"},
      {"BZh91AY&SY\x01", "neither text nor a snapshot"},
      {"<topology version=\"2.0\"><object type=\"Machine\" cpuset=\"0x1\"/></topology>",
       "Machine of no"},
  };
  for (const auto& bad : cases) {
    const std::string error = error_of(bad.text);
    EXPECT_NE(error, "accepted") << bad.text.substr(0, 60);
    EXPECT_NE(error.find(bad.says), std::string::npos) << error;
    EXPECT_EQ(error.find('\n'), std::string::npos) << error;
    EXPECT_LT(error.size(), 300u) << error;
  }
}

TEST(BadInput, ADeviceThatIsThereTwiceIsNamedByItsLines) {
  const std::string error = error_of(
      "<system>\n<cpu numaid=\"0\">\n<pci busid=\"0000:01:00.0\" class=\"0x030200\"/>\n\n"
      "<pci busid=\"0000:01:00.0\" class=\"0x030200\"/></cpu></system>");
  EXPECT_NE(error.find("line 5: 0000:01:00.0 is there twice, first in line 3"), std::string::npos)
      << error;
}

TEST(BadInput, ABridgeBelowItselfIsNoTree) {
  test::HostBuilder host;
  const auto a = host.bridge(host.root(0));
  host.parts.nodes[a].parent = a;
  EXPECT_FALSE(Topology::make(host.parts));
  host.parts.nodes[a].parent = 12345;
  EXPECT_FALSE(Topology::make(host.parts));
}

TEST(BadInput, EveryPrefixOfAFileIsReadOrRefused) {
  const std::string_view whole = kGood;
  for (std::size_t length = 0; length < whole.size(); ++length) {
    const auto topology = parse(whole.substr(0, length), "cut.xml");
    if (topology) {
      ADD_FAILURE() << "accepted " << length << " of " << whole.size() << " bytes";
    }
  }
}

// Not a fuzz target, but its smoke test: nothing that one byte can do is worse than an error.
TEST(BadInput, AFileWithWrongBytesNeverCrashes) {
  std::mt19937 random(7);
  int accepted = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string text = kGood;
    for (int i = 0; i < 3; ++i) text[random() % text.size()] = static_cast<char>(random() % 256);
    const auto topology = parse(text, "hit.xml");
    if (!topology) continue;
    ++accepted;
    rail_map(*topology);
    ring_order(*topology);
  }
  EXPECT_GT(accepted, 0) << "a changed byte in a comment harms nothing";
}

TEST(HwlocXml, AGoodFileIsRead) {
  const auto topology = parse(test::kHwlocXml, "good.xml");
  ASSERT_TRUE(topology) << topology.error().what;
  ASSERT_EQ(topology->gpus().size(), 2u);
  ASSERT_EQ(topology->nics().size(), 3u);
  EXPECT_EQ(smi(*topology, "GPU0", "mlx5_0"), "PIX");
  EXPECT_EQ(smi(*topology, "GPU1", "mlx5_0"), "SYS");
  EXPECT_EQ(smi(*topology, "GPU1", "mlx5_1"), "PHB");
  EXPECT_EQ(smi(*topology, "mlx5_1", "mlx5_2"), "PIX");
  EXPECT_EQ(smi(*topology, "GPU0", "GPU1"), "NV4");
  EXPECT_EQ(smi(*topology, "GPU0", "GPU1", true), "SYS");
  EXPECT_EQ(topology->package_of(1), 1);
  EXPECT_NEAR(*way(*topology, "GPU0", "mlx5_1").bottleneck, 15.75, 0.01);
  const auto path_up = hops(*topology, *topology->find("GPU0"), *topology->find("mlx5_1"));
  EXPECT_NEAR(*path_up[0].gbytes, 31.5, 0.1);
}

TEST(HwlocXml, TellsWhetherAPortIsUp) {
  std::string text = test::kHwlocXml;
  const auto add = [&](const std::string& nic, const std::string& infos) {
    const std::string end = "name=\"" + nic + "\" osdev_type=\"3\"/>";
    const std::size_t at = text.find(end);
    ASSERT_NE(at, text.npos) << nic;
    text.replace(at + end.size() - 2, 2, ">" + infos + "</object>");
  };
  add("mlx5_0", "<info name=\"Port1State\" value=\"1\"/><info name=\"Port2State\" value=\"4\"/>");
  add("mlx5_1", "<info name=\"Port1State\" value=\"1\"/>");
  const auto topology = parse(text, "ports.xml");
  ASSERT_TRUE(topology) << topology.error().what;
  EXPECT_EQ(topology->nics()[0].active, true);
  EXPECT_EQ(topology->nics()[1].active, false);
  EXPECT_EQ(topology->nics()[2].active, std::nullopt);
}

// hwloc itself reads it after our reader: what passes that must not harm it either.
TEST(HwlocXml, AFileWithWrongBytesNeverCrashes) {
  std::mt19937 random(11);
  const std::string good = test::kHwlocXml;
  int accepted = 0;
  for (int round = 0; round < 400; ++round) {
    std::string text = good;
    // Digits for digits: most stay well-formed, and reach hwloc.
    for (int i = 0; i < 4; ++i) {
      const std::size_t at = text.find_first_of("0123456789", random() % (text.size() - 400));
      if (at != text.npos) text[at] = static_cast<char>('0' + random() % 10);
    }
    const auto topology = parse(text, "hit.xml");
    if (topology) {
      ++accepted;
      rail_map(*topology);
    }
  }
  EXPECT_GT(accepted, 0);
}

TEST(HwlocXml, EveryLineMissingIsReadOrRefused) {
  const std::string good = test::kHwlocXml;
  for (std::size_t begin = 0; begin < good.size();) {
    const std::size_t end = good.find('\n', begin) + 1;
    const auto topology = parse(good.substr(0, begin) + good.substr(end), "cut.xml");
    if (topology) rail_map(*topology);
    begin = end;
  }
}

TEST(NcclXml, OddNumbersAreNotKnownAndNotTaken) {
  const auto topology = parse(
      "<system><cpu numaid=\"many\" affinity=\"xyz\"><pci busid=\"0000:01:00.0\" class=\"0x030200\""
      " link_speed=\"fast\" link_width=\"-3\"/><pci busid=\"0000:02:00.0\" class=\"0x020700\""
      " link_speed=\"1e300 GT/s\" link_width=\"99999999999\"/></cpu></system>",
      "odd.xml");
  ASSERT_TRUE(topology) << topology.error().what;
  EXPECT_FALSE(way(*topology, "GPU0", "NIC0").bottleneck);
  EXPECT_EQ(topology->numa_of(topology->gpus()[0].node), -1);
}

// Class 0x068001 is a POWER9, which GPUs reach by NVLink; 0x068000 is an NVSwitch.
TEST(NcclXml, AnNvlinkToThePower9IsNoneToAnotherGpu) {
  const auto links = [](const char* target) {
    std::string text = "<system><cpu numaid=\"0\">";
    for (int gpu = 1; gpu < 3; ++gpu) {
      text += fmt::format(
          "<pci busid=\"0004:0{}:00.0\" class=\"0x030200\"><gpu sm=\"70\">"
          "<nvlink target=\"0004:0{}:00.0\" count=\"3\" tclass=\"{}\"/>"
          "</gpu></pci>",
          gpu, gpu + 4, target);
    }
    const auto topology = parse(text + "</cpu></system>", "power9.xml");
    EXPECT_TRUE(topology) << topology.error().what;
    return smi(*topology, "GPU0", "GPU1");
  };
  EXPECT_EQ(links("0x068000"), "NV3");
  EXPECT_EQ(links("0x068001"), "PHB?");
}

TEST(NcclXml, AmdsLinksAreNoNvlinksByName) {
  std::string text = "<system><cpu numaid=\"0\">";
  for (int gpu = 1; gpu < 3; ++gpu) {
    text += fmt::format(
        "<pci busid=\"0000:0{}:00.0\" class=\"0x038000\"><gpu gcn=\"908\">"
        "<xgmi target=\"0000:0{}:00.0\" count=\"2\" tclass=\"0x038000\"/></gpu></pci>",
        gpu, 3 - gpu);
  }
  const auto topology = parse(text + "</cpu></system>", "mi100.xml");
  ASSERT_TRUE(topology) << topology.error().what;
  EXPECT_EQ(smi(*topology, "GPU0", "GPU1"), "XGMI2");
  EXPECT_EQ(smi(*topology, "GPU0", "GPU1", true), "PHB?");
}

TEST(HwlocXml, ABusIdThatIsThereTwiceIsNamedByItsLines) {
  EXPECT_EQ(error_of("<topology version=\"2.0\">\n"
                     "<object type=\"PCIDev\" pci_busid=\"0000:04:00.0\"/>\n"
                     "<object type=\"PCIDev\" pci_busid=\"0000:04:00.0\"/>\n</topology>"),
            "bad.xml: line 3: 0000:04:00.0 is there twice, first in line 2");
}

TEST(HwlocXml, AFileOfALaterHwlocIsNamedByItsLine) {
  EXPECT_EQ(error_of("<?xml version=\"1.0\"?>\n<topology version=\"3.0\"/>"),
            "bad.xml: line 2: a file of hwloc 3.0, which hwloc 2 cannot read: write it by `lstopo "
            "--export-xml-flags v2`");
}

TEST(NcclXml, ACloudsFileWithoutNvlinksSaysSo) {
  const auto topology = parse(
      "<system><cpu numaid=\"0\"><pci busid=\"0000:01:00.0\" class=\"0x030200\"/>"
      "<pci busid=\"0000:02:00.0\" class=\"0x030200\"/></cpu></system>",
      "cloud.xml");
  ASSERT_TRUE(topology);
  ASSERT_EQ(topology->notes().size(), 1u);
  EXPECT_NE(topology->notes()[0].find("NVLink is not in this file"), std::string::npos);
}

TEST(NcclXml, VirtualMachinesShowFlatBusesOnBusZero) {
  const auto topology = parse(
      "<system><cpu numaid=\"-1\"><pci busid=\"0000:00:06.0\" class=\"0x030200\"/>"
      "<pci busid=\"0000:00:07.0\" class=\"0x020700\"/></cpu></system>",
      "vm.xml");
  ASSERT_TRUE(topology);
  EXPECT_TRUE(topology->flattened());
  EXPECT_EQ(smi(*topology, "GPU0", "NIC0"), "PHB");
}

TEST(Xml, TakesTheEncodingsOfItsFiles) {
  for (const std::string encoding : {"\"UTF-8\"", "'utf-8'", "\"US-ASCII\"", " = 'ISO-8859-1'"}) {
    const auto document = parse_xml("<?xml version='1.0' encoding=" + encoding + "?><a/>", "x");
    EXPECT_TRUE(document) << document.error().what;
  }
}

TEST(Xml, ReadsTheFiveEntitiesAndNumbers) {
  const auto document = parse_xml("<a b='&lt;&gt;&amp;&quot;&apos;&#65;&#x42;'/>", "x");
  ASSERT_TRUE(document) << document.error().what;
  EXPECT_EQ(document->root()["b"], "<>&\"'AB");
}

TEST(Topology, LetsNoFileMoveTheCursor) {
  const auto topology = parse(
      "<system><cpu numaid=\"0\"><pci busid=\"0000:01:00.0\" class=\"0x020700\"><nic>"
      "<net name=\"m\x1b[31mx\" port=\"1\"/></nic></pci></cpu></system>",
      "a\nb.xml");
  ASSERT_TRUE(topology) << topology.error().what;
  EXPECT_EQ(topology->nics()[0].name, "m [31mx");
  EXPECT_EQ(topology->source(), "a b.xml");
}

TEST(Text, MasksBecomeLists) {
  EXPECT_EQ(cpus_of_mask("f"), "0-3");
  EXPECT_EQ(cpus_of_mask("00000001,80000001"), "0,31-32");
  EXPECT_EQ(cpus_of_mask("0"), "");
  EXPECT_EQ(cpus_of_mask("5"), "0,2");
  EXPECT_EQ(cpus_of_mask(""), "");
}

}  // namespace
}  // namespace gdrx::topo

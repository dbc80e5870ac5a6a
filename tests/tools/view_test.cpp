// SPDX-License-Identifier: Apache-2.0
// What `gdrx topo` prints, for a host in words: exact where people compare, whole where they do
// not.
#include <nlohmann/json.hpp>

#include "tests/topo/builder.hpp"
#include "tools/place/hosts_view.hpp"
#include "tools/topo/topo_view.hpp"
#include "topo/read/xml.hpp"

namespace gdrx::tools {
namespace {

topo::Topology words(const char* text) {
  auto cluster = topo::parse_cluster(text);
  EXPECT_TRUE(cluster) << cluster.error().what;
  return cluster ? cluster->host : topo::Topology();
}

topo::Topology two_by_two() { return words("2 H200, one 400 Gb/s NIC a GPU"); }

TEST(MatrixText, IsNvidiaSmisTable) {
  const std::string text = matrix_text(two_by_two(), {});
  EXPECT_EQ(text.substr(0, text.find("\nWhere")),
            "      GPU0  GPU1  NIC0  NIC1  CPU Affinity  NUMA Affinity\n"
            "GPU0   X    NV18  PIX   SYS   N/A           0\n"
            "GPU1  NV18   X    SYS   PIX   N/A           1\n"
            "NIC0  PIX   SYS    X    SYS\n"
            "NIC1  SYS   PIX   SYS    X\n"
            "\nLegend:\n\n"
            "  X    = Self\n"
            "  SYS  = Traverses PCIe and the link between NUMA nodes (UPI, Infinity Fabric)\n"
            "  PIX  = Traverses at most a single PCIe bridge\n"
            "  NV#  = Traverses a bonded set of # NVLinks\n"
            "\nNIC Legend:\n\n"
            "  NIC0: mlx5_0\n"
            "  NIC1: mlx5_1\n"
            "\nNotes:\n"
            "  - made from words: two sockets, and GPUs under one PCIe switch with their\n"
            "    NICs, are assumed\n"
            "  - H200: 18 NVLinks of each GPU to NVSwitches are assumed\n");
}

TEST(MatrixText, HidesNvlinkWhenAskedTo) {
  TextStyle style;
  style.pci_only = true;
  EXPECT_EQ(matrix_text(two_by_two(), style).find("NV18"), std::string::npos);
}

// Trap 14: thirty NICs glue no header together, and a narrow terminal folds the table.
TEST(MatrixText, WideTablesFoldAndNeverGlue) {
  const topo::Topology topology = words("16 H200, 30 NICs");
  TextStyle style;
  style.columns = 80;
  const std::string text = matrix_text(topology, style);
  const std::string table = text.substr(0, text.find("\nLegend"));
  std::istringstream lines(table);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;
  EXPECT_EQ(matrix_text(topology, {}).find("NIC28NIC29"), std::string::npos);
  EXPECT_EQ(text.find('\033'), std::string::npos);
}

TEST(MatrixText, SaysWhereNcclDiffersAndWhy) {
  const std::string text = matrix_text(words("8 H200, one NIC a GPU"), {});
  EXPECT_NE(text.find("NODE -> PHB: NCCL's CPU is a NUMA node: it has no NODE\n"
                      "    GPU0-NIC1 and 35 pairs more"),
            std::string::npos)
      << text;
}

TEST(MapText, GivesAReasonAndAQualityForEach) {
  const std::string text = map_text(two_by_two(), {});
  EXPECT_EQ(text,
            "GPU    NIC          class slowest    why\n"
            "GPU0   mlx5_0       PIX   50.0 GB/s  the nearest\n"
            "                                     GDR: best: stays inside one PCIe switch\n"
            "GPU1   mlx5_1       PIX   50.0 GB/s  the nearest\n"
            "                                     GDR: best: stays inside one PCIe switch\n");
}

TEST(MapText, FitsEightyColumns) {
  for (const char* text : {"8 H200, 2 NICs", "2 H200, 8 NICs", "8 H200"}) {
    const topo::Topology topology = words(text);
    const std::string matrix = matrix_text(topology, {});
    std::istringstream lines(map_text(topology, {}) + matrix.substr(matrix.find("Legend")));
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;
  }
}

TEST(ExplainText, NamesTheSlowestLink) {
  const topo::Topology topology = two_by_two();
  const std::string text = explain_text(topology, *topology.find("GPU0"), *topology.find("mlx5_1"));
  EXPECT_NE(text.find("nvidia-smi SYS, NCCL SYS"), std::string::npos) << text;
  EXPECT_NE(text.find("slowest known link: 50.0 GB/s (mlx5_1's port)"), std::string::npos) << text;
}

TEST(Json, IsJsonWithEveryPairOnce) {
  const auto json = nlohmann::json::parse(topo_json(two_by_two()));
  EXPECT_EQ(json["schema"], 1);
  EXPECT_EQ(json["paths"].size(), 6u);
  EXPECT_EQ(json["map"][1]["nics"][0]["nic"], "mlx5_1");
}

TEST(Json, SurvivesNamesThatAreNoText) {
  topo::Parts parts;
  parts.nics.push_back({"ml\xff", topo::kNone, topo::kNone, 0, 0, {}, false});
  const auto topology = topo::Topology::make(parts);
  EXPECT_TRUE(nlohmann::json::accept(topo_json(*topology)));
}

TEST(Pictures, AreWellFormedAndSelfContained) {
  for (const char* text : {"8 H200, 2 NICs a GPU", "1 L40S", "4 A100, 2 200 Gb/s NICs"}) {
    const topo::Topology topology = words(text);
    const auto svg = topo::parse_xml(topo_svg(topology), "svg");
    EXPECT_TRUE(svg) << svg.error().what;
    const std::string html = topo_html(topology);
    for (const char* foreign : {"<script", "src=", "href=", "@import", "url("}) {
      EXPECT_EQ(html.find(foreign), std::string::npos) << foreign;
    }
  }
}

TEST(Pictures, EscapeWhatFilesCallThings) {
  topo::Parts parts;
  parts.source = "<script>alert(1)</script>";
  parts.nics.push_back({"<b>\"&", topo::kNone, topo::kNone, 0, 0, {}, false});
  const auto topology = topo::Topology::make(parts);
  EXPECT_EQ(topo_html(*topology).find("<script"), std::string::npos);
  EXPECT_TRUE(topo::parse_xml(topo_svg(*topology), "svg"));
}

TEST(NcclXmlOut, ComesBackWithTheSameClasses) {
  for (const char* text : {"8 H200, 2 NICs a GPU", "4 A100, 2 200 Gb/s NICs", "8 H100"}) {
    const topo::Topology one = words(text);
    const auto two = topo::parse(nccl_xml(one), "written");
    ASSERT_TRUE(two) << two.error().what;
    ASSERT_EQ(one.devices(), two->devices());
    for (std::size_t a = 0; a < one.devices(); ++a) {
      for (std::size_t b = 0; b < one.devices(); ++b) {
        const auto was = path(one, topo::DeviceId(a), topo::DeviceId(b));
        const auto is = path(*two, topo::DeviceId(a), topo::DeviceId(b));
        if (was.nvlinks == 0) {
          EXPECT_EQ(was.nccl, is.nccl);
        }
      }
    }
  }
}

TEST(Settings, NameTheNicsForNcclAndUcx) {
  const std::string text = env_lines(two_by_two());
  EXPECT_NE(text.find("export NCCL_IB_HCA==mlx5_0,mlx5_1\n"), std::string::npos) << text;
  EXPECT_NE(text.find("  1) export UCX_NET_DEVICES=mlx5_1:1 ;;\n"), std::string::npos) << text;
}

TEST(Settings, NameThePortThatCounts) {
  topo::Parts parts = two_by_two().parts();
  for (topo::Nic& nic : parts.nics) nic.port = 2;
  const auto topology = topo::Topology::make(parts);
  ASSERT_TRUE(topology);
  EXPECT_NE(env_lines(*topology).find("export NCCL_IB_HCA==mlx5_0:2,mlx5_1:2\n"), std::string::npos)
      << env_lines(*topology);
}

// These lines are for a shell, and the names are from a file that may be anybody's.
TEST(Settings, TakeNoNameThatIsMoreThanAWord) {
  for (const char* name : {"mlx5_0;id", "mlx5_0 mlx5_1", "$(id)", "`id`", "a\nb", "a'b"}) {
    topo::Parts parts;
    for (const char* bus : {"0000:01:00.0", "0000:02:00.0"}) {
      topo::PciNode node;
      node.bus = topo::parse_bus_id(bus);
      node.name = bus;
      parts.nodes.push_back(node);
    }
    parts.gpus.push_back({{}, 0, {}, 0, 0, 0});
    parts.nics.push_back({name, 1, topo::kNone, 1, 0, {}, false});
    const auto topology = topo::Topology::make(parts);
    ASSERT_TRUE(topology);
    EXPECT_EQ(env_lines(*topology), "# a NIC's name is no plain word: nothing to set\n") << name;
  }
}

// Of the rings within noise the one of fewer steps down is taken, and may be slower by a little.
TEST(HostsText, LosesNothingWhereTheListIsFasterWithinNoise) {
  topo::HostMatrix matrix{{"a", "b", "c", "d"}, std::vector<std::optional<double>>(16, 100)};
  for (const std::size_t at : {2u, 8u}) matrix.gigabits[at] = 150;
  for (const std::size_t at : {7u, 13u}) matrix.gigabits[at] = 97;
  const auto hosts = measured_hosts(matrix, 0, "f");
  ASSERT_TRUE(hosts);
  EXPECT_NE(hosts->ring.order, (std::vector<std::size_t>{0, 1, 2, 3}));
  const std::string text = hosts_text(*hosts, "f");
  EXPECT_NE(text.find("; 0 % less"), std::string::npos) << text;
}

TEST(Hostfile, HasNoHostWithoutRanksAndNoInventedName) {
  topo::Placement placement;
  placement.ranks.resize(1);
  placement.host_names = {"a", "b"};
  EXPECT_EQ(place_hostfile(placement).value_or("none"), "a slots=1\n");
  placement.host_names = {"a", "a:2"};
  EXPECT_NE(place_hostfile(placement).error().what.find("a:2 is no host's name"),
            std::string::npos);
}

TEST(CompareText, TellsWhatChanges) {
  const topo::Topology before = two_by_two();
  const auto after = what_if(before, "move mlx5_0 beside GPU1");
  ASSERT_TRUE(after);
  const std::string text = compare_text(before, *after);
  EXPECT_NE(text.find("GPU0\n  now:     mlx5_0 PIX"), std::string::npos) << text;
  EXPECT_EQ(compare_text(before, before), "the map stays as it is\n");
}

}  // namespace
}  // namespace gdrx::tools

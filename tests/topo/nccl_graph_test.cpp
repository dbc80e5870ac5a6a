// SPDX-License-Identifier: Apache-2.0
// NCCL's graphs: what gdrx writes, what NCCL would refuse in it, what its search is expected to
// find.
#include "topo/model/nccl_graph.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/topo/builder.hpp"
#include "topo/model/nccl_speed.hpp"

namespace gdrx::topo {
namespace {

Topology words(const std::string& text) {
  auto cluster = parse_cluster(text);
  EXPECT_TRUE(cluster) << cluster.error().what;
  return cluster->host;
}

NcclGraph ring_of(const Topology& topology, bool alone) {
  auto graphs = our_nccl_graphs(topology, alone);
  EXPECT_TRUE(graphs) << graphs.error().what;
  return graphs->front();
}

const std::vector<std::string> kHosts{"8 H200, one 400 Gb/s NIC a GPU",
                                      "8 H100, 4 400 Gb/s NICs",
                                      "4 A100, 2 200 Gb/s NICs",
                                      "8 A100",
                                      "1 H100, one 400 Gb/s NIC",
                                      "2 L40S, one 100 Gb/s NIC",
                                      "3 L40S",
                                      "8 Z9, 3 NICs",
                                      "64 H200, 8 NICs a GPU",
                                      "2 H100, 2 NICs a GPU"};

TEST(NcclGraph, ComesBackAndIsWhatNcclTakes) {
  for (const std::string& text : kHosts) {
    const Topology topology = words(text);
    for (const bool alone : {false, true}) {
      const auto graphs = our_nccl_graphs(topology, alone);
      ASSERT_TRUE(graphs) << text;
      const auto again = parse_nccl_graphs(nccl_graph_xml(topology, *graphs), "f", topology);
      ASSERT_TRUE(again) << text << ": " << again.error().what;
      ASSERT_EQ(again->size(), 2u);
      for (std::size_t i = 0; i < 2; ++i) {
        EXPECT_EQ((*again)[i].channels, (*graphs)[i].channels) << text;
        EXPECT_EQ((*again)[i].type_inter, (*graphs)[i].type_inter) << text;
        EXPECT_NEAR((*again)[i].intra, (*graphs)[i].intra, 1e-3) << text;
      }
      EXPECT_EQ(graphs->front().channels.size(), graphs->back().channels.size());
    }
  }
}

TEST(NcclGraph, HasEachNicOfTheMapAsOftenAsTheOthers) {
  const Topology topology = words("8 H200, one 400 Gb/s NIC a GPU");
  std::vector<int> used(8, 0);
  for (const NcclChannel& channel : ring_of(topology, false).channels) {
    ++used[channel.in];
    EXPECT_EQ(channel.gpus.front(), channel.in);  // each GPU has the NIC of its number
  }
  EXPECT_EQ(std::count(used.begin(), used.end(), used[0]), 8);
}

TEST(NcclGraph, BeginsAndEndsNearTheNic) {
  const Topology topology = words("8 H100, 4 400 Gb/s NICs");  // two GPUs a NIC
  for (const NcclChannel& channel : ring_of(topology, false).channels) {
    EXPECT_EQ(channel.gpus.front() / 2, channel.in);
    EXPECT_EQ(channel.gpus.back() / 2, channel.in);
  }
  EXPECT_EQ(ring_of(topology, false).type_inter, "PIX");
}

TEST(NcclGraph, OfOneHostHasNoNics) {
  for (const NcclChannel& channel : ring_of(words("8 H200, one NIC a GPU"), true).channels) {
    EXPECT_EQ(channel.in, kNone);
    EXPECT_EQ(channel.out, kNone);
  }
}

// Two GPUs with a NIC each, whose names run against their bus ids, and a NIC that no GPU is near.
test::HostBuilder crossed_names() {
  test::HostBuilder host;
  for (const char* name : {"mlx5_1", "mlx5_0"}) {
    const std::size_t ports = host.switch_below(host.root(0));
    host.gpu_on(ports);
    host.nic_on(ports, name);
  }
  host.nic(host.bridge(host.root(1)), "mlx5_2");
  return host;
}

TEST(NcclNets, AreThoseOfTheMapByBusIdThenPort) {
  test::HostBuilder host = crossed_names();
  const auto names = [&] {
    const Topology topology = host.build();
    std::vector<std::string> all;
    for (const std::size_t nic : nccl_nets(topology)) all.push_back(topology.nics()[nic].name);
    return all;
  };
  EXPECT_EQ(names(), (std::vector<std::string>{"mlx5_1", "mlx5_0"}));
  host.parts.nics[2] = host.parts.nics[0];  // the card's other port is a device of its own
  host.parts.nics[2].name = "mlx5_3";
  host.parts.nics[0].port = 2;
  EXPECT_EQ(names(), (std::vector<std::string>{"mlx5_3", "mlx5_1", "mlx5_0"}));
  host.parts.nics[2].active = host.parts.nics[1].active = true;
  host.parts.nics[0].active = false;
  EXPECT_EQ(names(), (std::vector<std::string>{"mlx5_3", "mlx5_0"}));
}

TEST(NcclNets, AreTheNumbersOfTheFile) {
  const Topology topology = crossed_names().build();
  const std::string text = nccl_graph_xml(topology, *our_nccl_graphs(topology, false));
  const auto again = parse_nccl_graphs(text, "f", topology);
  ASSERT_TRUE(again) << again.error().what;
  const NcclChannel& first = again->front().channels.front();
  EXPECT_EQ(topology.nics()[first.in].name, "mlx5_1") << text;
  EXPECT_NE(text.find("<net dev=\"0\"/>\n      <gpu dev=\"0\"/>"), std::string::npos) << text;
}

TEST(MaySpanHostsByNvlink, IsSoForGraceWithNvswitches) {
  test::HostBuilder host = crossed_names();
  host.parts.nvlink_known = true;
  EXPECT_FALSE(may_span_hosts_by_nvlink(host.build()));
  host.parts.gpus[0].c2c_links = 10;
  EXPECT_FALSE(may_span_hosts_by_nvlink(host.build()));
  host.parts.nvlinks.push_back({host.parts.gpus[0].node, kNone, 18, 50});
  EXPECT_TRUE(may_span_hosts_by_nvlink(host.build()));
  host.parts.gpus[0].c2c_links = 0;  // eight GPUs of an HGX board
  EXPECT_FALSE(may_span_hosts_by_nvlink(host.build()));
  EXPECT_TRUE(may_span_hosts_by_nvlink(words("4 GB200, one 400 Gb/s NIC a GPU")));
  EXPECT_FALSE(may_span_hosts_by_nvlink(words("8 B200, one 400 Gb/s NIC a GPU")));
}

// As logs of NCCL 2.19 and later show rings within a host: 12 x 20 of eight A100, 12 x 30 of eight
// H100.
TEST(ExpectedRing, IsWhatLogsOfNcclShow) {
  const auto of = [](const char* text) {
    const auto expected = expected_nccl_ring(words(text), true);
    EXPECT_TRUE(expected);
    return std::pair(expected->ring.channels.size(), expected->ring.intra);
  };
  EXPECT_EQ(of("8 A100"), std::pair(std::size_t{12}, 20.0));
  EXPECT_EQ(of("2 A100"), std::pair(std::size_t{12}, 20.0));
  EXPECT_EQ(of("8 H100"), std::pair(std::size_t{12}, 30.0));
  const auto expected = expected_nccl_ring(words("8 H100"), true);
  EXPECT_EQ(expected->ring.channels[5].gpus, (std::vector<std::size_t>{0, 1, 2, 3, 4, 5, 6, 7}));
}

TEST(ExpectedRing, OfNicsThatTwoGpusShareGoesBackToTheirNic) {
  const auto expected = expected_nccl_ring(words("8 A100, 4 200 Gb/s NICs"), false);
  ASSERT_TRUE(expected);
  for (const NcclChannel& channel : expected->ring.channels) {
    EXPECT_EQ(channel.gpus.front() / 2, channel.in);
    EXPECT_EQ(channel.gpus.back() / 2, channel.in);
  }
}

TEST(ExpectedRing, HasAllNicsThatAGpuDivides) {
  const auto expected = expected_nccl_ring(words("2 H100, 2 400 Gb/s NICs a GPU"), false);
  ASSERT_TRUE(expected);
  std::vector<std::size_t> nics;
  for (const NcclChannel& channel : expected->ring.channels) nics.push_back(channel.in);
  std::sort(nics.begin(), nics.end());
  nics.erase(std::unique(nics.begin(), nics.end()), nics.end());
  EXPECT_EQ(nics.size(), 4u);
}

TEST(ExpectedRing, SaysWhatItDoesNotModel) {
  const auto expected = expected_nccl_ring(words("4 L40S, one 100 Gb/s NIC"), false);
  ASSERT_TRUE(expected);
  EXPECT_FALSE(expected->notes.empty());
  for (const std::string& text : kHosts) {
    for (const bool alone : {false, true}) {
      const auto of = expected_nccl_ring(words(text), alone);
      ASSERT_TRUE(of) << text;
      EXPECT_LE(of->ring.channels.size(), 32u) << text;
    }
  }
}

TEST(ChannelSpeed, TakesAsManyForEachNicWhereTheyFit) {
  const ChannelSpeed even = channel_speed(90, {48, 48, 48}, 370, true);
  EXPECT_EQ(even.channels % 3, 0u);
  EXPECT_EQ(channel_speed(90, std::vector<double>(512, 12), 370, true).channels, 30u);
  EXPECT_EQ(channel_speed(80, {0.01}, 100, false).channels, 1u);
}

std::string graph_of(const std::string& inside, const std::string& attributes = {}) {
  const std::string own =
      attributes.empty() ? R"(id="0" pattern="4" crossnic="0" nchannels="1" speedintra="20" )"
                           R"(speedinter="20" typeintra="NVL" typeinter="PIX" samechannels="1")"
                         : attributes;
  return "<graphs version=\"1\"><graph " + own + ">" + inside + "</graph></graphs>";
}

constexpr const char* kTwo =
    R"(<channel><net dev="0"/><gpu dev="0" rank="7"/><gpu dev="0x1"/><net dev="0"/></channel>)";

TEST(NcclGraphFile, OfADumpIsTaken) {
  const Topology topology = words("2 H100, one 400 Gb/s NIC");
  const auto graphs = parse_nccl_graphs(graph_of(kTwo), "f", topology);
  ASSERT_TRUE(graphs) << graphs.error().what;
  EXPECT_EQ(graphs->front().channels.front().gpus, (std::vector<std::size_t>{0, 1}));
  const std::string heads =
      R"(id="3" pattern="5" crossnic="0" nchannels="1" speedintra="20" speedinter="20" )"
      R"(typeintra="NVL" typeinter="PIX" samechannels="0")";
  EXPECT_TRUE(
      parse_nccl_graphs(graph_of(R"(<channel><gpu dev="1"/></channel>)", heads), "f", topology));
}

TEST(NcclGraphFile, OfADumpMayCrossNicsAndHaveDecimalNumbers) {
  const Topology topology = words("16 H100, one 400 Gb/s NIC a GPU");
  std::string gpus;
  for (int i = 0; i < 16; ++i) gpus += fmt::format(R"(<gpu dev="{}" rank="{}"/>)", i, i);
  for (const int cross : {0, 2}) {
    const std::string attributes = fmt::format(
        R"(id="0" pattern="4" crossnic="{}" nchannels="1" speedintra="20" speedinter="20" )"
        R"(latencyinter="0" typeintra="NVL" typeinter="PIX" samechannels="0")",
        cross);
    const auto graphs = parse_nccl_graphs(
        graph_of(R"(<channel><net dev="0"/>)" + gpus + R"(<net dev="15"/></channel>)", attributes),
        "f", topology);
    ASSERT_TRUE(graphs) << graphs.error().what;
    EXPECT_EQ(graphs->front().channels.front().gpus[15], 15u);
    EXPECT_NE(graphs->front().channels.front().in, graphs->front().channels.front().out);
    EXPECT_EQ(graphs->front().cross_nic, cross);
  }
}

TEST(NcclGraphFile, ThatNcclWouldNotTakeIsOneLineOfError) {
  const Topology topology = words("2 H100, one 400 Gb/s NIC");
  const auto replaced = [&](const std::string& what, const std::string& by) {
    std::string text = graph_of(kTwo);
    text.replace(text.find(what), what.size(), by);
    return text;
  };
  for (const auto& [bad, why] : std::vector<std::pair<std::string, std::string>>{
           {"", "f: the file is empty"},
           {"x", "f: line 1: "},
           {"<system/>", "no file of NCCL"},
           {"<graphs version=\"1\"/>", "no graph"},
           {"<graphs version=\"2\"/>", "version is not 1"},
           {graph_of(""), "nchannels is 1, and 0"},
           {graph_of(std::string(kTwo) + kTwo), "nchannels is 1, and 2"},
           {replaced("NVL", "FAR"), "typeintra is none"},
           {replaced("\"20\"", "\"nan\""), "speedintra is no speed"},
           {replaced("\"20\"", "\"-1\""), "speedintra is no speed"},
           {replaced("\"20\"", "\"0\""), "channels without speed"},
           {replaced("\"20\"", "\"1e99\""), "speedintra is no speed"},
           {replaced("id=\"0\"", "id=\"9\""), "id is not 0 to 5"},
           {replaced("pattern=\"4\"", "pattern=\"x\""), "pattern is not 1 to 6"},
           {replaced("0x1", "2"), "this gpu is not here: 2 are"},
           {replaced("0x1", "0"), "in the channel twice"},
           {replaced("0x1", "-1"), "this gpu is not here"},
           {replaced("0x1", ""), "this gpu is not here"},
           {replaced("0x1", "99999999999999999999"), "this gpu is not here"},
           {replaced("<gpu dev=\"0x1\"/>", ""), "1 of 2 gpus"},
           {replaced("<net dev=\"0\"/>", ""), "a net at one end"},
           {replaced("<net dev=\"0\"/>", "<net dev=\"1\"/>"), "this net is not here: 1 are"},
           {replaced("crossnic=\"0\"", "crossnic=\"3\""), "crossnic is not 0 to 2"},
           {replaced("<gpu dev=\"0x1\"/>", "<net dev=\"0\"/><gpu dev=\"1\"/>"),
            "a net between gpus"},
           {replaced("<gpu dev=\"0x1\"/>", "<nic/>"), "a net or a gpu is expected"},
           {graph_of(R"(<chanel><gpu dev="0"/></chanel>)"), "a channel is expected"},
       }) {
    const auto graphs = parse_nccl_graphs(bad, "f", topology);
    ASSERT_FALSE(graphs) << bad;
    EXPECT_EQ(graphs.error().what.find('\n'), std::string::npos);
    EXPECT_NE(graphs.error().what.find(why), std::string::npos) << bad << graphs.error().what;
  }
  std::string twice = graph_of(kTwo);
  const std::string one =
      twice.substr(twice.find("<graph "), twice.find("</graphs>") - twice.find("<graph "));
  twice.insert(twice.find("</graphs>"), one);
  EXPECT_FALSE(parse_nccl_graphs(twice, "f", topology));
}

TEST(NcclGraphFile, WritesNumbersThatEachReleaseReadsAlike) {
  const Topology topology = words("16 H100");
  const std::string text = nccl_graph_xml(topology, *our_nccl_graphs(topology, true));
  EXPECT_NE(text.find("dev=\"9\""), std::string::npos);
  EXPECT_NE(text.find("dev=\"0xa\""), std::string::npos);
  EXPECT_EQ(text.find("dev=\"10\""), std::string::npos);
}

}  // namespace
}  // namespace gdrx::topo

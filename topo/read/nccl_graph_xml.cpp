// SPDX-License-Identifier: Apache-2.0
// NCCL's graph XML: NCCL_GRAPH_FILE and NCCL_GRAPH_DUMP_FILE.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

#include "topo/model/nccl_graph.hpp"
#include "topo/model/nccl_speed.hpp"
#include "topo/read/field_text.hpp"
#include "topo/read/xml.hpp"

namespace gdrx::topo {
namespace {

constexpr int kMostId = 5;
constexpr int kNvls = 3;  // its channels list their first GPU alone
constexpr int kMostPattern = 6;
constexpr std::size_t kMostInFile = 64;
constexpr double kMostSpeed = 5000;

// Releases differ: they read a plain number as decimal or as hexadecimal. 0xa is ten for all.
std::string dev_text(std::size_t dev) {
  return dev < 10 ? std::to_string(dev) : fmt::format("{:#x}", dev);
}

std::string channel_text(const NcclChannel& channel, const std::vector<std::size_t>& nets) {
  const auto net = [&](std::size_t nic) {
    const auto found = std::find(nets.begin(), nets.end(), nic);
    return nic == kNone ? std::string()
                        : fmt::format("      <net dev=\"{}\"/>\n",
                                      dev_text(static_cast<std::size_t>(found - nets.begin())));
  };
  std::string text = "    <channel>\n" + net(channel.in);
  for (const std::size_t gpu : channel.gpus) {
    text += fmt::format("      <gpu dev=\"{}\"/>\n", dev_text(gpu));
  }
  return text + net(channel.out) + "    </channel>\n";
}

class GraphReader {
 public:
  GraphReader(const XmlDocument& document, const std::string& source, const Topology& topology)
      : document_(document), source_(source), topology_(topology), nets_(nccl_nets(topology)) {}

  Result<std::vector<NcclGraph>> read() {
    const XmlElement& root = document_.root();
    if (root.name != "graphs") return wrong(root, "this is no file of NCCL's graphs");
    if (root["version"] != "1") return wrong(root, "version is not 1");
    std::vector<NcclGraph> graphs;
    for (const std::size_t child : root.children) {
      const XmlElement& element = document_.elements[child];
      if (element.name != "graph") return wrong(element, "a graph is expected here");
      graphs.push_back(GDRX_TRY(graph(element)));
      if (!ids_.insert(graphs.back().id).second) return wrong(element, "its id is there twice");
    }
    if (graphs.empty()) return wrong(root, "no graph");
    return graphs;
  }

 private:
  tl::unexpected<Error> wrong(const XmlElement& at, const std::string& why) const {
    return fail(Errc::invalid_argument, fmt::format("{}: line {}: {}", source_, at.line, why));
  }

  Result<int> number(const XmlElement& at, std::string_view name, int least, int most) const {
    const int value = to_int(at[name], least - 1);
    if (value >= least && value <= most) return value;
    return wrong(at, fmt::format("{} is not {} to {}", name, least, most));
  }

  Result<double> speed(const XmlElement& at, std::string_view name) const {
    const std::string_view text = at[name];
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool whole = error == std::errc() && end == text.data() + text.size();
    if (whole && std::isfinite(value) && value >= 0 && value <= kMostSpeed) return value;
    return wrong(at, fmt::format("{} is no speed", name));
  }

  Result<std::string> type(const XmlElement& at, std::string_view name) const {
    std::string word(at[name]);
    if (type_place(word) < kNcclTypes.size()) return word;
    return wrong(at, fmt::format("{} is none of NCCL's path types", name));
  }

  Result<NcclGraph> graph(const XmlElement& at) {
    NcclGraph graph;
    graph.id = GDRX_TRY(number(at, "id", 0, kMostId));
    graph.pattern = GDRX_TRY(number(at, "pattern", 1, kMostPattern));
    graph.cross_nic = GDRX_TRY(number(at, "crossnic", 0, 2));
    const int channels = GDRX_TRY(number(at, "nchannels", 0, static_cast<int>(kMostInFile)));
    graph.intra = GDRX_TRY(speed(at, "speedintra"));
    graph.inter = GDRX_TRY(speed(at, "speedinter"));
    graph.type_intra = GDRX_TRY(type(at, "typeintra"));
    graph.type_inter = GDRX_TRY(type(at, "typeinter"));
    GDRX_TRY(number(at, "samechannels", 0, 1));
    if (at.children.size() != static_cast<std::size_t>(channels)) {
      return wrong(at,
                   fmt::format("nchannels is {}, and {} are there", channels, at.children.size()));
    }
    if (channels > 0 && graph.intra <= 0) return wrong(at, "channels without speed");
    for (const std::size_t child : at.children) {
      const XmlElement& element = document_.elements[child];
      if (element.name != "channel") return wrong(element, "a channel is expected here");
      graph.channels.push_back(GDRX_TRY(channel(element, graph.id)));
    }
    return graph;
  }

  // As it is dumped: newer releases write 0x before what is hexadecimal, older ones write decimal.
  Result<std::size_t> dev(const XmlElement& at, std::size_t count) const {
    std::string_view text = at["dev"];
    const int base = text.starts_with("0x") ? 16 : 10;
    if (base == 16) text.remove_prefix(2);
    std::size_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
    if (error == std::errc() && end == text.data() + text.size() && value < count) return value;
    const char* which = at.name == "net" ? " of NCCL_IB_HCA by --format env" : "";
    return wrong(at, fmt::format("this {} is not here: {} are{}", at.name, count, which));
  }

  Result<NcclChannel> channel(const XmlElement& at, int id) const {
    NcclChannel channel;
    std::set<std::size_t> seen;
    for (std::size_t i = 0; i < at.children.size(); ++i) {
      const XmlElement& element = document_.elements[at.children[i]];
      if (element.name == "gpu") {
        const std::size_t gpu = GDRX_TRY(dev(element, topology_.gpus().size()));
        if (!seen.insert(gpu).second) return wrong(element, "this gpu is in the channel twice");
        channel.gpus.push_back(gpu);
        continue;
      }
      if (element.name != "net") return wrong(element, "a net or a gpu is expected here");
      if (i != 0 && i + 1 != at.children.size()) return wrong(element, "a net between gpus");
      const std::size_t nic = nets_[GDRX_TRY(dev(element, nets_.size()))];
      (i == 0 ? channel.in : channel.out) = nic;
    }
    const std::size_t wanted = id == kNvls ? 1 : topology_.gpus().size();
    if (channel.gpus.size() != wanted) {
      return wrong(at,
                   fmt::format("{} of {} gpus are in the channel", channel.gpus.size(), wanted));
    }
    if ((channel.in == kNone) != (channel.out == kNone)) return wrong(at, "a net at one end alone");
    return channel;
  }

  const XmlDocument& document_;
  const std::string& source_;
  const Topology& topology_;
  std::vector<std::size_t> nets_;
  std::set<int> ids_;
};

}  // namespace

std::string nccl_graph_xml(const Topology& topology, const std::vector<NcclGraph>& graphs) {
  const std::vector<std::size_t> nets = nccl_nets(topology);
  std::string text = "<graphs version=\"1\">\n";
  for (const NcclGraph& graph : graphs) {
    const bool same = std::all_of(
        graph.channels.begin(), graph.channels.end(),
        [&](const NcclChannel& other) { return other.gpus == graph.channels.front().gpus; });
    text += fmt::format(
        "  <graph id=\"{}\" pattern=\"{}\" crossnic=\"{}\" nchannels=\"{}\" speedintra=\"{:g}\" "
        "speedinter=\"{:g}\" latencyinter=\"0\" typeintra=\"{}\" typeinter=\"{}\" "
        "samechannels=\"{}\">\n",
        graph.id, graph.pattern, graph.cross_nic, graph.channels.size(), graph.intra, graph.inter,
        graph.type_intra, graph.type_inter, int{same});
    for (const NcclChannel& channel : graph.channels) text += channel_text(channel, nets);
    text += "  </graph>\n";
  }
  return text + "</graphs>\n";
}

Result<std::vector<NcclGraph>> parse_nccl_graphs(std::string_view text, const std::string& source,
                                                 const Topology& topology) {
  const XmlDocument document = GDRX_TRY(parse_xml(text, source));
  return GraphReader(document, source, topology).read();
}

}  // namespace gdrx::topo

// SPDX-License-Identifier: Apache-2.0
// Everything that is known, for programs. Keys are only ever added.
#include <nlohmann/json.hpp>

#include "tools/topo/topo_view.hpp"

namespace gdrx::tools {
namespace {

using nlohmann::ordered_json;
using topo::DeviceId;
using topo::Topology;

ordered_json number(const std::optional<double>& value) {
  return value ? ordered_json(*value) : ordered_json();
}

ordered_json bus_of(const Topology& topology, std::size_t node) {
  return node == topo::kNone ? ordered_json() : ordered_json(topology.nodes()[node].name);
}

ordered_json node_json(const Topology& topology, const topo::PciNode& node) {
  constexpr const char* kKinds[] = {"root", "bridge", "switch", "device"};
  ordered_json json{{"name", node.name},
                    {"kind", kKinds[static_cast<std::size_t>(node.kind)]},
                    {"parent", bus_of(topology, node.parent)},
                    {"class", node.class_code},
                    {"vendor", node.vendor},
                    {"device", node.device},
                    {"gbytes_per_s", number(gbytes(node.link))},
                    {"numa", node.numa < 0 ? ordered_json() : ordered_json(node.numa)}};
  if (node.physical_function) json["physical_function"] = to_string(*node.physical_function);
  return json;
}

ordered_json path_json(const Topology& topology, DeviceId a, DeviceId b) {
  const topo::Path way = path(topology, a, b);
  ordered_json json{
      {"a", topology.name(a)},       {"b", topology.name(b)},
      {"smi", cell(way, false)},     {"pci", cell(way, true)},
      {"near", to_string(way.near)}, {"nccl", to_string(way.nccl)},
      {"certain", way.certain},      {"nvlinks", way.nvlinks},
      {"bridges", way.bridges},      {"bottleneck_gbytes_per_s", number(way.bottleneck)},
      {"bottleneck", way.limit}};
  if (!way.nccl_reason.empty()) json["nccl_reason"] = way.nccl_reason;
  if (!way.remark.empty()) json["remark"] = way.remark;
  return json;
}

ordered_json map_json(const Topology& topology) {
  const topo::RailMap map = rail_map(topology);
  ordered_json json = ordered_json::array();
  for (std::size_t gpu = 0; gpu < map.of_gpu.size(); ++gpu) {
    ordered_json nics = ordered_json::array();
    for (const topo::RailChoice& choice : map.of_gpu[gpu]) {
      nics.push_back({{"nic", topology.nics()[choice.nic].name},
                      {"class", cell(choice.path, true)},
                      {"gbytes_per_s", number(choice.path.bottleneck)},
                      {"load", map.load[choice.nic]},
                      {"reason", choice.reason},
                      {"gdr", choice.quality}});
    }
    json.push_back({{"gpu", topology.gpus()[gpu].name}, {"nics", nics}});
  }
  return json;
}

}  // namespace

std::string topo_json(const Topology& topology) {
  ordered_json json{{"schema", 1},
                    {"source", topology.source()},
                    {"flattened", topology.flattened()},
                    {"hides_switches", topology.hides_switches()},
                    {"nvlink_known", topology.nvlink_known()},
                    {"notes", topology.notes()}};
  for (const topo::Gpu& gpu : topology.gpus()) {
    json["gpus"].push_back({{"name", gpu.name},
                            {"bus", bus_of(topology, gpu.node)},
                            {"model", gpu.model},
                            {"c2c_links", gpu.c2c_links},
                            {"numa", topology.numa_of(gpu.node)},
                            {"cpus", topology.cpus_near(gpu.node)}});
  }
  for (const topo::Nic& nic : topology.nics()) {
    json["nics"].push_back({{"name", nic.name},
                            {"bus", bus_of(topology, nic.node)},
                            {"data_direct", bus_of(topology, nic.dma_node)},
                            {"gbits_per_s", nic.gigabits},
                            {"link_layer", nic.link_layer},
                            {"virtual", nic.is_virtual},
                            {"active", nic.active ? ordered_json(*nic.active) : ordered_json()},
                            {"numa", topology.numa_of(nic.node)}});
  }
  for (const topo::NumaNode& numa : topology.numa()) {
    json["numa"].push_back({{"id", numa.id}, {"package", numa.package}, {"cpus", numa.cpus}});
  }
  for (const topo::PciNode& node : topology.nodes()) {
    json["pci"].push_back(node_json(topology, node));
  }
  json["paths"] = ordered_json::array();
  for (std::size_t a = 0; a < topology.devices(); ++a) {
    for (std::size_t b = a + 1; b < topology.devices(); ++b) {
      json["paths"].push_back(path_json(topology, DeviceId(a), DeviceId(b)));
    }
  }
  json["map"] = map_json(topology);
  json["ring"] = ring_order(topology);
  // Names come from files: what is no UTF-8 in them is replaced, not thrown about.
  return json.dump(1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace gdrx::tools

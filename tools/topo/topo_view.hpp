// SPDX-License-Identifier: Apache-2.0
// A Topology for people and for other programs: pure functions from a value to text.
#pragma once

#include <string>

#include "gdrx/topology.hpp"

namespace gdrx::tools {

struct TextStyle {
  bool pci_only = false;  // hide NVLink, as `nvidia-smi topo -mp`
  int columns = 0;        // fold wider tables; 0: never
  bool colour = false;
};

/// nvidia-smi's matrix, legend, where NCCL differs, notes.
std::string matrix_text(const topo::Topology& topology, const TextStyle& style);
std::string map_text(const topo::Topology& topology, const TextStyle& style);
std::string explain_text(const topo::Topology& topology, topo::DeviceId a, topo::DeviceId b);
/// The two maps' differences, GPU by GPU.
std::string compare_text(const topo::Topology& before, const topo::Topology& after);

std::string topo_json(const topo::Topology& topology);
std::string topo_dot(const topo::Topology& topology);
std::string topo_svg(const topo::Topology& topology);
/// One file with the picture, the matrix and the map; no script, nothing loaded from elsewhere.
std::string topo_html(const topo::Topology& topology);

/// A file for NCCL_TOPO_FILE.
std::string nccl_xml(const topo::Topology& topology);
/// NICs as a value of NCCL_IB_HCA: each with the port that counts, as two ports of a device that
/// are up are two of NCCL's.
std::string nccl_hca(const topo::Topology& topology, const std::vector<std::size_t>& nics);
/// Shell lines for NCCL and UCX.
std::string env_lines(const topo::Topology& topology);

/// Words in lines of `width`, all but the first after `indent` spaces. No newline at the end.
std::string wrapped(std::string_view text, std::size_t indent, std::size_t width = 80);
/// "15.8 GB/s" or "speed not known".
std::string rate_text(const std::optional<double>& gbytes);
/// The NIC's name in the matrix' header: "NIC3".
std::string nic_label(std::size_t nic);
/// For XML, HTML and SVG.
std::string escaped(std::string_view text);

}  // namespace gdrx::tools

// SPDX-License-Identifier: Apache-2.0
// The words of nvidia-smi and NCCL.
#include <fmt/format.h>

#include "gdrx/topology.hpp"

namespace gdrx::topo {

std::string_view to_string(PathClass path) {
  switch (path) {
    case PathClass::self:
      return "X";
    case PathClass::nvlink:
      return "NV";
    case PathClass::pix:
      return "PIX";
    case PathClass::pxb:
      return "PXB";
    case PathClass::phb:
      return "PHB";
    case PathClass::node:
      return "NODE";
    case PathClass::sys:
      return "SYS";
    case PathClass::unknown:
      return "UNK";
  }
  return "UNK";
}

std::string_view to_string(NcclClass path) {
  switch (path) {
    case NcclClass::loc:
      return "LOC";
    case NcclClass::nvl:
      return "NVL";
    case NcclClass::c2c:
      return "C2C";
    case NcclClass::pix:
      return "PIX";
    case NcclClass::pxb:
      return "PXB";
    case NcclClass::p2c:
      return "P2C";
    case NcclClass::phb:
      return "PHB";
    case NcclClass::sys:
      return "SYS";
    case NcclClass::unknown:
      return "UNK";
  }
  return "UNK";
}

std::string cell(const Path& path, bool pci_only) {
  const PathClass shown = pci_only ? path.pci : path.smi;
  if (shown == PathClass::nvlink) {
    return fmt::format("{}{}", path.xgmi ? "XGMI" : "NV", path.nvlinks);
  }
  return fmt::format("{}{}", to_string(shown), path.certain ? "" : "?");
}

}  // namespace gdrx::topo

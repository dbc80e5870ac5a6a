// SPDX-License-Identifier: Apache-2.0
// The running host, or a copy of its sysfs and procfs.
#include <fmt/format.h>

#include <algorithm>

#include "topo/read/hwloc.hpp"
#include "topo/read/links_text.hpp"
#include "topo/read/sysfs.hpp"

namespace gdrx::topo {

namespace {

// hwloc knows packages and CPUs best, but leaves out the memory of GPUs, and gives no distances.
std::vector<NumaNode> merged(const std::vector<NumaNode>& hwloc, std::vector<NumaNode> all) {
  for (const NumaNode& node : hwloc) {
    const auto same = std::find_if(all.begin(), all.end(),
                                   [&](const NumaNode& other) { return other.id == node.id; });
    if (same == all.end()) {
      all.push_back(node);
    } else {
      same->package = node.package;
      same->cpus = node.cpus;
    }
  }
  return all;
}

}  // namespace

Result<Topology> discover(const HostSource& source) {
  const HostFiles files = source.files ? HostFiles(source.files) : HostFiles(source.root);
  if (!files.exists("sys")) {
    return fail(Errc::invalid_argument, fmt::format("{}: no sys folder in it", source.root));
  }
  const bool live = !source.files && source.root == "/";
  Parts parts = sysfs_parts(files, !live);
  if (!live) {
    parts.source = source.root;
    add_links_text(parts, files.read(kLinksFile));
    if (!parts.nvlink_known && parts.gpus.size() > 1) {
      parts.notes.push_back("links between GPUs are not in these files: all pairs are by PCI");
    }
  }
  if (live) {
    parts.numa = sysfs_numa(files);
    const auto numa = hwloc_numa();
    if (numa) parts.numa = merged(*numa, std::move(parts.numa));
    if (source.nvml) add_nvml(parts);
  }
  return Topology::make(std::move(parts));
}

}  // namespace gdrx::topo

// SPDX-License-Identifier: Apache-2.0
// The running host, or a copy of its sysfs and procfs.
#include <fmt/format.h>

#include "topo/read/hwloc.hpp"
#include "topo/read/links_text.hpp"
#include "topo/read/sysfs.hpp"

namespace gdrx::topo {

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
  }
  if (live) {
    auto numa = hwloc_numa();
    parts.numa = numa ? *std::move(numa) : sysfs_numa(files);
    if (source.nvml) add_nvml(parts);
  }
  return Topology::make(std::move(parts));
}

}  // namespace gdrx::topo

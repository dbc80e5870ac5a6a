// SPDX-License-Identifier: Apache-2.0
// A host in one small file: what matters of sysfs, procfs, NVML, CUDA and verbs, as a tar archive
// (gzip), read back into memory and never unpacked. Every function may be called from any thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "gdrx/doctor.hpp"
#include "gdrx/result.hpp"
#include "gdrx/topology.hpp"

namespace gdrx::topo {

/// Immutable, shared.
struct Snapshot {
  std::string source;  // the name to show
  std::shared_ptr<const FileTree> files;
};

/// By its first bytes: gzip or tar.
bool is_snapshot(std::string_view bytes) noexcept;
/// Any tar of a host's sys/ and proc/, too. Errors are one line: damaged, cut off, empty, larger
/// than 64 MiB, or with names or entries that no snapshot has.
Result<Snapshot> parse_snapshot(std::string_view bytes, std::string source);

}  // namespace gdrx::topo

namespace gdrx::doctor {

struct CaptureOptions {
  /// Keep addresses, serial numbers, GUIDs and the whole kernel command line. Otherwise they are
  /// replaced, the same by the same, so that what is equal stays equal.
  bool keep_names = false;
};
/// The bytes of a snapshot of `host`. Host names, environment variables but NCCL's few, processes
/// and mounts are never in it. Errors: there is no sys/.
Result<std::string> capture(const Host& host, const CaptureOptions& options);

/// The host in a snapshot: its files, and the answers that were saved with them.
Host host_of(const topo::Snapshot& snapshot);

}  // namespace gdrx::doctor

// SPDX-License-Identifier: Apache-2.0
// gdrx snapshot.
#include <fmt/format.h>

#include <memory>

#include "gdrx/snapshot.hpp"
#include "tools/commands.hpp"
#include "tools/perf/nic_proof.hpp"
#include "tools/support.hpp"

namespace gdrx::tools {
namespace {

constexpr const char* kSnapshotExamples =
    "Examples:\n"
    "  gdrx snapshot host.tar.gz              this host, without anything that names it\n"
    "  sudo gdrx snapshot host.tar.gz         with what only root can read (ACS, ATS)\n"
    "  gdrx topo host.tar.gz --map            anywhere\n"
    "  gdrx doctor --snapshot host.tar.gz\n"
    "  tar tzvf host.tar.gz                   it is a tar archive of small text files: look at it\n"
    "Exit status: 0, 1 if the host cannot be read or the file not written, 2 for bad usage.\n";

struct SnapshotOptions {
  std::string file;
  std::string root = "/";
  bool keep_names = false;
};

void run(const SnapshotOptions& options) {
  doctor::Host host;
  host.root = options.root;
  if (options.root == "/") {
    host.probes.proofs = perf::prove_here;
  } else {
    host.probes = doctor::file_probes(host.root);
  }
  const std::string bytes = value_or_fail(doctor::capture(host, {options.keep_names}), kFailed);
  value_or_fail(write_output(options.file, bytes), kFailed);
  fmt::print("{}: {} bytes{}\n", options.file, bytes.size(),
             options.keep_names ? ", with addresses and serial numbers"
                                : "; addresses, GUIDs and serial numbers were replaced");
}

}  // namespace

void add_snapshot(CLI::App& app) {
  auto* command = app.add_subcommand("snapshot", "this host in one small file, for elsewhere");
  auto options = std::make_shared<SnapshotOptions>();
  command->add_option("FILE,-o,--output", options->file, "to write, as host.tar.gz")->required();
  command->add_option("--root", options->root,
                      "a folder with another host's sys/, proc/, dev/ and etc/");
  command->add_flag("--keep-names", options->keep_names,
                    "keep addresses, GUIDs, serial numbers and the kernel's whole command line");
  command->footer(kSnapshotExamples);
  command->callback([options] { run(*options); });
}

}  // namespace gdrx::tools

// SPDX-License-Identifier: Apache-2.0
// How things are installed and kept over a boot here.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/shell.hpp"

namespace gdrx::doctor {

enum class Family : std::uint8_t { debian, red_hat, suse, other };

struct Distribution {
  Family family = Family::other;
  std::string name;  // "Debian GNU/Linux 12 (bookworm)"
};
/// From the text of /etc/os-release.
Distribution parse_os_release(std::string_view text);

struct Package {
  Literal debian;
  Literal red_hat;
  Literal suse;
};
inline constexpr Package kVerbsPackage{"rdma-core libibverbs1 ibverbs-providers ibverbs-utils",
                                       "rdma-core libibverbs libibverbs-utils",
                                       "rdma-core libibverbs1 libibverbs-utils"};

ShellLine install_line(const Distribution& distribution, const Package& package);
/// Lines that put an argument on the kernel's command line, for good.
Lines kernel_argument_lines(const Distribution& distribution, std::string_view argument);
/// Loads a module now and at each boot.
Lines load_module_lines(std::string_view module);
/// Sets a sysctl now and at each boot.
Lines sysctl_lines(std::string_view name, std::string_view value);

}  // namespace gdrx::doctor

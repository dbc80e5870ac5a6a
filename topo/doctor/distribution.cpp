// SPDX-License-Identifier: Apache-2.0
#include "topo/doctor/distribution.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gdrx::doctor {
namespace {

// The value of NAME=value or NAME="value" in a line of os-release.
std::string value_of(std::string_view text, std::string_view name) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!line.starts_with(name) || line.substr(name.size(), 1) != "=") continue;
    line.remove_prefix(name.size() + 1);
    std::string value;
    for (const char c : line) {
      if (c != '"' && c != '\'' && static_cast<unsigned char>(c) >= 0x20) value += c;
    }
    return value;
  }
  return {};
}

}  // namespace

Distribution parse_os_release(std::string_view text) {
  Distribution distribution;
  distribution.name = value_of(text, "PRETTY_NAME");
  const std::string ids = " " + value_of(text, "ID") + " " + value_of(text, "ID_LIKE") + " ";
  const auto is = [&](std::string_view id) { return ids.find(id) != ids.npos; };
  if (is(" debian ") || is(" ubuntu ")) {
    distribution.family = Family::debian;
  } else if (is(" rhel ") || is(" fedora ") || is(" centos ") || is(" amzn ")) {
    distribution.family = Family::red_hat;
  } else if (is(" suse ") || is(" sles ") || is("opensuse")) {
    distribution.family = Family::suse;
  }
  return distribution;
}

std::string install_line(const Distribution& distribution, const Package& package) {
  switch (distribution.family) {
    case Family::debian:
      return fmt::format("apt-get install -y {}", package.debian);
    case Family::red_hat:
      return fmt::format("dnf install -y {}", package.red_hat);
    case Family::suse:
      return fmt::format("zypper install -y {}", package.suse);
    case Family::other:
      return fmt::format("# install with this system's package tool: {}", package.red_hat);
  }
  return {};
}

std::vector<std::string> kernel_argument_lines(const Distribution& distribution,
                                               std::string_view argument) {
  const std::string edit =
      fmt::format("sed -i 's/^GRUB_CMDLINE_LINUX=\"/&{} /' /etc/default/grub", argument);
  switch (distribution.family) {
    case Family::debian:
      return {edit, "update-grub", "# then reboot"};
    case Family::red_hat:
      return {fmt::format("grubby --update-kernel=ALL --args={}", argument), "# then reboot"};
    case Family::suse:
      return {edit, "grub2-mkconfig -o /boot/grub2/grub.cfg", "# then reboot"};
    case Family::other:
      return {fmt::format("# put {} on the kernel's command line, then reboot", argument)};
  }
  return {};
}

std::vector<std::string> load_module_lines(std::string_view module) {
  return {fmt::format("modprobe {}", module),
          fmt::format("echo {0} > /etc/modules-load.d/{0}.conf", module)};
}

std::vector<std::string> sysctl_lines(std::string_view name, std::string_view value) {
  return {fmt::format("sysctl -w {}={}", name, value),
          fmt::format("echo '{} = {}' >> /etc/sysctl.d/90-gdrx.conf", name, value)};
}

}  // namespace gdrx::doctor

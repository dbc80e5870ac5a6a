// SPDX-License-Identifier: Apache-2.0
#include "doctor/distribution.hpp"

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

ShellLine install_line(const Distribution& distribution, const Package& package) {
  switch (distribution.family) {
    case Family::debian:
      return command("apt-get install -y {}", package.debian);
    case Family::red_hat:
      return command("dnf install -y {}", package.red_hat);
    case Family::suse:
      return command("zypper install -y {}", package.suse);
    case Family::other:
      return command("# install with this system's package tool: {}", package.red_hat);
  }
  return "";
}

Lines kernel_argument_lines(const Distribution& distribution, std::string_view argument) {
  const ShellLine edit = command("sed -i {} /etc/default/grub",
                                 fmt::format("s/^GRUB_CMDLINE_LINUX=\"/&{} /", argument));
  switch (distribution.family) {
    case Family::debian:
      return {edit, "update-grub", "# then reboot"};
    case Family::red_hat:
      return {command("grubby --update-kernel=ALL --args={}", argument), "# then reboot"};
    case Family::suse:
      return {edit, "grub2-mkconfig -o /boot/grub2/grub.cfg", "# then reboot"};
    case Family::other:
      return {command("# put {} on the kernel's command line, then reboot", argument)};
  }
  return {};
}

Lines load_module_lines(std::string_view module) {
  return {command("modprobe {}", module),
          command("echo {} > /etc/modules-load.d/{}.conf", module, module)};
}

Lines sysctl_lines(std::string_view name, std::string_view value) {
  return {command("sysctl -w {}={}", name, value),
          command("echo {} >> /etc/sysctl.d/90-gdrx.conf", fmt::format("{} = {}", name, value))};
}

}  // namespace gdrx::doctor

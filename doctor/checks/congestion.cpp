// SPDX-License-Identifier: Apache-2.0
// RoCE on a full network: pause frames so that no packet is lost (PFC), and marks so that senders
// slow down before (ECN).
#include <charconv>
#include <system_error>

#include "doctor/checks/checks.hpp"

namespace gdrx::doctor {
namespace {

constexpr unsigned kAllPriorities = 0xff;

bool can_be_congested(const Port& port) {
  return port.ethernet && !port.is_virtual && !port.netdev.empty();
}

std::string priorities_text(unsigned mask) {
  std::string text;
  for (int priority = 0; priority < 8; ++priority) {
    if ((mask >> priority & 1u) != 0) text += fmt::format(" {}", priority);
  }
  return text;
}

// "np" and "rp": what notices a mark and what slows down.
std::string enable_file(const std::string& interface, std::string_view side) {
  return fmt::format("/sys/class/net/{}/ecn/roce_{}/enable/3", interface, side);
}

Finding pfc_of(const Port& port, const Result<Dcb>& dcb) {
  const std::string& device = port.netdev;
  const std::string call = "dcbnl IEEE_GET of " + port.netdev;
  if (!dcb) {
    const int number = dcb.error().native;
    return finding(Severity::unknown, "the kernel does not tell PFC of this interface",
                   number == 0 ? fmt::format("{}: {}", call, dcb.error().what)
                               : fmt::format("{}: errno {} ({})", call, number,
                                             std::generic_category().message(number)),
                   {command("dcb pfc show dev {}", device), command("mlnx_qos -i {}", device)});
  }
  const std::string evidence =
      fmt::format("{}: pfc_en 0x{:02x}; pauses sent {}, received {}; DSCP is {}mapped", call,
                  dcb->pfc, dcb->pauses_sent, dcb->pauses_received, dcb->dscp ? "" : "not ");
  const Lines fix{command("dcb pfc set dev {} prio-pfc all:off 3:on", device),
                  command("dcb app add dev {} dscp-prio 26:3", device),
                  "# the same on the switch's ports; then NCCL_IB_TC=106 (DSCP 26)"};
  if (dcb->pfc == 0) {
    return finding(Severity::warn, "PFC is off: a full switch drops RoCE's packets", evidence, fix);
  }
  if (dcb->pfc == kAllPriorities) {
    return finding(Severity::warn, "PFC on every priority: one jam stops all traffic of the port",
                   evidence, fix);
  }
  return ok(fmt::format("PFC on priority{}", priorities_text(dcb->pfc)), evidence);
}

/// A counter of a port; nothing where the driver has no such.
std::optional<std::uint64_t> counter(const HostFacts& facts, const Port& port, const char* name) {
  const std::string text = facts.files.read(port.folder / "hw_counters" / name);
  std::uint64_t value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  return parsed.ec == std::errc() ? std::optional(value) : std::nullopt;
}

}  // namespace

Findings check_roce_pfc(const HostFacts& facts) {
  Findings found;
  for (const Port& port : facts.ports) {
    if (!can_be_congested(port)) continue;
    found.push_back(about(port.name(), pfc_of(port, facts.probes.dcb(port.netdev))));
  }
  return found;
}

Findings check_roce_ecn(const HostFacts& facts) {
  Findings found;
  for (const Port& port : facts.ports) {
    if (!can_be_congested(port)) continue;
    const std::filesystem::path folder =
        std::filesystem::path("sys/class/net") / port.netdev / "ecn/roce_np/enable";
    const auto priorities = facts.files.list(folder);
    const std::string& device = port.netdev;
    std::string on;
    for (const std::string& name : priorities) {
      if (facts.files.read(folder / name) == "1") on += " " + name;
    }
    if (!on.empty()) {
      found.push_back(
          about(port.name(), ok("ECN is on for priority" + on, folder.string() + ": 1 for" + on)));
    } else if (!priorities.empty()) {
      found.push_back(about(
          port.name(), finding(Severity::warn, "ECN is off: RoCE loses packets under congestion",
                               folder.string() + ": 0 for all priorities",
                               {command("mlnx_qos -i {} --trust dscp", device),
                                command("echo 1 > {}", enable_file(device, "np")),
                                command("echo 1 > {}", enable_file(device, "rp")),
                                "# the switch must mark; then NCCL_IB_TC=106"})));
    } else {
      found.push_back(about(port.name(),
                            finding(Severity::unknown, "this driver does not show ECN in files",
                                    folder.string() + ": not there",
                                    {command("mlxconfig -d {} query | grep ROCE_CC", port.nic),
                                     command("rdma statistic show link {}  # np_cnp_sent: it works",
                                             port.nic + "/" + port.number)})));
    }
  }
  return found;
}

Findings check_roce_congestion(const HostFacts& facts) {
  Findings found;
  for (const Port& port : facts.ports) {
    if (!can_be_congested(port)) continue;
    const auto sent = counter(facts, port, "np_cnp_sent");
    const auto handled = counter(facts, port, "rp_cnp_handled");
    if (!sent || !handled) continue;
    const auto marked = counter(facts, port, "np_ecn_marked_roce_packets").value_or(0);
    const auto ignored = counter(facts, port, "rp_cnp_ignored").value_or(0);
    const std::string evidence = fmt::format(
        "{}: np_ecn_marked_roce_packets {}, np_cnp_sent {}, rp_cnp_handled {}, "
        "rp_cnp_ignored {}",
        (port.folder / "hw_counters").string(), marked, *sent, *handled, ignored);
    const auto enable = [&](const char* side) {
      return Lines{command("echo 1 > {}", enable_file(port.netdev, side))};
    };
    Finding one = ok(marked + *sent + *handled == 0 ? "no congestion was seen"
                                                    : "congestion was seen and answered",
                     evidence);
    if (ignored > 0) {
      one = finding(Severity::warn, "this NIC was asked to slow down and did not", evidence,
                    enable("rp"));
    } else if (marked > 0 && *sent == 0) {
      one = finding(Severity::warn, "marked packets came, and their senders were not told",
                    evidence, enable("np"));
    }
    found.push_back(about(port.name(), std::move(one)));
  }
  return found;
}

}  // namespace gdrx::doctor

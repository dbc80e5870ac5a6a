// SPDX-License-Identifier: Apache-2.0
// Ports: up, at their rate, with large packets, without errors.
#include <algorithm>
#include <set>

#include "doctor/checks/checks.hpp"
#include "topo/read/field_text.hpp"

namespace gdrx::doctor {
namespace {

// A RoCE packet of 4096 bytes and its headers; 1500 gives 1024, a quarter.
constexpr int kMtuFor4096 = 4200;
constexpr int kVerbsMtu4096 = 5;

ShellWord netdev_or(const Port& port) {
  return port.netdev.empty() ? ShellWord(Literal("<interface>")) : ShellWord(port.netdev);
}

Lines bring_up(const Port& port) {
  if (port.ethernet) {
    return {command("ip link set {} up", netdev_or(port)), command("ethtool {}", netdev_or(port))};
  }
  return {command("ibstat {} {}", port.nic, port.number),
          "# INIT: no subnet manager answers; start one on one host of the fabric:",
          "systemctl enable --now opensm"};
}

// Lanes and rate per lane: "400 Gb/sec (4X NDR)". Below 4X a lane is lost.
int lanes_of(const std::string& rate) {
  const auto open = rate.find('(');
  return open == rate.npos ? 0 : static_cast<int>(topo::leading_number(rate.substr(open + 1)));
}

}  // namespace

Findings check_port_state(const HostFacts& facts) {
  Findings found;
  bool any_up = false;
  for (const Port& port : facts.ports) {
    any_up |= facts.files.read(port.folder / "state").find("ACTIVE") != std::string::npos;
  }
  for (const Port& port : facts.ports) {
    const std::string state = facts.files.read(port.folder / "state");
    const std::string physical = facts.files.read(port.folder / "phys_state");
    const std::string evidence =
        fmt::format("{}: {}; phys_state: {}", (port.folder / "state").string(), state, physical);
    if (state.find("ACTIVE") != state.npos) {
      found.push_back(about(port.name(), ok("ACTIVE", evidence)));
    } else if (state.empty()) {
      found.push_back(about(port.name(), finding(Severity::unknown, "the state is not shown",
                                                 evidence, {"ibv_devinfo"})));
    } else {
      const bool cable = physical.find("LinkUp") == physical.npos;
      found.push_back(about(port.name(),
                            // A spare port that is down hurts nobody who has another.
                            finding(any_up ? Severity::warn : Severity::fail,
                                    cable ? "down: no link (cable, transceiver, switch port)"
                                          : "the link is up but the port is not ACTIVE",
                                    evidence, bring_up(port))));
    }
  }
  return found;
}

Findings check_port_rate(const HostFacts& facts) {
  Findings found;
  for (const Port& port : facts.ports) {
    const std::string rate = facts.files.read(port.folder / "rate");
    const bool up = facts.files.read(port.folder / "state").find("ACTIVE") != std::string::npos;
    if (!up || rate.empty() || port.is_virtual) continue;  // a virtual rate means nothing
    const std::string evidence = fmt::format("{}: {}", (port.folder / "rate").string(), rate);
    const int lanes = lanes_of(rate);
    // 2X is how half of a twin-port cable looks, 1X never is what was bought.
    const bool lost = topo::leading_number(rate) < 25 || lanes == 1;
    found.push_back(about(port.name(),
                          lost ? finding(Severity::slow, fmt::format("runs at {}", rate), evidence,
                                         {command("mlxlink -d {} -p {}", port.nic, port.number),
                                          "# clean or change the cable; look at the switch's port"})
                               : ok(rate, evidence)));
  }
  return found;
}

Findings check_port_mtu(const HostFacts& facts) {
  Findings found;
  for (const Port& port : facts.ports) {
    if (port.ethernet && !port.netdev.empty()) {
      const std::string path = fmt::format("sys/class/net/{}/mtu", port.netdev);
      const int mtu = topo::to_int(facts.files.read(path), 0);
      const std::string evidence = fmt::format("{}: {}", path, mtu);
      if (mtu >= kMtuFor4096) {
        found.push_back(about(port.name(), ok(fmt::format("{} bytes", mtu), evidence)));
      } else if (mtu > 0) {
        found.push_back(about(
            port.name(), finding(Severity::slow,
                                 fmt::format("MTU {}: RDMA packets are {} bytes, not 4096", mtu,
                                             mtu >= 2200   ? 2048
                                             : mtu >= 1100 ? 1024
                                             : mtu >= 590  ? 512
                                                           : 256),
                                 evidence,
                                 {command("ip link set {} mtu 9000", netdev_or(port)),
                                  "# the switch's ports and all peers need it too"})));
      }
      continue;
    }
    if (!facts.verbs || port.number != "1") continue;
    for (const VerbsDevice& device : facts.verbs->devices) {
      if (device.name != port.nic || device.active_mtu == 0) continue;
      const std::string evidence = fmt::format(
          "ibv_query_port: active_mtu {}, max_mtu {} (5: 4096)", device.active_mtu, device.max_mtu);
      const bool full = device.active_mtu >= std::min(device.max_mtu, kVerbsMtu4096);
      found.push_back(about(
          port.name(),
          full ? ok(fmt::format("{} bytes", 128 << device.active_mtu), evidence)
               : finding(
                     Severity::slow, fmt::format("packets of {} bytes", 128 << device.active_mtu),
                     evidence,
                     {"# the subnet manager's partition sets it: in partitions.conf",
                      "# Default=0x7fff, ipoib, mtu=5 : ALL=full;", "systemctl restart opensm"})));
    }
  }
  return found;
}

namespace {

// Counters since the card was reset, by what makes them grow.
enum class Cause : std::uint8_t { wire, lost, late };
struct Counter {
  const char* file;
  Cause cause;
};
constexpr Counter kErrors[] = {
    {"counters/link_downed", Cause::wire},
    {"counters/link_error_recovery", Cause::wire},
    {"counters/symbol_error", Cause::wire},
    {"counters/port_rcv_errors", Cause::wire},
    {"counters/local_link_integrity_errors", Cause::wire},
    {"hw_counters/out_of_sequence", Cause::lost},
    {"hw_counters/packet_seq_err", Cause::lost},
    {"hw_counters/implied_nak_seq_err", Cause::lost},
    {"hw_counters/local_ack_timeout_err", Cause::lost},
    {"hw_counters/rnr_nak_retry_err", Cause::late},
};

Lines fix_of(Cause cause, const Port& port) {
  switch (cause) {
    case Cause::wire:
      return {command("mlxlink -d {} -p {} -c", port.nic, port.number),
              "# clean or change the cable or transceiver"};
    case Cause::lost:
      if (!port.ethernet) return {"perfquery -x  # again after a run: XmtWait, discards"};
      return {"# lost packets: set up PFC and ECN; see docs/gdr-setup.md#roce-pfc"};
    case Cause::late:
      return {"# a receiver had posted nothing: is its process alive, on CPUs of its own?",
              "taskset -pc <pid>"};
  }
  return {};
}

}  // namespace

Findings check_port_errors(const HostFacts& facts) {
  Findings found;
  for (const Port& port : facts.ports) {
    std::string bad;
    Lines fix;
    std::set<Cause> causes;
    int seen = 0;
    for (const auto& [file, cause] : kErrors) {
      const std::string value = facts.files.read(port.folder / file);
      if (value.empty()) continue;
      ++seen;
      if (value == "0") continue;
      bad += fmt::format(" {} {};", file, value);
      if (!causes.insert(cause).second) continue;
      for (ShellLine& line : fix_of(cause, port)) fix.push_back(std::move(line));
    }
    if (seen == 0) continue;
    if (bad.empty()) {
      found.push_back(about(port.name(), ok("none", fmt::format("{} counters are 0", seen))));
      continue;
    }
    bad.pop_back();
    found.push_back(about(port.name(),
                          finding(Severity::warn, "errors were counted; do they grow during a run?",
                                  fmt::format("{}:{}", port.folder.string(), bad), fix)));
  }
  return found;
}

}  // namespace gdrx::doctor

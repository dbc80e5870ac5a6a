// SPDX-License-Identifier: Apache-2.0
// What is special about RDMA over Ethernet: the choice of an address.
#include <algorithm>
#include <map>

#include "doctor/checks/checks.hpp"
#include "topo/read/field_text.hpp"

namespace gdrx::doctor {
namespace {

struct Gid {
  int index = -1;
  std::string text;
  bool v2 = false;
  bool link_local = false;
  bool ipv4 = false;
};

// Entries of a GID table that are set. An empty slot, or one of another network namespace, fails to
// read with EINVAL: that is normal.
std::vector<Gid> gids_of(const HostFacts& facts, const Port& port) {
  std::vector<Gid> gids;
  for (const std::string& name : facts.files.list(port.folder / "gids")) {
    Gid gid;
    gid.text = facts.files.read(port.folder / "gids" / name);
    const bool zero = gid.text.find_first_not_of("0:") == gid.text.npos;
    gid.index = topo::to_int(name, -1);
    if (zero || gid.index < 0) continue;
    const std::string type = facts.files.read(port.folder / "gid_attrs/types" / name);
    gid.v2 = type.find("v2") != type.npos;
    gid.link_local = gid.text.starts_with("fe80");
    gid.ipv4 = gid.text.starts_with("0000:0000:0000:0000:0000:ffff:");
    gids.push_back(gid);
  }
  std::sort(gids.begin(), gids.end(), [](const Gid& a, const Gid& b) { return a.index < b.index; });
  return gids;
}

int rank_of(const Gid& gid) {
  return (gid.v2 ? 0 : 4) + (gid.link_local ? 2 : 0) + (gid.ipv4 ? 0 : 1);
}

}  // namespace

Findings check_roce_gid(const HostFacts& facts) {
  Findings found;
  for (const Port& port : facts.ports) {
    if (!port.ethernet) continue;
    const std::vector<Gid> gids = gids_of(facts, port);
    const std::string folder = (port.folder / "gids").string();
    const ShellLine address =
        command("ip addr add 192.0.2.1/24 dev {}",
                port.netdev.empty() ? ShellWord(Literal("<interface>")) : ShellWord(port.netdev));
    const auto best = std::min_element(gids.begin(), gids.end(), [](const Gid& a, const Gid& b) {
      return rank_of(a) < rank_of(b);
    });
    if (best == gids.end()) {
      found.push_back(about(
          port.name(),
          finding(Severity::fail, "the GID table is empty here: no address to use",
                  folder + ": no entry is set",
                  facts.in_container ? Lines{"# the interface is in another network namespace:",
                                             "docker run --network host ..."}
                                     : Lines{"# give the interface an address:", address})));
      continue;
    }
    const std::string evidence =
        fmt::format("{}/{}: {}{}", folder, best->index, best->text, best->v2 ? " (RoCE v2)" : "");
    if (!best->v2) {
      found.push_back(
          about(port.name(),
                finding(Severity::fail, "only RoCE v1 addresses: not routed, retired", evidence,
                        {command("cma_roce_mode -d {} -m 2", port.nic),
                         "# and give the interface an address:", address})));
    } else if (best->link_local) {
      found.push_back(about(
          port.name(), finding(Severity::warn, "only link-local addresses: peers need one subnet",
                               evidence, {address})));
    } else {
      found.push_back(about(port.name(), ok(fmt::format("index {}: RoCE v2, {}", best->index,
                                                        best->ipv4 ? "IPv4" : "global IPv6"),
                                            evidence)));
    }
  }
  return found;
}

Findings check_arp_flux(const HostFacts& facts) {
  // /24 by the IPv4-mapped GID: a guess at the subnet that needs no call.
  std::map<std::string, std::string> subnets;
  std::map<std::string, int> count;
  for (const Port& port : facts.ports) {
    if (!port.ethernet) continue;
    for (const Gid& gid : gids_of(facts, port)) {
      if (!gid.ipv4 || !gid.v2) continue;
      const std::string subnet = gid.text.substr(0, gid.text.size() - 2);
      subnets[subnet] += " " + port.nic;
      ++count[subnet];
      break;
    }
  }
  if (subnets.empty()) return {};
  const std::string path = "proc/sys/net/ipv4/conf/all/arp_ignore";
  const int ignore = topo::to_int(facts.files.read(path), 0);
  const std::string evidence = fmt::format("{}: {}", path, ignore);
  for (const auto& [subnet, nics] : subnets) {
    if (count[subnet] < 2 || ignore > 0) continue;
    Lines fix = sysctl_lines("net.ipv4.conf.all.arp_ignore", "1");
    for (ShellLine& line : sysctl_lines("net.ipv4.conf.all.arp_announce", "2")) {
      fix.push_back(std::move(line));
    }
    return {finding(Severity::warn,
                    "NICs of one subnet answer for each other: traffic takes the wrong one",
                    fmt::format("{}; in one /24:{}", evidence, nics), fix)};
  }
  return {ok("no two NICs share a subnet, or ARP keeps them apart", evidence)};
}

}  // namespace gdrx::doctor

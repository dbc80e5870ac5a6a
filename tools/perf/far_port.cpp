// SPDX-License-Identifier: Apache-2.0
#include "tools/perf/far_port.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gdrx::perf {
namespace {

constexpr int kMostReads = 16;  // on their way at once, where both NICs have as many
constexpr std::uint32_t kPsn = 77;

std::string shown(const NicPort& port) {
  return fmt::format("{} port {}", port.name(), port.port());
}

}  // namespace

FarPort far_port(const NicPort& port) {
  FarPort far;
  far.name = shown(port);
  far.lid = port.address().dlid;
  far.ethernet = port.ethernet();
  far.mtu = port.mtu();
  far.reads = port.context().attributes().max_qp_rd_atom;
  std::copy_n(port.address().grh.dgid.raw, far.gid.size(), far.gid.begin());
  return far;
}

std::string port_words(const FarPort& port) {
  std::string gid;
  for (const std::uint8_t byte : port.gid) gid += fmt::format("{:02x}", byte);
  const auto blank = port.name.find(" port ");
  return fmt::format("{} {} {} {} {} {} {}", port.name.substr(0, blank),
                     port.name.substr(blank + 6), port.lid, int{port.ethernet},
                     static_cast<int>(port.mtu), port.reads, gid);
}

Result<FarPort> read_port(std::istream& words) {
  constexpr std::size_t kLongestName = 64;  // of libibverbs
  FarPort port;
  std::string device;
  std::string gid;
  int number = 0;
  unsigned lid = 0;
  int ethernet = 0;
  int mtu = 0;
  words >> device >> number >> lid >> ethernet >> mtu >> port.reads >> gid;
  const bool good = words && device.size() <= kLongestName && number >= 1 && number <= 255 &&
                    lid <= 0xffff && mtu >= IBV_MTU_256 && mtu <= IBV_MTU_4096 &&
                    gid.size() == 2 * port.gid.size() &&
                    gid.find_first_not_of("0123456789abcdef") == gid.npos;
  if (!good) return fail(Errc::protocol, "a host describes its ports in another way");
  port.name = fmt::format("{} port {}", device, number);
  port.lid = static_cast<std::uint16_t>(lid);
  port.ethernet = ethernet != 0;
  port.mtu = static_cast<ibv_mtu>(mtu);
  for (std::size_t i = 0; i < port.gid.size(); ++i) {
    port.gid[i] = static_cast<std::uint8_t>(std::stoul(gid.substr(2 * i, 2), nullptr, 16));
  }
  return port;
}

Result<verbs::QpRoute> route(const NicPort& here, const FarPort& there, std::uint32_t number,
                             const PairOptions& options) {
  if (there.ethernet != here.ethernet()) {
    return fail(Errc::unsupported, "InfiniBand on one side, Ethernet on the other");
  }
  verbs::QpRoute made;
  made.address = here.address();  // its own port and its own GID's index
  made.address.dlid = there.lid;
  std::copy(there.gid.begin(), there.gid.end(), made.address.grh.dgid.raw);
  made.address.grh.traffic_class = options.traffic_class;
  made.address.sl = options.service_level;
  made.peer_qp = number;
  made.peer_psn = made.psn = kPsn;
  made.mtu = std::min(here.mtu(), there.mtu);
  made.timeout = options.timeout;
  made.retries = options.retries;
  const int reads = std::min(here.context().attributes().max_qp_rd_atom, there.reads);
  made.reads = static_cast<std::uint8_t>(std::clamp(reads, 1, kMostReads));
  return made;
}

}  // namespace gdrx::perf

// SPDX-License-Identifier: Apache-2.0
#include "tests/tcp/tls_cost/connection.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

#include "tests/tcp/tls_cost/link.hpp"

namespace gdrx::tls_cost {
namespace {

sockaddr_in own_address() {
  const char* wanted = std::getenv("GDRX_SOCKET_IFNAME");
  const std::string prefix = wanted == nullptr ? "lo" : wanted;
  ifaddrs* all = nullptr;
  require(getifaddrs(&all) == 0, "getifaddrs");
  sockaddr_in found{};
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET) continue;
    if (std::string(one->ifa_name).starts_with(prefix)) {
      found = *reinterpret_cast<const sockaddr_in*>(one->ifa_addr);
    }
  }
  freeifaddrs(all);
  require(found.sin_family == AF_INET, "an address of GDRX_SOCKET_IFNAME");
  found.sin_port = 0;
  return found;
}

}  // namespace

std::string tell_and_hear(int channel, const std::string& mine) {
  require(write(channel, mine.data(), mine.size()) == static_cast<ssize_t>(mine.size()), "write");
  std::array<char, 4096> theirs{};
  const ssize_t size = read(channel, theirs.data(), theirs.size());
  require(size > 0, "the other process");
  return {theirs.data(), static_cast<std::size_t>(size)};
}

int connect_to_peer(int rank, int channel) {
  const int mine = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in at = own_address();
  socklen_t size = sizeof at;
  auto* address = reinterpret_cast<sockaddr*>(&at);
  require(bind(mine, address, size) == 0 && (rank == 1 || listen(mine, 1) == 0) &&
              getsockname(mine, address, &size) == 0,
          "a socket");
  const std::string said =
      tell_and_hear(channel, std::string(reinterpret_cast<const char*>(&at), sizeof at));
  require(said.size() == sizeof at, "the peer's address");
  int made = mine;
  if (rank == 0) {
    made = accept(mine, nullptr, nullptr);
    close(mine);
  } else {
    std::copy(said.begin(), said.end(), reinterpret_cast<char*>(&at));
    require(connect(mine, address, sizeof at) == 0, "connect");
  }
  const int one = 1;
  require(made >= 0 && setsockopt(made, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) == 0,
          "a connection");
  return made;
}

void enter_netns(const std::string& name) {
  const int fd = open(("/run/netns/" + name).c_str(), O_RDONLY | O_CLOEXEC);
  require(fd >= 0 && setns(fd, CLONE_NEWNET) == 0, "the network namespace");
  close(fd);
}

}  // namespace gdrx::tls_cost

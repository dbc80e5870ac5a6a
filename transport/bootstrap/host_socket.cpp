// SPDX-License-Identifier: Apache-2.0
#include "transport/bootstrap/host_socket.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>

#include "transport/bootstrap/fork.hpp"
#include "transport/bootstrap/socket_errors.hpp"

namespace gdrx {
namespace {

constexpr std::size_t kMostName = 100;

struct HostAddress {
  // A zero before it: the name is no file's.
  explicit HostAddress(const std::string& name) {
    un.sun_family = AF_UNIX;
    std::copy_n(name.begin(), std::min(name.size(), kMostName), un.sun_path + 1);
    length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 +
                                    std::min(name.size(), kMostName));
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&un); }
  sockaddr_un un{};
  socklen_t length = 0;
};

Result<Socket> open_socket() {
  const int fd =
      Unforked::open([] { return socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0); });
  if (fd < 0) return no_descriptor("a Unix socket", errno);
  return Socket(fd);
}

}  // namespace

Result<Socket> listen_on_host(const std::string& name) {
  Socket socket = GDRX_TRY(open_socket());
  const HostAddress at(name);
  if (bind(socket.fd(), at.get(), at.length) != 0 || ::listen(socket.fd(), SOMAXCONN) != 0) {
    return fail(Errc::system, "a Unix socket", errno);
  }
  return socket;
}

Result<Socket> connect_on_host(const std::string& name) {
  Socket socket = GDRX_TRY(open_socket());
  const HostAddress to(name);
  if (::connect(socket.fd(), to.get(), to.length) != 0) {
    return fail(Errc::peer_lost, "nobody on this host takes the connection", errno);
  }
  return socket;
}

// A user of another namespace, whom this one does not know, reads as the kernel's overflow user.
bool is_of_this_user(const Socket& socket) noexcept {
  constexpr uid_t kUnknown = 65534;
  ucred peer{};
  socklen_t length = sizeof peer;
  return getsockopt(socket.fd(), SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 &&
         peer.uid == geteuid() && peer.uid != kUnknown;
}

}  // namespace gdrx

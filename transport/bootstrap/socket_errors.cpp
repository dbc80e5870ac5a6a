// SPDX-License-Identifier: Apache-2.0
#include "transport/bootstrap/socket_errors.hpp"

#include <fmt/format.h>

#include <cerrno>

#include "transport/bootstrap/fork.hpp"

namespace gdrx {

bool connect_may_pass(int error) noexcept {
  switch (error) {
    case ECONNREFUSED:  // the other side is not up yet
    case ECONNRESET:
    case ECONNABORTED:
    case EHOSTUNREACH:  // a switch or a neighbour's address is just being learnt
    case EHOSTDOWN:
    case ENETDOWN:
    case ETIMEDOUT:
    case EADDRNOTAVAIL:  // every port of ours is in use
    case EAGAIN:
    case EINTR:
    case ENOBUFS:
    case ENOMEM:
      return true;
    default:
      return false;
  }
}

bool accept_next(int error) noexcept {
  switch (error) {
    case EINTR:
    case ECONNABORTED:  // it has gone again
    case EPERM:         // a firewall forbids it
    case ENETDOWN:
    case EPROTO:
    case ENOPROTOOPT:
    case EHOSTDOWN:
    case ENONET:
    case EHOSTUNREACH:
    case EOPNOTSUPP:
    case ENETUNREACH:
    case ETIMEDOUT:
      return true;
    default:
      return false;
  }
}

bool is_silence(int error) noexcept {
  return error == ETIMEDOUT || error == EHOSTUNREACH || error == ENETUNREACH || error == EHOSTDOWN;
}

tl::unexpected<Error> no_descriptor(const char* what, int error) {
  if (error == EMFILE) {
    return fail(Errc::system,
                fmt::format("{}: this process may have {} descriptors open and has them all: raise "
                            "its hard limit (ulimit -Hn)",
                            what, descriptor_limit()),
                error);
  }
  if (error == ENFILE) {
    return fail(Errc::system,
                fmt::format("{}: this host has no descriptors left (sysctl fs.file-max)", what),
                error);
  }
  return fail(Errc::system, what, error);
}

}  // namespace gdrx

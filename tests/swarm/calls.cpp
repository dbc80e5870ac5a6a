// SPDX-License-Identifier: Apache-2.0
// The system's calls that gdrx makes, each of which may fail as its manual says.
#include <execinfo.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdarg>
#include <cstdlib>

#include "tests/swarm/inject.hpp"

using gdrx::swarm::injected;
using gdrx::swarm::Kind;

namespace {

#define SWARM_CALLER __builtin_return_address(0)

/// True: the call fails so.
bool refused(Kind kind, const void* caller, std::initializer_list<int> errors) {
  const auto error = injected(kind, caller, errors);
  if (error) errno = *error;
  return error.has_value();
}

struct Quiet {
  void* (*body)(void*);
  void* argument;
};
void* run_quietly(void* given) {
  const gdrx::swarm::Exempt quiet;
  const Quiet what = *static_cast<Quiet*>(given);
  std::free(given);
  return what.body(what.argument);
}

bool is_of_a_simulation() {
  const gdrx::swarm::Exempt quiet;
  std::array<void*, 8> frames{};
  const int count = backtrace(frames.data(), static_cast<int>(frames.size()));
  return std::any_of(frames.begin(), frames.begin() + count,
                     [](void* at) { return gdrx::swarm::is_simulated(at); });
}

std::size_t shortened(std::size_t bytes) {
  return bytes <= 1 ? bytes : 1 + gdrx::swarm::choice() % (bytes - 1);
}

/// The error, or 0 for a short count, or nothing.
std::optional<int> sending(const void* caller) {
  return injected(Kind::send, caller, {EPIPE, ECONNRESET, EINTR, EAGAIN, ENOBUFS, 0, 0, ENOMEM});
}
std::optional<int> receiving(const void* caller) {
  return injected(Kind::receive, caller, {ECONNRESET, EINTR, EAGAIN, 0, 0, ENOMEM, ETIMEDOUT});
}

}  // namespace

SWARM_API int socket(int domain, int type, int protocol) noexcept {
  SWARM_NEXT(socket);
  if (refused(Kind::socket, SWARM_CALLER, {EMFILE, ENFILE, ENOBUFS, ENOMEM, EACCES})) return -1;
  return real(domain, type, protocol);
}
SWARM_API int connect(int fd, const sockaddr* address, socklen_t length) {
  SWARM_NEXT(connect);
  if (refused(Kind::connect, SWARM_CALLER,
              {ECONNREFUSED, ETIMEDOUT, EHOSTUNREACH, ENETUNREACH, EINTR, EADDRNOTAVAIL, EAGAIN})) {
    return -1;
  }
  return real(fd, address, length);
}
SWARM_API int bind(int fd, const sockaddr* address, socklen_t length) noexcept {
  SWARM_NEXT(bind);
  if (refused(Kind::listen, SWARM_CALLER, {EADDRINUSE, EACCES, EADDRNOTAVAIL})) return -1;
  return real(fd, address, length);
}
SWARM_API int listen(int fd, int backlog) noexcept {
  SWARM_NEXT(listen);
  if (refused(Kind::listen, SWARM_CALLER, {EADDRINUSE})) return -1;
  return real(fd, backlog);
}
SWARM_API int accept(int fd, sockaddr* address, socklen_t* length) {
  SWARM_NEXT(accept);
  if (refused(Kind::accept, SWARM_CALLER,
              {EMFILE, ECONNABORTED, EINTR, ENOMEM, EPROTO, EAGAIN, ENETDOWN})) {
    return -1;
  }
  return real(fd, address, length);
}
SWARM_API int accept4(int fd, sockaddr* address, socklen_t* length, int flags) {
  SWARM_NEXT(accept4);
  if (refused(Kind::accept, SWARM_CALLER,
              {EMFILE, ECONNABORTED, EINTR, ENOMEM, EPROTO, EAGAIN, ENETDOWN})) {
    return -1;
  }
  return real(fd, address, length, flags);
}
SWARM_API int poll(pollfd* fds, nfds_t count, int timeout) {
  SWARM_NEXT(poll);
  const auto error = injected(Kind::poll, SWARM_CALLER, {EINTR, 0, ENOMEM});
  if (!error) return real(fds, count, timeout);
  errno = *error;
  for (nfds_t i = 0; i < count; ++i) fds[i].revents = 0;
  return *error == 0 ? 0 : -1;  // 0: too early
}
SWARM_API ssize_t send(int fd, const void* bytes, std::size_t count, int flags) {
  SWARM_NEXT(send);
  const auto error = sending(SWARM_CALLER);
  if (!error) return real(fd, bytes, count, flags);
  errno = *error;
  return *error == 0 ? real(fd, bytes, shortened(count), flags) : -1;
}
SWARM_API ssize_t sendmsg(int fd, const msghdr* message, int flags) {
  SWARM_NEXT(sendmsg);
  const auto error = sending(SWARM_CALLER);
  if (!error || *error == 0) return real(fd, message, flags);
  errno = *error;
  return -1;
}
SWARM_API ssize_t write(int fd, const void* bytes, std::size_t count) {
  SWARM_NEXT(write);
  if (fd <= STDERR_FILENO) return real(fd, bytes, count);
  const auto error = sending(SWARM_CALLER);
  if (!error) return real(fd, bytes, count);
  errno = *error;
  return *error == 0 ? real(fd, bytes, shortened(count)) : -1;
}
SWARM_API ssize_t recv(int fd, void* bytes, std::size_t count, int flags) {
  SWARM_NEXT(recv);
  const auto error = receiving(SWARM_CALLER);
  if (!error) return real(fd, bytes, count, flags);
  errno = *error;
  return *error == 0 ? real(fd, bytes, shortened(count), flags) : -1;
}
SWARM_API ssize_t recvmsg(int fd, msghdr* message, int flags) {
  SWARM_NEXT(recvmsg);
  const auto error = receiving(SWARM_CALLER);
  if (!error || *error == 0) return real(fd, message, flags);
  errno = *error;
  return -1;
}
SWARM_API ssize_t read(int fd, void* bytes, std::size_t count) {
  SWARM_NEXT(read);
  const auto error = receiving(SWARM_CALLER);
  if (!error) return real(fd, bytes, count);
  errno = *error;
  return *error == 0 ? real(fd, bytes, shortened(count)) : -1;
}
SWARM_API int getsockname(int fd, sockaddr* address, socklen_t* length) noexcept {
  SWARM_NEXT(getsockname);
  if (refused(Kind::option, SWARM_CALLER, {ENOBUFS})) return -1;
  return real(fd, address, length);
}
SWARM_API int getpeername(int fd, sockaddr* address, socklen_t* length) noexcept {
  SWARM_NEXT(getpeername);
  if (refused(Kind::option, SWARM_CALLER, {ENOTCONN, ENOBUFS})) return -1;
  return real(fd, address, length);
}
SWARM_API int getsockopt(int fd, int level, int name, void* value, socklen_t* length) noexcept {
  SWARM_NEXT(getsockopt);
  if (refused(Kind::option, SWARM_CALLER, {ENOBUFS, EINVAL})) return -1;
  return real(fd, level, name, value, length);
}
SWARM_API int setsockopt(int fd, int level, int name, const void* value,
                         socklen_t length) noexcept {
  SWARM_NEXT(setsockopt);
  if (refused(Kind::option, SWARM_CALLER, {ENOMEM, EINVAL})) return -1;
  return real(fd, level, name, value, length);
}
SWARM_API int fcntl(int fd, int command, ...) {
  SWARM_NEXT(fcntl);
  va_list rest;
  va_start(rest, command);
  void* argument = va_arg(rest, void*);
  va_end(rest);
  if (refused(Kind::option, SWARM_CALLER, {EINVAL, EAGAIN})) return -1;
  return real(fd, command, argument);
}
SWARM_API int open(const char* path, int flags, ...) {
  SWARM_NEXT(open);
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = va_arg(rest, mode_t);
  va_end(rest);
  if (refused(Kind::open, SWARM_CALLER, {EMFILE, ENFILE, ENOENT, EACCES, ENOMEM, EINTR})) return -1;
  return real(path, flags, mode);
}
SWARM_API void* mmap(void* at, std::size_t bytes, int protection, int flags, int fd,
                     off_t offset) noexcept {
  SWARM_NEXT(mmap);
  if (refused(Kind::map, SWARM_CALLER, {ENOMEM, EAGAIN, EPERM})) return MAP_FAILED;
  return real(at, bytes, protection, flags, fd, offset);
}
SWARM_API int memfd_create(const char* name, unsigned flags) noexcept {
  SWARM_NEXT(memfd_create);
  if (refused(Kind::memory_file, SWARM_CALLER, {EMFILE, ENFILE, ENOMEM})) return -1;
  return real(name, flags);
}
SWARM_API int ftruncate(int fd, off_t bytes) noexcept {
  SWARM_NEXT(ftruncate);
  if (refused(Kind::memory_file, SWARM_CALLER, {ENOSPC, ENOMEM, EINTR})) return -1;
  return real(fd, bytes);
}
SWARM_API int eventfd(unsigned count, int flags) noexcept {
  SWARM_NEXT(eventfd);
  if (refused(Kind::event, SWARM_CALLER, {EMFILE, ENFILE, ENOMEM})) return -1;
  return real(count, flags);
}
SWARM_API ssize_t getrandom(void* bytes, std::size_t count, unsigned flags) {
  SWARM_NEXT(getrandom);
  if (refused(Kind::random, SWARM_CALLER, {EINTR, ENOSYS})) return -1;
  return real(bytes, count, flags);
}
SWARM_API int getifaddrs(ifaddrs** list) noexcept {
  SWARM_NEXT(getifaddrs);
  if (refused(Kind::interfaces, SWARM_CALLER, {ENOMEM, EMFILE})) return -1;
  return real(list);
}
SWARM_API int gethostname(char* name, std::size_t length) noexcept {
  SWARM_NEXT(gethostname);
  if (refused(Kind::interfaces, SWARM_CALLER, {ENAMETOOLONG})) return -1;
  return real(name, length);
}
SWARM_API ssize_t process_vm_writev(pid_t pid, const iovec* local, unsigned long locals,
                                    const iovec* remote, unsigned long remotes,
                                    unsigned long flags) noexcept {
  SWARM_NEXT(process_vm_writev);
  if (refused(Kind::other_process, SWARM_CALLER, {EPERM, EFAULT, ESRCH, ENOMEM})) return -1;
  return real(pid, local, locals, remote, remotes, flags);
}
SWARM_API ssize_t process_vm_readv(pid_t pid, const iovec* local, unsigned long locals,
                                   const iovec* remote, unsigned long remotes,
                                   unsigned long flags) noexcept {
  SWARM_NEXT(process_vm_readv);
  if (refused(Kind::other_process, SWARM_CALLER, {EPERM, EFAULT, ESRCH, ENOMEM})) return -1;
  return real(pid, local, locals, remote, remotes, flags);
}
SWARM_API int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                             void* (*body)(void*), void* argument) noexcept {
  SWARM_NEXT(pthread_create);
  // What simulates a device has threads that are no part of gdrx.
  if (is_of_a_simulation()) {
    auto* quiet = static_cast<Quiet*>(std::malloc(sizeof(Quiet)));
    *quiet = {body, argument};
    return real(thread, attributes, run_quietly, quiet);
  }
  if (const auto error = injected(Kind::thread, SWARM_CALLER, {EAGAIN})) return *error;
  return real(thread, attributes, body, argument);
}

// SPDX-License-Identifier: Apache-2.0
#include "collectives/gpu/descriptor_wire.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "gdrx/waits.hpp"

namespace gdrx::gpu {

Descriptor::~Descriptor() { Unforked::close(fd_); }

AbstractName::AbstractName(const std::array<std::uint8_t, 16>& name) {
  std::string text = "gdrx-";
  for (const std::uint8_t byte : name) text += fmt::format("{:02x}", byte);
  un.sun_family = AF_UNIX;
  static_assert(sizeof un.sun_path > 1 + 5 + 32);
  std::memcpy(&un.sun_path[1], text.data(), text.size());  // sun_path[0] is 0: abstract
  length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
}

namespace {

constexpr const char* kOther = "a process of this host";

}  // namespace

Result<void> send_message(int fd, const void* data, std::size_t bytes,
                          const std::vector<Descriptor>& descriptors, int stop, Deadline deadline) {
  iovec part{const_cast<void*>(data), bytes};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kDescriptorsAtOnce * sizeof(int))> control{};
  if (!descriptors.empty()) {
    const std::size_t size = descriptors.size() * sizeof(int);
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(size);
    cmsghdr* head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(size);
    for (std::size_t i = 0; i < descriptors.size(); ++i) {
      const int out = descriptors[i].fd();
      std::memcpy(CMSG_DATA(head) + i * sizeof out, &out, sizeof out);
    }
  }
  Waits waits(fd, deadline, kOther, stop);
  while (true) {
    const ssize_t sent = sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent == static_cast<ssize_t>(bytes)) return {};
    if (sent >= 0) return fail(Errc::protocol, "a message was cut");  // SEQPACKET: never
    if (errno == EPIPE || errno == ECONNRESET) {
      return fail(Errc::peer_lost, "the other process closed its socket");
    }
    if (errno != EAGAIN && errno != EINTR) return fail(Errc::system, "sendmsg", errno);
    GDRX_TRY(waits.wait(POLLOUT));
  }
}

Result<std::vector<Descriptor>> receive_message(int fd, void* data, std::size_t bytes, int stop,
                                                Deadline deadline) {
  Waits waits(fd, deadline, kOther, stop);
  while (true) {
    iovec part{data, bytes};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    alignas(cmsghdr) std::array<char, CMSG_SPACE(kDescriptorsAtOnce * sizeof(int))> control{};
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    const ssize_t got = recvmsg(fd, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
      GDRX_TRY(waits.wait(POLLIN));
      continue;
    }
    if (got < 0 && errno != ECONNRESET) return fail(Errc::system, "recvmsg", errno);
    if (got <= 0) return fail(Errc::peer_lost, "the other process closed its socket");
    std::vector<Descriptor> descriptors;  // whatever came is owned before anything is judged
    for (cmsghdr* head = CMSG_FIRSTHDR(&message); head != nullptr;
         head = CMSG_NXTHDR(&message, head)) {
      if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS) continue;
      for (std::size_t at = 0; at + CMSG_LEN(sizeof(int)) <= head->cmsg_len; at += sizeof(int)) {
        int one = -1;
        std::memcpy(&one, CMSG_DATA(head) + at, sizeof one);
        descriptors.emplace_back(one);
      }
    }
    if ((message.msg_flags & MSG_CTRUNC) != 0) {
      return fail(Errc::system,
                  "this process cannot take more file descriptors: raise `ulimit -n`");
    }
    if (got != static_cast<ssize_t>(bytes) || (message.msg_flags & MSG_TRUNC) != 0) {
      return fail(Errc::protocol, "a message about file descriptors of another length");
    }
    return descriptors;
  }
}

}  // namespace gdrx::gpu

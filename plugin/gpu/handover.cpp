// SPDX-License-Identifier: Apache-2.0
#include "plugin/gpu/handover.hpp"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace gdrx::gpu {
namespace {

struct Address {
  sockaddr_un at{};
  socklen_t length = 0;
};

Address address_of(const SocketName& name) {
  Address address;
  address.at.sun_family = AF_UNIX;
  // A zero first byte: the abstract name space.
  const std::string text = fmt::format("gdrx-net-{:016x}{:016x}", name[0], name[1]);
  std::memcpy(address.at.sun_path + 1, text.data(), text.size());
  address.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
  return address;
}

Result<Socket> make_socket() {
  const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return fail(Errc::system, "socket(AF_UNIX)", errno);
  return Socket(fd);
}

// Whoever reads the name in /proc may knock: only a process of our own user is let in.
Result<void> same_user(const Socket& socket) {
  ucred peer{};
  socklen_t length = sizeof peer;
  if (getsockopt(socket.fd(), SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) {
    return fail(Errc::system, "SO_PEERCRED", errno);
  }
  if (peer.uid == geteuid()) return {};
  return fail(Errc::protocol, fmt::format("a process of user {} asks for GPU memory", peer.uid));
}

union ControlBuffer {
  cmsghdr head;
  std::array<char, CMSG_SPACE(sizeof(int))> bytes;
};

Result<void> send_with(const Socket& to, const Note& note, int descriptor) {
  Note copy = note;
  iovec piece{&copy, sizeof copy};
  ControlBuffer control{};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = &control;
  message.msg_controllen = sizeof control;
  cmsghdr* head = CMSG_FIRSTHDR(&message);
  head->cmsg_level = SOL_SOCKET;
  head->cmsg_type = SCM_RIGHTS;
  head->cmsg_len = CMSG_LEN(sizeof descriptor);
  std::memcpy(CMSG_DATA(head), &descriptor, sizeof descriptor);
  if (sendmsg(to.fd(), &message, MSG_NOSIGNAL) == sizeof copy) return {};
  return fail(Errc::peer_lost, "GPU memory cannot be handed over", errno);
}

}  // namespace

Result<std::unique_ptr<IpcExporter>> IpcExporter::listen(const SocketName& name) {
  auto exporter = std::make_unique<IpcExporter>();
  exporter->listening_ = GDRX_TRY(make_socket());
  const Address address = address_of(name);
  if (bind(exporter->listening_.fd(), reinterpret_cast<const sockaddr*>(&address.at),
           address.length) != 0 ||
      ::listen(exporter->listening_.fd(), 4) != 0) {
    return fail(Errc::system, "bind or listen(AF_UNIX)", errno);
  }
  return exporter;
}

Result<void> IpcExporter::meet() {
  if (peer_.valid()) return {};
  const int fd = accept4(listening_.fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (fd < 0) return fail(Errc::peer_lost, "the sender has not come for GPU memory", errno);
  Socket guest(fd);
  GDRX_TRY(same_user(guest));
  peer_ = std::move(guest);
  return {};
}

Result<std::uint32_t> IpcExporter::give(std::span<std::byte> memory) {
  GDRX_TRY(meet());
  const auto address = reinterpret_cast<Pointer>(memory.data());
  Pointer base = 0;
  std::size_t size = 0;
  GDRX_TRY(check(driver().address_range(&base, &size, address), "cuMemGetAddressRange"));
  if (memory.size() > size - (address - base)) {
    return fail(Errc::invalid_argument, "memory that is of more than one allocation");
  }
  Allocation allocation = 0;
  if (driver().retain(&allocation, memory.data()) != 0) {
    return fail(Errc::unsupported,
                "GPU memory that was not made by CUDA's virtual memory management cannot be handed "
                "over: leave NCCL_CUMEM_ENABLE on, or set GDRX_NET_GPU=0");
  }
  int descriptor = -1;
  auto exported = check(driver().export_to(&descriptor, allocation, kPosixDescriptor, 0),
                        "cuMemExportToShareableHandle");
  driver().release(allocation);
  GDRX_TRY(std::move(exported));
  const Note note{next_, 0, size, address - base, memory.size()};
  auto sent = send_with(peer_, note, descriptor);
  close(descriptor);
  GDRX_TRY(std::move(sent));
  return next_++;
}

Result<std::unique_ptr<IpcImporter>> IpcImporter::connect(const SocketName& name) {
  auto importer = std::unique_ptr<IpcImporter>(new IpcImporter);
  importer->socket_ = GDRX_TRY(make_socket());
  const Address address = address_of(name);
  // Does not wait: a local socket is connected at once or refused.
  if (::connect(importer->socket_.fd(), reinterpret_cast<const sockaddr*>(&address.at),
                address.length) != 0) {
    return fail(Errc::unsupported,
                "the peer is not on this host or in another network namespace: with GDRX_NET_GPU=1 "
                "all ranks must be where GPU memory can be handed over; set GDRX_NET_GPU=0",
                errno);
  }
  GDRX_TRY(same_user(importer->socket_));
  return importer;
}

IpcImporter::~IpcImporter() {
  if (context_ == nullptr) return;
  const OwnContext::Inside inside(*context_);
  for (const Mapping& mapping : mapped_) {
    if (mapping.at == 0) continue;
    driver().unmap(mapping.at, mapping.size);
    driver().unreserve(mapping.at, mapping.size);
  }
}

Result<std::optional<std::span<std::byte>>> IpcImporter::find(
    std::uint32_t id, const std::shared_ptr<OwnContext>& context) {
  context_ = context;
  while (id > mapped_.size()) {
    if (!GDRX_TRY(take_one())) return std::optional<std::span<std::byte>>();
  }
  if (id == 0) return fail(Errc::protocol, "a peer names GPU memory that it never gave");
  return std::optional(mapped_[id - 1].part);
}

Result<bool> IpcImporter::take_one() {
  Note note;
  iovec piece{&note, sizeof note};
  ControlBuffer control{};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = &control;
  message.msg_controllen = sizeof control;
  const ssize_t got = recvmsg(socket_.fd(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  const cmsghdr* head = CMSG_FIRSTHDR(&message);
  if (got != sizeof note || head == nullptr || head->cmsg_type != SCM_RIGHTS ||
      head->cmsg_len != CMSG_LEN(sizeof(int))) {
    return fail(Errc::protocol, "the peer handed over something else than GPU memory");
  }
  int descriptor = -1;
  std::memcpy(&descriptor, CMSG_DATA(head), sizeof descriptor);
  auto mapped = map(note, descriptor);
  close(descriptor);
  GDRX_TRY(std::move(mapped));
  return true;
}

Result<void> IpcImporter::map(const Note& note, int descriptor) {
  if (note.id != mapped_.size() + 1 || note.offset > note.allocation ||
      note.bytes > note.allocation - note.offset) {
    return fail(Errc::protocol, "an impossible description of GPU memory");
  }
  const OwnContext::Inside inside(*context_);
  GDRX_TRY(inside.entered());
  Allocation allocation = 0;
  void* handle = reinterpret_cast<void*>(static_cast<std::intptr_t>(descriptor));  // NOLINT
  GDRX_TRY(check(driver().import_from(&allocation, handle, kPosixDescriptor),
                 "cuMemImportFromShareableHandle"));
  Mapping mapping{0, note.allocation, {}};
  auto done = check(driver().reserve(&mapping.at, mapping.size, 0, 0, 0), "cuMemAddressReserve");
  if (done) {
    done = check(driver().map(mapping.at, mapping.size, 0, allocation, 0), "cuMemMap");
  }
  AccessTo access;
  if (done) done = check(driver().device(&access.location_id), "cuCtxGetDevice");
  if (done) {
    done = check(driver().set_access(mapping.at, mapping.size, &access, 1), "cuMemSetAccess");
  }
  driver().release(allocation);  // the mapping holds it
  mapping.part = {reinterpret_cast<std::byte*>(mapping.at + note.offset),
                  static_cast<std::size_t>(note.bytes)};
  mapped_.push_back(mapping);  // undone by the destructor, also when it has failed half way
  return done;
}

}  // namespace gdrx::gpu

// SPDX-License-Identifier: Apache-2.0
// A small network plugin that keeps every rule: TCP over the loopback address, no thread, no state
// beyond its communicators. For the suite's own tests; not for use.
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>

#include "net-conformance/reference/comm.hpp"
#include "net-conformance/reference/tables.hpp"

namespace gdrx::reference {

namespace {

constexpr std::uint64_t kMagic = 0x7265666572656e63;
constexpr int kDevices = 2;

/// In NCCL's 128 bytes. The last two belong to the process that connects.
struct Handle {
  std::uint64_t magic;
  std::uint64_t nonce;
  sockaddr_in address;
  std::uint64_t begun;
  int fd;
};
static_assert(sizeof(Handle) <= nccl::kHandleMaxSize);

struct Hello {
  std::uint64_t magic;
  std::uint64_t nonce;
};

struct Listener {
  Socket socket;
  std::uint64_t nonce;
  Socket guest;  // has connected and not yet said hello
};

Socket tcp_socket() {
  return Socket(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

void no_delay(int fd) {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

}  // namespace

NetResult devices(int* count) {
  *count = kDevices;
  return NetResult::success;
}

NetResult properties(int device, nccl::NetPropertiesV12* out) {
  static char names[kDevices][16] = {"reference0", "reference1"};
  if (device < 0 || device >= kDevices) {
    return NetResult::invalid_argument;
  }
  *out = {};
  out->name = names[device];
  out->guid = static_cast<std::uint64_t>(device) + 1;
  out->ptr_support = nccl::kPtrHost;
  if (std::getenv("REFERENCE_CLAIMS_CUDA") != nullptr) {  // so that the rules of flushes are tried
    out->ptr_support |= nccl::kPtrCuda;
  }
  out->reg_is_global = 1;
  out->speed = 10000;
  out->port = 1;
  out->max_comms = 1 << 16;
  out->max_recvs = kMaxRecvs;
  out->v_props = {1, {device}};
  out->max_p2p_bytes = std::size_t{1} << 30;
  out->max_coll_bytes = std::size_t{1} << 30;
  out->max_multi_request_size = 1;
  out->rail_id = -1;
  out->plane_id = -1;
  return NetResult::success;
}

NetResult listen(void*, int device, void* opaque, void** comm) {
  if (device < 0 || device >= kDevices) {
    return NetResult::invalid_argument;
  }
  auto listener = std::make_unique<Listener>();
  listener->socket = tcp_socket();
  Handle handle{};
  handle.magic = kMagic;
  handle.address.sin_family = AF_INET;
  handle.address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* const address = reinterpret_cast<sockaddr*>(&handle.address);
  socklen_t length = sizeof handle.address;
  const int fd = listener->socket.fd();
  if (getrandom(&handle.nonce, sizeof handle.nonce, 0) != sizeof handle.nonce ||
      bind(fd, address, length) != 0 || ::listen(fd, SOMAXCONN) != 0 ||
      getsockname(fd, address, &length) != 0) {
    return NetResult::system_error;
  }
  listener->nonce = handle.nonce;
  std::memset(opaque, 0, nccl::kHandleMaxSize);
  std::memcpy(opaque, &handle, sizeof handle);
  *comm = listener.release();
  return NetResult::success;
}

NetResult connect(void*, int, void* opaque, void** comm) {
  *comm = nullptr;
  Handle handle;
  std::memcpy(&handle, opaque, sizeof handle);
  if (handle.magic != kMagic) {
    return NetResult::invalid_argument;
  }
  if (handle.begun == 0) {
    Socket socket = tcp_socket();
    const auto* address = reinterpret_cast<const sockaddr*>(&handle.address);
    if (!socket ||
        (::connect(socket.fd(), address, sizeof handle.address) != 0 && errno != EINPROGRESS)) {
      return NetResult::system_error;
    }
    no_delay(socket.fd());
    handle.begun = 1;
    handle.fd = socket.fd();
    std::memcpy(opaque, &handle, sizeof handle);
    socket.release();  // the handle has it now
    return NetResult::success;
  }
  pollfd writable{handle.fd, POLLOUT, 0};
  if (poll(&writable, 1, 0) == 0) {
    return NetResult::success;
  }
  Socket socket(handle.fd);
  handle.begun = 0;
  std::memcpy(opaque, &handle, sizeof handle);
  const Hello hello{kMagic, handle.nonce};
  if (send(socket.fd(), &hello, sizeof hello, MSG_NOSIGNAL) != sizeof hello) {
    return NetResult::remote_error;
  }
  *comm = std::make_unique<Comm>(std::move(socket), true).release();
  return NetResult::success;
}

NetResult accept(void* opaque, void** comm) {
  *comm = nullptr;
  Listener& listener = *static_cast<Listener*>(opaque);
  if (!listener.guest) {
    listener.guest =
        Socket(accept4(listener.socket.fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  }
  if (!listener.guest) {
    return errno == EAGAIN || errno == EINTR || errno == ECONNABORTED ? NetResult::success
                                                                      : NetResult::system_error;
  }
  Hello hello{};
  const ssize_t got = recv(listener.guest.fd(), &hello, sizeof hello, MSG_PEEK);
  if (got == sizeof hello) {
    recv(listener.guest.fd(), &hello, sizeof hello, 0);
  } else if (got < 0 ? errno == EAGAIN : got > 0) {
    return NetResult::success;
  }
  Socket guest = std::move(listener.guest);
  if (hello.magic == kMagic && hello.nonce == listener.nonce) {
    no_delay(guest.fd());
    *comm = std::make_unique<Comm>(std::move(guest), false).release();
  }
  return NetResult::success;
}

NetResult close_comm(void* comm) {
  delete static_cast<Comm*>(comm);
  return NetResult::success;
}

NetResult close_listener(void* comm) {
  delete static_cast<Listener*>(comm);
  return NetResult::success;
}

NetResult reg_mr(void*, void*, std::size_t, int, void** mhandle) {
  *mhandle = std::make_unique<char>().release();
  return NetResult::success;
}

NetResult dereg_mr(void*, void* mhandle) {
  delete static_cast<char*>(mhandle);
  return NetResult::success;
}

NetResult isend(void* comm, void* data, std::size_t size, int tag, void** request) {
  Request* mine = nullptr;
  const NetResult result =
      static_cast<Comm*>(comm)->isend(static_cast<std::byte*>(data), size, tag, &mine);
  *request = mine;
  return result;
}

NetResult irecv(void* comm, int n, void** data, const std::size_t* sizes, const int* tags,
                void** request) {
  Request* mine = nullptr;
  const NetResult result = static_cast<Comm*>(comm)->irecv(
      {data, n > 0 ? static_cast<std::size_t>(n) : 0}, sizes, tags, &mine);
  *request = mine;
  return result;
}

NetResult test(void* opaque, int* done, int* sizes) {
  Request& request = *static_cast<Request*>(opaque);
  *done = 0;
  const NetResult result = request.done ? NetResult::success : request.comm->progress();
  if (!request.done) {
    return result;
  }
  *done = 1;
  const int written = request.is_send ? 1 : static_cast<int>(request.announcement.count);
  if (sizes != nullptr) {
    std::memcpy(sizes, request.sizes.data(), static_cast<std::size_t>(written) * sizeof(int));
  }
  request.used = false;
  return NetResult::success;
}

}  // namespace gdrx::reference

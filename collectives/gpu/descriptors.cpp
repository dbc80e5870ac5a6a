// SPDX-License-Identifier: Apache-2.0
#include "collectives/gpu/descriptors.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <thread>
#include <vector>

#include "base/own_thread.hpp"
#include "collectives/gpu/descriptor_wire.hpp"
#include "gdrx/waits.hpp"

namespace gdrx::gpu {
namespace {

using std::chrono::milliseconds;

// A client that says nothing keeps the others waiting for this long at most, once it is trusted
// for longer.
constexpr milliseconds kGreeting{1000};
constexpr milliseconds kPatience{10000};

Result<DescriptorAddress> random_address() {
  DescriptorAddress address;
  if (getrandom(&address, sizeof address, 0) != sizeof address) {
    return fail(Errc::system, "getrandom", errno);
  }
  return address;
}

Result<Descriptor> unix_socket() {
  Descriptor made(Unforked::open(
      [] { return socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0); }));
  if (!made.valid()) return fail(Errc::system, "a Unix socket", errno);
  return made;
}

// Takes as long whatever the first wrong byte is.
bool equal(const std::array<std::uint8_t, 16>& a, const std::array<std::uint8_t, 16>& b) {
  unsigned differ = 0;
  for (std::size_t i = 0; i < a.size(); ++i) differ |= static_cast<unsigned>(a[i] ^ b[i]);
  return differ == 0;
}

class Server final : public DescriptorServer {
 public:
  Server(DescriptorAddress address, Descriptor listener, Descriptor stop, std::size_t count,
         Source source)
      : address_(address),
        listener_(std::move(listener)),
        stop_(std::move(stop)),
        count_(count),
        source_(std::move(source)),
        thread_("gdrx-handles", [this] { run(); }) {}
  ~Server() override {
    eventfd_write(stop_.fd(), 1);
    thread_.join();
  }
  const DescriptorAddress& address() const noexcept override { return address_; }

 private:
  // Whoever is refused or fails learns it by the end of his socket; the others go on.
  void run() {
    while (wait_for(listener_.fd(), POLLIN, Deadline::never(), "a client", stop_.fd())) {
      try {
        take_one();
      } catch (const std::bad_alloc&) {  // its socket ends
      }
    }
  }

  void take_one() {
    const Descriptor client(Unforked::open([this] {
      return accept4(listener_.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    }));
    if (!client.valid()) {  // no room for it yet
      (void)wait_for(stop_.fd(), POLLIN, Deadline::after(steady_clock(), milliseconds(10)), "room");
    } else if (welcome(client.fd())) {
      (void)serve(client.fd());
    }
  }

  bool welcome(int client) {
    ucred who{};
    socklen_t size = sizeof who;
    if (getsockopt(client, SOL_SOCKET, SO_PEERCRED, &who, &size) != 0) return false;
    if (who.uid != geteuid() && who.uid != 0) return false;
    DescriptorRequest request;
    const auto deadline = Deadline::after(steady_clock(), kGreeting);
    if (!receive_message(client, &request, sizeof request, stop_.fd(), deadline)) return false;
    return request.magic == DescriptorRequest::kMagic &&
           request.version == DescriptorRequest::kVersion && request.count == count_ &&
           equal(request.nonce, address_.nonce);
  }

  Result<void> serve(int client) {
    for (std::size_t first = 0; first < count_; first += kDescriptorsAtOnce) {
      const auto deadline = Deadline::after(steady_clock(), kPatience);
      DescriptorBatch batch;
      batch.first = first;
      auto made = make(first, std::min(kDescriptorsAtOnce, count_ - first));
      if (!made) {
        const std::string why = describe(made.error()).substr(0, kLongestReason);
        batch.reason_bytes = static_cast<std::uint32_t>(why.size());
        std::memcpy(batch.reason.data(), why.data(), why.size());
        return send_message(client, &batch, sizeof batch, {}, stop_.fd(), deadline);
      }
      batch.count = static_cast<std::uint32_t>(made->size());
      GDRX_TRY(send_message(client, &batch, sizeof batch, *made, stop_.fd(), deadline));
      made->clear();  // theirs now
      std::uint8_t taken = 0;
      GDRX_TRY(receive_message(client, &taken, sizeof taken, stop_.fd(), deadline));
    }
    return {};
  }

  Result<std::vector<Descriptor>> make(std::size_t first, std::size_t count) {
    std::vector<Descriptor> made;
    for (std::size_t i = 0; i < count; ++i) made.push_back(GDRX_TRY(source_(first + i)));
    return made;
  }

  DescriptorAddress address_;
  Descriptor listener_;
  Descriptor stop_;
  std::size_t count_;
  Source source_;
  OwnThread thread_;  // last: it uses the others
};

Result<Descriptor> connect_to(const DescriptorAddress& server, Deadline deadline) {
  const AbstractName name(server.name);
  while (true) {
    Descriptor made = GDRX_TRY(unix_socket());
    if (connect(made.fd(), name.address(), name.length) == 0) return made;
    if (errno == ECONNREFUSED || errno == ENOENT) {
      return fail(Errc::peer_lost, "the process that shares the memory is gone");
    }
    // EAGAIN: others are waiting to be accepted.
    if (errno != EAGAIN && errno != EINTR) return fail(Errc::system, "connect", errno);
    if (deadline.passed(steady_clock().now())) {
      return fail(Errc::timeout, "the process that shares the memory did not answer in time");
    }
    std::this_thread::sleep_for(milliseconds(1));
  }
}

}  // namespace

Result<std::unique_ptr<DescriptorServer>> DescriptorServer::start(std::size_t count,
                                                                  Source source) {
  const DescriptorAddress address = GDRX_TRY(random_address());
  const AbstractName name(address.name);
  Descriptor listener = GDRX_TRY(unix_socket());
  if (bind(listener.fd(), name.address(), name.length) != 0 || listen(listener.fd(), 64) != 0) {
    return fail(Errc::system, "listening on a Unix socket", errno);
  }
  Descriptor stop(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!stop.valid()) return fail(Errc::system, "eventfd", errno);
  return std::unique_ptr<DescriptorServer>(std::make_unique<Server>(
      address, std::move(listener), std::move(stop), count, std::move(source)));
}

Result<void> fetch_descriptors(
    const DescriptorAddress& server, std::size_t count,
    const std::function<Result<void>(std::size_t index, Descriptor descriptor)>& take,
    Deadline deadline) {
  const Descriptor socket = GDRX_TRY(connect_to(server, deadline));
  DescriptorRequest request;
  request.nonce = server.nonce;
  request.count = count;
  GDRX_TRY(send_message(socket.fd(), &request, sizeof request, {}, -1, deadline));
  for (std::size_t taken = 0; taken < count;) {
    DescriptorBatch batch;
    auto received = receive_message(socket.fd(), &batch, sizeof batch, -1, deadline);
    if (!received && received.error().code == Errc::peer_lost && taken == 0) {
      return fail(Errc::peer_lost, "the process that shares the memory refused this one, or ended");
    }
    std::vector<Descriptor> got = GDRX_TRY(std::move(received));
    if (batch.reason_bytes > 0 && batch.reason_bytes <= kLongestReason) {
      return fail(Errc::unsupported, std::string(batch.reason.data(), batch.reason_bytes));
    }
    if (batch.first != taken || got.empty() || got.size() != batch.count ||
        got.size() > count - taken) {
      return fail(Errc::protocol, "other file descriptors came than were announced");
    }
    for (Descriptor& one : got) GDRX_TRY(take(taken++, std::move(one)));
    const std::uint8_t done = 1;
    GDRX_TRY(send_message(socket.fd(), &done, sizeof done, {}, -1, deadline));
  }
  return {};
}

}  // namespace gdrx::gpu

// SPDX-License-Identifier: Apache-2.0
#include "transport/bootstrap/root.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <list>
#include <map>
#include <mutex>
#include <thread>

#include "transport/bootstrap/frame.hpp"
#include "transport/bootstrap/interface.hpp"

namespace gdrx {
namespace {

using std::chrono::seconds;

constexpr std::size_t kMostStrangers = 256;  // connections that have not said hello
constexpr seconds kHelloTime{5};
constexpr std::uint32_t kMostBlob = 1 << 20;

struct Client {
  explicit Client(Socket from) : socket(std::move(from)) {}
  Socket socket;
  FrameReader reader{kMostBlob};
  Blob out;
  std::int32_t rank = -1;    // before hello
  std::optional<Blob> blob;  // of the round under way
  Instant came = steady_clock().now();
  bool closing = false;  // once `out` is empty
};

}  // namespace

class BootstrapRoot::Impl {
 public:
  Impl(Socket listener, Socket wake, const UniqueId& id, const Log& log)
      : id_(id), log_(log), listener_(std::move(listener)), wake_(std::move(wake)) {}

  void run() {
    while (!stop_.load() && !done_.load()) {
      wait();
      accept_all();
      for (Client& client : clients_) serve(client);
      clients_.remove_if([this](const Client& client) { return is_over(client); });
      if (complete() && members() == 0) done_.store(true);
    }
    done_.store(true);
  }

  void stop() {
    stop_.store(true);
    eventfd_write(wake_.fd(), 1);
  }

  UniqueId id_;
  std::atomic<bool> done_{false};

 private:
  void wait() {
    std::vector<pollfd> entries{{listener_.fd(), POLLIN, 0}, {wake_.fd(), POLLIN, 0}};
    for (const Client& client : clients_) {
      const short events = static_cast<short>(client.out.empty() ? POLLIN : POLLIN | POLLOUT);
      entries.push_back({client.socket.fd(), events, 0});
    }
    poll(entries.data(), entries.size(), 1000);
  }

  void accept_all() {
    while (true) {
      auto socket = listener_.accept();
      if (!socket || !socket->valid()) return;
      if (clients_.size() - static_cast<std::size_t>(members()) < kMostStrangers) {
        clients_.emplace_back(std::move(*socket));
      }
    }
  }

  void serve(Client& client) {
    std::array<std::byte, 4096> piece;
    while (!client.closing) {
      auto received = client.socket.receive_some(piece);
      if (!received) {
        client.closing = true;
        client.out.clear();
      }
      if (!received || *received == 0) break;
      client.reader.feed(std::span(piece).first(*received));
      drain(client);
    }
    while (!client.out.empty()) {
      auto sent = client.socket.send_some(client.out);
      if (!sent) {
        client.closing = true;
        client.out.clear();
      }
      if (!sent || *sent == 0) break;
      client.out.erase(client.out.begin(), client.out.begin() + static_cast<std::ptrdiff_t>(*sent));
    }
  }

  void drain(Client& client) {
    while (!client.closing) {
      auto frame = client.reader.next();
      if (!frame) return refuse(client, frame.error().what);
      if (!*frame) return;
      take(client, **frame);
    }
  }

  void take(Client& client, const Frame& frame) {
    if (client.rank < 0) {
      if (frame.kind != FrameKind::hello) return refuse(client, "no hello");
      return greet(client, frame);
    }
    if (frame.kind != FrameKind::data || client.blob) return refuse(client, "out of turn");
    client.blob = frame.payload;
    finish_round();
  }

  void greet(Client& client, const Frame& frame) {
    const auto hello = decode_hello_frame(frame.payload);
    if (!hello) return refuse(client, hello.error().what);
    if (hello->nonce[0] != id_.nonce[0] || hello->nonce[1] != id_.nonce[1]) {
      return refuse(client, "the unique id is not this root's");
    }
    if (size_ != 0 && hello->size != size_) {
      return refuse(client, fmt::format("rank {} says there are {} ranks, others say {}",
                                        hello->rank, hello->size, size_));
    }
    for (const Client& other : clients_) {
      if (other.rank == hello->rank) {
        return refuse(client, fmt::format("rank {} has come already", hello->rank));
      }
    }
    size_ = hello->size;
    client.rank = hello->rank;
    ++seen_;
    send(client, FrameKind::accepted, {});
  }

  void finish_round() {
    std::map<std::int32_t, Client*> ready;
    for (Client& client : clients_) {
      if (client.blob) ready[client.rank] = &client;
    }
    if (static_cast<std::int32_t>(ready.size()) != size_) return;
    Blob all;
    for (const auto& [rank, client] : ready) append_blob(all, *client->blob);
    for (const auto& [rank, client] : ready) {
      client->blob.reset();
      send(*client, FrameKind::data, all);
    }
  }

  void send(Client& client, FrameKind kind, std::span<const std::byte> payload) {
    const Blob frame = encode_frame(kind, payload);
    client.out.insert(client.out.end(), frame.begin(), frame.end());
  }

  void refuse(Client& client, const std::string& why) {
    log_.info("bootstrap root refuses a connection: {}", why);
    send(client, FrameKind::refused, std::as_bytes(std::span(why)));
    client.closing = true;
  }

  bool is_over(const Client& client) const {
    const bool silent = client.rank < 0 && steady_clock().now() - client.came > kHelloTime;
    return silent || (client.closing && client.out.empty());
  }

  std::int32_t members() const {
    return static_cast<std::int32_t>(std::count_if(clients_.begin(), clients_.end(),
                                                   [](const Client& c) { return c.rank >= 0; }));
  }
  bool complete() const { return size_ > 0 && seen_ >= size_; }

  Log log_;
  Socket listener_;
  Socket wake_;
  std::list<Client> clients_;
  std::int32_t size_ = 0;
  std::int32_t seen_ = 0;
  std::atomic<bool> stop_{false};

 public:
  std::jthread thread;  // last: it uses everything above
};

Result<std::unique_ptr<BootstrapRoot>> BootstrapRoot::start(const SocketAddress& at,
                                                            const Log& log) {
  Socket listener = GDRX_TRY(Socket::listen(at));
  const SocketAddress address = GDRX_TRY(listener.local_address());
  Socket wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.valid()) return fail(Errc::system, "eventfd", errno);
  const UniqueId id = GDRX_TRY(make_id_for(address));
  auto impl = std::make_unique<Impl>(std::move(listener), std::move(wake), id, log);
  impl->thread = std::jthread([raw = impl.get()] { raw->run(); });
  return std::unique_ptr<BootstrapRoot>(new BootstrapRoot(std::move(impl)));
}

BootstrapRoot::BootstrapRoot(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
BootstrapRoot::~BootstrapRoot() { impl_->stop(); }
const UniqueId& BootstrapRoot::id() const noexcept { return impl_->id_; }
bool BootstrapRoot::finished() const noexcept { return impl_->done_.load(); }

Result<UniqueId> make_unique_id(const std::string& socket_ifname, const Log& log) {
  // Roots live in the process that made the id; those that have served are put away here.
  static std::mutex mutex;
  static std::list<std::unique_ptr<BootstrapRoot>> roots;
  const std::vector<Interface> all = list_interfaces();
  Interface chosen = GDRX_TRY(choose_interface(all, socket_ifname));
  log.info("unique id: root listens on {} ({})", chosen.name, to_string(chosen.address));
  chosen.address.port = 0;
  auto root = GDRX_TRY(BootstrapRoot::start(chosen.address, log));
  const UniqueId id = root->id();
  const std::lock_guard lock(mutex);
  roots.remove_if([](const auto& old) { return old->finished(); });
  roots.push_back(std::move(root));
  return id;
}

}  // namespace gdrx

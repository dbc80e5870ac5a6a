// SPDX-License-Identifier: Apache-2.0
#include "transport/bootstrap/root.hpp"

#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <deque>
#include <list>
#include <mutex>

#include "base/own_thread.hpp"
#include "transport/bootstrap/host_socket.hpp"
#include "transport/bootstrap/interface.hpp"
#include "transport/bootstrap/root_protocol.hpp"
#include "transport/bootstrap/secure_socket.hpp"
#include "transport/bootstrap/shortage.hpp"
#include "transport/bootstrap/strangers.hpp"

namespace gdrx {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr seconds kStrangerTime{10};     // to say hello, and to read a refusal
constexpr seconds kAnswersOut{1};        // to hand out answers when the process ends
constexpr milliseconds kShortSleep{50};  // while nobody is let in
constexpr int kPiecesAtOnce = 64;        // then it is the next one's turn
constexpr int kMostRefusalsLogged = 20;

struct Client {
  Client(SecureSocket from, RootProtocol::PeerNumber number)
      : socket(std::move(from)), number(number) {}
  SecureSocket socket;
  RootProtocol::PeerNumber number;
  FrameReader reader{sizeof(HelloFrame)};
  std::deque<std::shared_ptr<const Blob>> out;
  std::size_t sent = 0;  // of the first of `out`
  Shortage shortage;
  Silence silence;
  Instant since = silence.came();
  bool member = false;
  bool closing = false;  // once `out` is empty
  bool ended = false;    // the connection is
};

/// Where ranks come in: over the network, or from this host.
struct Door {
  Socket listener;
  bool on_host = false;
  Admission admission{};
};

Instant silent_since(const Client& client) {
  return client.member ? Instant::max() : client.silence.since();
}

}  // namespace

class BootstrapRoot::Impl {
 public:
  Impl(std::vector<Door> doors, Socket wake, const UniqueId& id, const Log& log, const Key& key)
      : id_(id),
        log_(log),
        doors_(std::move(doors)),
        wake_(std::move(wake)),
        key_(key),
        protocol_(id.nonce) {}
  ~Impl() { stop(); }  // here: nobody may have come to own it when its thread runs already

  // Out of memory it ends: who waits for it hears that the connection has.
  void run() noexcept {
    try {
      serve_all();
    } catch (...) {  // NOLINT(bugprone-empty-catch): nobody is there to be told
    }
    clients_.clear();
    doors_.clear();
    done_.store(true);
  }

  void serve_all() {
    while (!stop_.load() && !(protocol_.over() && clients_.empty())) {
      wait(milliseconds(1000));
      for (Client& client : clients_) serve(client);  // before somebody is put out
      const RootProtocol::PeerNumber first = next_number_;
      for (Door& door : doors_) accept_some(door);
      for (Client& client : clients_) {
        if (client.number >= first) serve(client);
      }
      sweep();
    }
    hand_out_the_rest();
  }

  void stop() {
    stop_.store(true);
    eventfd_write(wake_.fd(), 1);
  }

  UniqueId id_;
  std::atomic<bool> done_{false};

 private:
  void wait(Duration longest) {
    std::vector<pollfd> entries{{wake_.fd(), POLLIN, 0}};
    for (const Door& door : doors_) {
      if (door.admission.paused()) longest = std::min<Duration>(longest, kShortSleep);
      if (!door.admission.paused()) entries.push_back({door.listener.fd(), POLLIN, 0});
    }
    for (Client& client : clients_) {
      const bool unsent = !client.out.empty() || client.socket.unsent();
      const int events =
          (client.closing ? 0 : POLLIN) | client.shortage.events(unsent, client.socket, longest);
      if (!client.closing && client.socket.pending()) longest = Duration::zero();
      entries.push_back({client.socket.fd(), static_cast<short>(events), 0});
    }
    const auto ms = std::chrono::ceil<milliseconds>(longest).count();
    poll(entries.data(), entries.size(), static_cast<int>(ms));
  }

  void accept_some(Door& door) {
    const auto news = door.admission.turn(
        door.listener, [this] { return clients_.size() - protocol_.members(); },
        [this] { return put_out_a_stranger(clients_, silent_since); },
        [&](Socket socket) {
          auto secure = door.on_host ? greet_on_host(std::move(socket)) : greet(std::move(socket));
          if (secure) clients_.emplace_back(std::move(*secure), next_number_++);
        });
    if (news) log_.warn("bootstrap root: {}: no new ranks for a moment", describe(*news));
  }

  Result<SecureSocket> greet(Socket socket) const {
    return SecureSocket::server(std::move(socket), [key = key_](std::string_view wanted) {
      return wanted == kRootIdentity ? std::optional<Key>(key) : std::nullopt;
    });
  }

  Result<SecureSocket> greet_on_host(Socket socket) const {
    if (!is_of_this_user(socket)) return fail(Errc::protocol, "another user's process");
    return SecureSocket::server_here(std::move(socket), std::string(kRootIdentity), key_);
  }

  void serve(Client& client) {
    std::array<std::byte, 4096> piece;
    for (int i = 0; i < kPiecesAtOnce && !client.closing && !client.ended; ++i) {
      const std::uint64_t before = client.socket.heard();
      const auto received = client.socket.receive_some(piece);
      if (client.socket.heard() != before) client.silence.spoke();
      if (!received) {
        client.ended = true;
        if (received.error().code == Errc::protocol) log_refusal(received.error().what);
      }
      if (!received || *received == 0) break;
      client.reader.feed(std::span(piece).first(*received));
      drain(client);
    }
    push_out(client);
  }

  void drain(Client& client) {
    while (!client.closing) {
      const auto frame = client.reader.next();
      if (frame && !*frame) return;
      act(frame ? protocol_.take(client.number, **frame)
                : protocol_.refuse(client.number, frame.error().what));
      if (client.closing) log_refusal(protocol_.last_refusal());
      client.member = protocol_.is_member(client.number);
      if (client.member) client.reader.set_limit(kMostGatheredBlob);
    }
  }

  void act(const RootProtocol::Replies& replies) {
    for (const RootProtocol::Reply& reply : replies) {
      const auto client = std::find_if(clients_.begin(), clients_.end(),
                                       [&](const Client& one) { return one.number == reply.to; });
      if (client == clients_.end()) continue;
      client->out.push_back(reply.frame);
      if (reply.close) {
        client->closing = true;
        client->since = steady_clock().now();
      }
    }
  }

  void push_out(Client& client) {
    while (!client.out.empty() && !client.ended) {
      const auto sent =
          client.socket.send_some(std::span(*client.out.front()).subspan(client.sent));
      if (!sent) client.ended = true;
      if (!sent || *sent == 0) return;
      client.sent += *sent;
      if (client.sent < client.out.front()->size()) continue;
      client.out.pop_front();
      client.sent = 0;
    }
    if (!client.ended && !client.socket.flush()) client.ended = true;
  }

  void sweep() {
    const Instant now = steady_clock().now();
    for (Client& client : clients_) {
      const bool late = (!client.member || client.closing) && now - client.since > kStrangerTime;
      const bool told = client.closing && client.out.empty() && !client.socket.unsent();
      if (late || told) client.ended = true;
      if (client.ended) act(protocol_.leave(client.number));
    }
    clients_.remove_if([](const Client& client) { return client.ended; });
    for (Client& client : clients_) push_out(client);
  }

  // The process that made the id may end as soon as it has its own answer.
  void hand_out_the_rest() {
    const Deadline deadline = Deadline::after(steady_clock(), kAnswersOut);
    for (Client& client : clients_) {
      if (!client.socket.established()) continue;
      std::size_t sent = client.sent;
      for (const auto& frame : client.out) {
        if (!client.socket.send_all(std::span(*frame).subspan(std::exchange(sent, 0)), deadline)) {
          break;
        }
      }
      (void)client.socket.send_all({}, deadline);
    }
  }

  // A port scan must not fill the log.
  void log_refusal(const std::string& why) {
    if (++refusals_ > kMostRefusalsLogged) return;
    log_.info("bootstrap root refuses a connection: {}{}", why,
              refusals_ == kMostRefusalsLogged ? " (later ones are not logged)" : "");
  }

  Log log_;
  std::vector<Door> doors_;
  Socket wake_;
  Key key_;
  RootProtocol protocol_;
  std::list<Client> clients_;  // in the order of their coming
  RootProtocol::PeerNumber next_number_ = 1;
  int refusals_ = 0;
  std::atomic<bool> stop_{false};

 public:
  OwnThread thread;  // last: it uses everything above
};

Result<std::unique_ptr<BootstrapRoot>> BootstrapRoot::start(const SocketAddress& at, const Log& log,
                                                            const Secret& secret, PortRange ports) {
  Unforked::raise_limit();  // each rank is a connection
  Socket listener = GDRX_TRY(Socket::listen(at, ports));
  const SocketAddress address = GDRX_TRY(listener.local_address());
  Socket wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.valid()) return fail(Errc::system, "eventfd", errno);
  const UniqueId id = GDRX_TRY(make_id_for(address));
  const Key key = GDRX_TRY(root_key(id, secret));
  std::vector<Door> doors;
  doors.push_back({std::move(listener)});
  // Where it is not to be had, ranks of this host come over the network, too.
  if (const auto name = root_name(id)) {
    auto on_host = listen_on_host(*name);
    if (on_host) doors.push_back({std::move(*on_host), true});
  }
  auto impl = std::make_unique<Impl>(std::move(doors), std::move(wake), id, log, key);
  impl->thread = OwnThread("gdrx-root", [raw = impl.get()] { raw->run(); });
  return std::unique_ptr<BootstrapRoot>(new BootstrapRoot(std::move(impl)));
}

BootstrapRoot::BootstrapRoot(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
BootstrapRoot::~BootstrapRoot() = default;
const UniqueId& BootstrapRoot::id() const noexcept { return impl_->id_; }
bool BootstrapRoot::finished() const noexcept { return impl_->done_.load(); }

namespace {

// Roots live in the process that made the id; those that have served are put away here.
struct Roots {
  std::mutex mutex;
  std::list<std::unique_ptr<BootstrapRoot>> all;
};
Roots& roots() {
  static Roots roots;
  return roots;
}

bool same(const UniqueId& a, const UniqueId& b) noexcept {
  return std::equal(std::begin(a.nonce), std::end(a.nonce), std::begin(b.nonce));
}

}  // namespace

void retire_unique_id(const UniqueId& id) noexcept {
  std::list<std::unique_ptr<BootstrapRoot>> retired;  // ends outside the lock
  const std::lock_guard lock(roots().mutex);
  const auto found = std::find_if(roots().all.begin(), roots().all.end(),
                                  [&](const auto& root) { return same(root->id(), id); });
  if (found != roots().all.end()) retired.splice(retired.end(), roots().all, found);
}

Result<UniqueId> make_unique_id(const std::string& socket_ifname, const Log& log,
                                const Secret& secret, PortRange ports) {
  const std::vector<Interface> all = list_interfaces();
  Interface chosen = GDRX_TRY(choose_interface(all, socket_ifname));
  log.info("unique id: root listens on {} ({})", chosen.name, to_string(chosen.address));
  chosen.address.port = 0;
  auto root = GDRX_TRY(BootstrapRoot::start(chosen.address, log, secret, ports));
  const UniqueId id = root->id();
  const std::lock_guard lock(roots().mutex);
  roots().all.remove_if([](const auto& old) { return old->finished(); });
  roots().all.push_back(std::move(root));
  return id;
}

}  // namespace gdrx

// SPDX-License-Identifier: Apache-2.0
#include "transport/bootstrap/tcp_bootstrap.hpp"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <thread>

#include "base/printable.hpp"
#include "transport/bootstrap/host_socket.hpp"
#include "transport/bootstrap/insist.hpp"
#include "transport/bootstrap/root_protocol.hpp"

namespace gdrx {
namespace {

constexpr std::chrono::milliseconds kComeAgain{20};
constexpr std::chrono::milliseconds kReadRefusal{200};
constexpr std::chrono::seconds kLongestAtTheDoor{2};

std::uint32_t longest_answer(int size) {
  const auto all = static_cast<std::uint64_t>(size) * (kMostGatheredBlob + sizeof(std::uint32_t));
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(all, kMaxFrame));
}

}  // namespace

TcpBootstrap::TcpBootstrap(SecureSocket root, const SocketAddress& address, Rank rank, int size)
    : root_(std::move(root)),
      address_(address),
      reader_(longest_answer(size)),
      rank_(rank),
      size_(size) {}

// By the door of the root's host. Who has shown the key there is the root; whatever else it is, the
// network leads to the real one.
Result<SecureSocket> TcpBootstrap::connect_here(const UniqueId& id, const Key& key,
                                                Deadline deadline) {
  Socket here = GDRX_TRY(connect_on_host(GDRX_TRY(root_name(id))));
  if (!is_of_this_user(here)) return fail(Errc::peer_lost, "the door is another user's");
  SecureSocket root = SecureSocket::client_here(std::move(here), std::string(kRootIdentity), key);
  const Instant now = steady_clock().now();
  const Duration time = std::min<Duration>(kLongestAtTheDoor, deadline.left(now));
  GDRX_TRY(root.handshake(Deadline::after(steady_clock(), time)));
  return root;
}

Result<SecureSocket> TcpBootstrap::connect(const UniqueId& id, const Key& key, bool on_host,
                                           Deadline deadline) {
  if (on_host) {
    if (auto here = connect_here(id, key, deadline)) return std::move(*here);
  }
  return SecureSocket::client(GDRX_TRY(Socket::connect(id.root, deadline)),
                              std::string(kRootIdentity), key);
}

Result<std::unique_ptr<Bootstrap>> TcpBootstrap::create(const UniqueId& id, Rank rank, int size,
                                                        const Log& log, Deadline deadline,
                                                        const Secret& secret) {
  const UniqueId checked = GDRX_TRY(decode_unique_id(std::as_bytes(std::span(&id, 1))));
  if (size < 1 || size > kMostRanks || index(rank) < 0 || index(rank) >= size) {
    return fail(Errc::invalid_argument, fmt::format("rank {} of {} ranks", index(rank), size));
  }
  const Key key = GDRX_TRY(root_key(checked, secret));
  log.info("rank {} joins {}", index(rank), to_string(checked.root));
  for (bool first = true;; first = false) {
    auto secure = GDRX_TRY(connect(checked, key, first, deadline));
    auto joined = std::unique_ptr<TcpBootstrap>(
        new TcpBootstrap(std::move(secure), checked.root, rank, size));
    const auto welcome = joined->say_hello(checked, deadline);
    if (welcome) return std::unique_ptr<Bootstrap>(std::move(joined));
    // A root under a crowd of strangers may have let go of us before it heard our hello.
    const Duration left = deadline.left(steady_clock().now());
    if (welcome.error().code != Errc::peer_lost || left == Duration::zero()) {
      return tl::unexpected(welcome.error());
    }
    std::this_thread::sleep_for(std::min<Duration>(kComeAgain, left));
  }
}

Result<void> TcpBootstrap::say_hello(const UniqueId& id, Deadline deadline) {
  if (auto shaken = root_.handshake(deadline); !shaken) {
    if (shaken.error().code != Errc::protocol) return shaken;
    return fail(Errc::protocol,
                fmt::format("{} does not hold this unique id's key: is the id another one's, or "
                            "GDRX_SECRET_FILE not the same here as where the id was made? ({})",
                            to_string(address_), shaken.error().what));
  }
  const HelloFrame hello{{id.nonce[0], id.nonce[1]}, index(rank_), size_};
  const Blob frame = encode_frame(FrameKind::hello, std::as_bytes(std::span(&hello, 1)));
  GDRX_TRY(root_.send_all(frame, deadline));
  const Frame answer = GDRX_TRY(receive(deadline));
  if (answer.kind != FrameKind::accepted) return fail(Errc::protocol, "the root did not answer");
  return {};
}

// What the root says instead of an answer.
Result<void> TcpBootstrap::check(const Frame& frame) const {
  if (frame.kind == FrameKind::refused) {
    return fail(Errc::protocol, fmt::format("the root refused rank {}: {}", index(rank_),
                                            printable(frame.payload)));
  }
  if (frame.kind == FrameKind::broken) return fail(Errc::peer_lost, printable(frame.payload));
  return {};
}

tl::unexpected<Error> TcpBootstrap::late(const std::string& missing) const {
  const std::string who = missing.empty()
                              ? fmt::format("the root at {} does not answer", to_string(address_))
                              : missing;
  return fail(Errc::timeout,
              fmt::format("rank {} waited in vain: {} (GDRX_INIT_TIMEOUT sets how long it waits)",
                          index(rank_), who));
}

Result<Frame> TcpBootstrap::receive(Deadline deadline) {
  std::array<std::byte, 4096> piece;
  std::string missing;
  // Late enough that the answer is news, early enough that it is here by the deadline.
  const Instant begin = steady_clock().now();
  const Deadline ask = Deadline::after(steady_clock(), deadline.left(begin) / 10 * 9);
  Waits until_asked(root_.fd(), ask, "the root"), to_the_end(root_.fd(), deadline, "the root");
  bool asked = false;
  while (true) {
    auto frame = GDRX_TRY(insist(deadline, [&] { return reader_.next(); }));
    if (frame && frame->kind == FrameKind::missing) {
      missing = printable(frame->payload);
      continue;
    }
    if (frame) {
      GDRX_TRY(check(*frame));
      return std::move(*frame);
    }
    const std::size_t received = GDRX_TRY(root_.receive_some(piece));
    insist(deadline, [&] { reader_.feed(std::span(piece).first(received)); });
    const auto ready = (asked ? to_the_end : until_asked).go_on(received, POLLIN);
    if (ready) continue;
    if (ready.error().code != Errc::timeout) return tl::unexpected(ready.error());
    if (asked) return late(missing);
    asked = true;
    GDRX_TRY(root_.send_all(encode_frame(FrameKind::query, {}), deadline));
  }
}

Result<std::vector<Blob>> TcpBootstrap::all_gather(std::span<const std::byte> mine,
                                                   Deadline deadline) {
  if (mine.size() > kMostGatheredBlob) {
    return fail(Errc::invalid_argument,
                fmt::format("rank {} gathers {} bytes where {} are the most", index(rank_),
                            mine.size(), kMostGatheredBlob));
  }
  Blob frame;
  try {
    frame = encode_frame(FrameKind::data, mine);
  } catch (const std::bad_alloc&) {
    return tl::unexpected(no_memory());
  }
  if (const auto sent = root_.send_all(frame, deadline); !sent) {
    // The root may have said why before it hung up.
    const auto last = receive(Deadline::after(steady_clock(), kReadRefusal));
    return tl::unexpected(last || last.error().code == Errc::timeout ? sent.error() : last.error());
  }
  const Frame answer = GDRX_TRY(receive(deadline));
  if (answer.kind != FrameKind::data) return fail(Errc::protocol, "the root answered out of turn");
  return insist(deadline,
                [&] { return split_blobs(answer.payload, static_cast<std::size_t>(size_)); });
}

}  // namespace gdrx

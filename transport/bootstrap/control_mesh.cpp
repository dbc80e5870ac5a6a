// SPDX-License-Identifier: Apache-2.0
#include "transport/bootstrap/control_mesh.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <thread>

#include "transport/bootstrap/mesh_links.hpp"

namespace gdrx {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t kMostText = 1000;
constexpr milliseconds kSendNotice{200};  // a notice that does not fit by then is given up

struct NoticeHead {
  std::int32_t code = 0;
  std::int32_t origin = 0;
  std::int32_t subject = 0;
};

Blob encode(const Notice& notice) {
  const NoticeHead head{static_cast<std::int32_t>(notice.code), index(notice.origin),
                        index(notice.subject)};
  const std::size_t text = std::min(notice.text.size(), kMostText);
  Blob out(sizeof head + text);
  std::memcpy(out.data(), &head, sizeof head);
  std::memcpy(out.data() + sizeof head, notice.text.data(), text);
  return out;
}

Result<Notice> decode_notice(std::span<const std::byte> bytes) {
  NoticeHead head;
  if (bytes.size() < sizeof head || bytes.size() > sizeof head + kMostText) {
    return fail(Errc::protocol, "a notice of a wrong length");
  }
  std::memcpy(&head, bytes.data(), sizeof head);
  if (head.code < 0 || head.code > static_cast<std::int32_t>(Errc::internal)) {
    return fail(Errc::protocol, "a notice of an unknown kind");
  }
  const auto text = bytes.subspan(sizeof head);
  Notice notice{static_cast<Errc>(head.code), Rank{head.origin}, Rank{head.subject}, {}};
  for (const std::byte b : text) {  // goes to a terminal: nothing that a terminal obeys
    const char c = static_cast<char>(b);
    notice.text += c >= ' ' || c < 0 ? c : ' ';
  }
  return notice;
}

class Mesh final : public ControlMesh {
 public:
  Mesh(MeshLinks links, Rank rank, Socket wake)
      : links_(std::move(links.links)),
        members_(std::move(links.members)),
        description_(std::move(links.description)),
        rank_(rank),
        wake_(std::move(wake)) {}

  ~Mesh() override {
    stop_.store(true);
    eventfd_write(wake_.fd(), 1);
    if (thread_.joinable()) thread_.join();
    const std::lock_guard lock(mutex_);
    send_to_all(encode_frame(FrameKind::goodbye, {}), -1);
    for (MeshLink& link : links_) ::shutdown(link.socket.fd(), SHUT_WR);
  }

  Rank rank() const noexcept override { return rank_; }
  int size() const noexcept override { return static_cast<int>(members_.size()); }
  std::string describe() const override { return description_; }

  Result<std::vector<Blob>> all_gather(std::span<const std::byte> mine,
                                       Deadline deadline) override {
    const std::int32_t n = size();
    const std::int32_t self = index(rank_);
    // After round k a rank has the blobs of itself and of the 2^k - 1 ranks before it.
    std::vector<Blob> backwards{Blob(mine.begin(), mine.end())};
    for (std::int32_t step = 1; step < n; step *= 2) {
      const auto count = static_cast<std::size_t>(std::min(step, n - step));
      Blob packed;
      for (std::size_t i = 0; i < count; ++i) append_blob(packed, backwards[i]);
      const Blob received =
          GDRX_TRY(exchange(link_to((self + step) % n), link_to((self + n - step) % n),
                            encode_frame(FrameKind::data, packed), deadline));
      for (Blob& blob : GDRX_TRY(split_blobs(received, count))) {
        backwards.push_back(std::move(blob));
      }
    }
    std::vector<Blob> all(static_cast<std::size_t>(n));
    for (std::int32_t i = 0; i < n; ++i) {
      all[static_cast<std::size_t>((self + n - i) % n)] =
          std::move(backwards[static_cast<std::size_t>(i)]);
    }
    return all;
  }

  void start(Handlers handlers) override {
    handlers_ = std::move(handlers);
    thread_ = std::thread([this] { run(); });
  }

  void announce(const Notice& notice) noexcept override {
    const std::lock_guard lock(mutex_);
    if (std::exchange(noticed_, true)) return;
    send_to_all(encode_frame(FrameKind::notice, encode(notice)), -1);
  }

  void wake() noexcept override {
    if (sleeping_.load()) eventfd_write(wake_.fd(), 1);
  }

 private:
  MeshLink& link_to(std::int32_t peer) {
    return *std::find_if(links_.begin(), links_.end(),
                         [peer](const MeshLink& link) { return link.peer == peer; });
  }

  // Sends and receives at once: both sides may have more to say than the kernel buffers.
  Result<Blob> exchange(MeshLink& to, MeshLink& from, Blob out, Deadline deadline) {
    std::span<const std::byte> rest(out);
    std::array<std::byte, 16384> piece;
    std::optional<Frame> frame;
    while (!frame || !rest.empty()) {
      if (!rest.empty()) rest = rest.subspan(GDRX_TRY(named(to.socket.send_some(rest), to.peer)));
      if (!frame) frame = GDRX_TRY(from.reader.next());
      if (!frame) {
        const auto received = GDRX_TRY(named(from.socket.receive_some(piece), from.peer));
        from.reader.feed(std::span(piece).first(received));
        if (received > 0) continue;
      }
      if (frame && rest.empty()) break;
      std::array<pollfd, 2> entries{
          {{to.socket.fd(), static_cast<short>(rest.empty() ? 0 : POLLOUT), 0},
           {from.socket.fd(), static_cast<short>(frame ? 0 : POLLIN), 0}}};
      poll(entries.data(), entries.size(), std::min(1000, poll_milliseconds(deadline)));
      if (deadline.passed(steady_clock().now())) {
        return fail(Errc::timeout, fmt::format("no word of rank {} in time", from.peer));
      }
    }
    if (frame->kind != FrameKind::data) return fail(Errc::protocol, "a frame out of turn");
    return std::move(frame->payload);
  }

  Result<std::size_t> named(Result<std::size_t> result, std::int32_t peer) const {
    if (result) return result;
    return fail(Errc::peer_lost, end_of(peer) + ": " + result.error().what);
  }

  std::string end_of(std::int32_t peer) const {
    const MeshMember& member = members_[static_cast<std::size_t>(peer)];
    return fmt::format("rank {} (pid {} on {}) died", peer, member.pid, member.host);
  }

  void run() {
    while (!stop_.load()) {
      const Duration sleep = handlers_.on_tick ? handlers_.on_tick() : milliseconds(1000);
      wait(sleep);
      for (MeshLink& link : links_) {
        if (link.socket.valid() && !link.left) listen_to(link);
      }
    }
  }

  void wait(Duration longest) {
    entries_.clear();
    entries_.push_back({wake_.fd(), POLLIN, 0});
    for (const MeshLink& link : links_) {
      if (!link.left) entries_.push_back({link.socket.fd(), POLLIN, 0});
    }
    sleeping_.store(true);
    const auto ms = std::chrono::ceil<milliseconds>(longest).count();
    poll(entries_.data(), entries_.size(), static_cast<int>(std::clamp<std::int64_t>(ms, 0, 1000)));
    sleeping_.store(false);
    eventfd_t ignored = 0;
    eventfd_read(wake_.fd(), &ignored);
  }

  void listen_to(MeshLink& link) {
    std::array<std::byte, 4096> piece;
    while (!link.left) {
      const auto received = link.socket.receive_some(piece);
      if (!received) {
        link.left = true;
        lost(link, "its control connection closed without a goodbye");
        return;
      }
      if (*received == 0) return;
      link.reader.feed(std::span(piece).first(*received));
      drain(link);
    }
  }

  void drain(MeshLink& link) {
    while (!link.left) {
      const auto frame = link.reader.next();
      if (!frame) {
        link.left = true;
        return hear({Errc::protocol, rank_, Rank{link.peer},
                     fmt::format("rank {} sent {}", link.peer, frame.error().what)},
                    link.peer);
      }
      if (!*frame) return;
      if ((*frame)->kind == FrameKind::goodbye) link.left = true;
      if ((*frame)->kind != FrameKind::notice) continue;
      auto notice = decode_notice((*frame)->payload);
      if (notice) hear(*notice, link.peer);
    }
  }

  void lost(const MeshLink& link, const char* how) {
    hear({Errc::peer_lost, rank_, Rank{link.peer}, end_of(link.peer) + ": " + how}, link.peer);
  }

  // The first notice is passed on before anything else: this process may be about to end.
  void hear(const Notice& notice, std::int32_t from) {
    {
      const std::lock_guard lock(mutex_);
      if (std::exchange(noticed_, true)) return;
      send_to_all(encode_frame(FrameKind::notice, encode(notice)), from);
    }
    if (handlers_.on_notice) handlers_.on_notice(notice);
  }

  void send_to_all(const Blob& frame, std::int32_t except) noexcept {
    const Deadline deadline = Deadline::after(steady_clock(), kSendNotice);
    for (const MeshLink& link : links_) {
      // A peer that is gone, too, needs no notice.
      if (link.peer != except) (void)link.socket.send_all(frame, deadline);
    }
  }

  std::vector<MeshLink> links_;
  std::vector<MeshMember> members_;
  std::string description_;
  Rank rank_;
  Socket wake_;
  Handlers handlers_;
  std::vector<pollfd> entries_;
  std::mutex mutex_;  // sending, and noticed_
  bool noticed_ = false;
  std::atomic<bool> stop_{false};
  std::atomic<bool> sleeping_{false};
  std::thread thread_;
};

}  // namespace

Result<std::unique_ptr<ControlMesh>> ControlMesh::create(Bootstrap& bootstrap,
                                                         const Options& options, const Log& log,
                                                         Deadline deadline) {
  MeshLinks links = GDRX_TRY(make_mesh_links(bootstrap, options, log, deadline));
  Socket wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.valid()) return fail(Errc::system, "eventfd", errno);
  return std::unique_ptr<ControlMesh>(
      std::make_unique<Mesh>(std::move(links), bootstrap.rank(), std::move(wake)));
}

}  // namespace gdrx

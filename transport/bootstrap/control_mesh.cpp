// SPDX-License-Identifier: Apache-2.0
#include "transport/bootstrap/control_mesh.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <mutex>
#include <new>
#include <optional>
#include <system_error>
#include <thread>

#include "transport/bootstrap/mesh_wire.hpp"

namespace gdrx {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLongestSleep{1000};
constexpr milliseconds kPlacePoll{1};
constexpr std::size_t kMostPlace = 512;

class Mesh final : public ControlMesh {
 public:
  Mesh(MeshLinks links, Rank rank, const Options& options, Socket wake)
      : description_(links.description),
        key_(links.key),
        rank_(rank),
        wake_(std::move(wake)),
        wire_(std::move(links), rank, options.heartbeat, options.silence),
        heartbeat_(options.heartbeat) {}

  ~Mesh() override {
    stop_.store(true);
    go();
    ring();
    if (thread_.joinable()) thread_.join();
    try {
      wire_.say_goodbye(gave_up_);
    } catch (...) {  // out of memory: the peers take it for a death  NOLINT(bugprone-empty-catch)
    }
  }

  Rank rank() const noexcept override { return rank_; }
  int size() const noexcept override { return static_cast<int>(wire_.members().size()); }
  std::string describe() const override { return description_; }
  const Key& key() const noexcept override { return key_; }

  // A rank that fails here says why before it leaves, so that the others do not have to guess.
  Result<std::vector<Blob>> all_gather(std::span<const std::byte> mine,
                                       Deadline deadline) override {
    try {
      auto all = disseminate(mine, deadline);
      if (!all) wire_.flood({all.error().code, rank_, rank_, all.error().what}, -1);
      return all;
    } catch (const std::bad_alloc&) {
      announce({no_memory().code, rank_, rank_, no_memory().what});
      throw;
    }
  }

  Result<void> meet_ready(Deadline deadline) override {
    try {
      make_thread();
    } catch (const std::system_error& error) {
      return fail(Errc::system, "no thread for the control connections", error.code().value());
    }
    return all_gather({}, deadline).map([](const auto&) {});
  }

  void start(Handlers handlers) override {
    handlers_ = std::move(handlers);
    wire_.expect_notices_only(handlers_.data_path_hears);
    if (!thread_.joinable()) make_thread();
    go();
  }

  void announce(const Notice& notice) noexcept override {
    try {
      wire_.flood(notice, -1);
    } catch (...) {
      wire_.hang_up();
    }
    woken_.store(true);
    ring();
    end_leave(Leave::told);
  }

  Result<void> tell_place(std::uint32_t number, std::span<const std::byte> place) override {
    if (place.empty() || place.size() > kMostPlace) {
      return fail(Errc::invalid_argument, fmt::format("a place of {} bytes", place.size()));
    }
    wire_.tell_place(number, place);
    woken_.store(true);
    ring();
    return {};
  }

  Result<Blob> await_place(std::uint32_t number, Deadline deadline) const override {
    while (true) {
      if (auto place = wire_.place(number)) return *std::move(place);
      if (deadline.passed(steady_clock().now())) {
        return fail(Errc::timeout,
                    fmt::format("rank {} was told by nobody where the ranks meet", index(rank_)));
      }
      std::this_thread::sleep_for(kPlacePoll);
    }
  }

  bool leave(Deadline deadline) override {
    if (!leaving_.exchange(true)) ring();
    std::unique_lock lock(leave_mutex_);
    while (leave_ == Leave::waiting && !deadline.passed(steady_clock().now())) {
      leave_changed_.wait_for(lock, milliseconds(std::min(1000, poll_milliseconds(deadline))));
    }
    gave_up_ = leave_ == Leave::waiting || leave_ == Leave::alone;
    return leave_ == Leave::together;
  }

  std::string awaited() const override {
    {
      const std::lock_guard lock(leave_mutex_);
      if (leave_ != Leave::waiting) return {};
    }
    const std::int64_t step = std::int64_t{1} << round_.load();
    return name_member(wire_.members(),
                       static_cast<std::int32_t>((index(rank_) + size() - step % size()) % size()));
  }

  // Each side writes its own flag and then reads the other's, sequentially consistent: either the
  // thread sees woken_ before it sleeps, or we see sleeping_ and ring.
  void wake() noexcept override {
    if (!woken_.exchange(true) && sleeping_.load()) ring();
  }

 private:
  void make_thread() {
    thread_ = std::thread([this] {
      may_run_.wait(false);  // acquire: handlers_
      run();
    });
  }
  void go() noexcept {
    may_run_.store(true);
    may_run_.notify_one();
  }

  enum class Leave { waiting, together, alone, told };

  void end_leave(Leave how) noexcept {
    const std::lock_guard lock(leave_mutex_);
    if (leave_ == Leave::waiting) leave_ = how;
    leave_changed_.notify_all();
  }

  // Dissemination, as all_gather: after round k a rank knows that the 2^(k+1) - 1 before it are
  // here.
  void go_on_leaving() {
    for (; (std::int64_t{1} << round_) < size(); ++round_) {
      if (fences_sent_ == round_) {
        wire_.send_fence(round_);
        ++fences_sent_;  // unless there was no memory for it
      }
      if (wire_.anyone_gave_up()) return end_leave(Leave::alone);
      if (wire_.anyone_left()) break;
      if (!wire_.has_fence(round_)) return;
    }
    wire_.say_met();
    end_leave(Leave::together);
  }

  void ring() noexcept { eventfd_write(wake_.fd(), 1); }

  // After round k a rank has the blobs of itself and of the 2^k - 1 ranks before it.
  Result<std::vector<Blob>> disseminate(std::span<const std::byte> mine, Deadline deadline) {
    const std::int32_t n = size();
    const std::int32_t self = index(rank_);
    std::vector<Blob> backwards{Blob(mine.begin(), mine.end())};
    for (std::int32_t step = 1; step < n; step *= 2) {
      const auto count = static_cast<std::size_t>(std::min(step, n - step));
      Blob packed;
      for (std::size_t i = 0; i < count; ++i) append_blob(packed, backwards[i]);
      if (packed.size() > kMaxFrame) {
        return fail(Errc::invalid_argument, fmt::format("the ranks gather {} bytes where {} are "
                                                        "the most",
                                                        packed.size(), kMaxFrame));
      }
      const Blob received =
          GDRX_TRY(exchange((self + step) % n, (self + n - step) % n, packed, deadline));
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

  // Sends and receives at once: both sides may have more to say than the kernel buffers. Listens to
  // every link, so that a death anywhere ends the wait.
  Result<Blob> exchange(std::int32_t to, std::int32_t from, const Blob& out, Deadline deadline) {
    wire_.send_data(to, out);
    std::optional<Blob> in;
    while (true) {
      entries_.clear();
      const bool pending = wire_.prepare_poll(entries_);
      if (auto heard = wire_.pump()) {
        wire_.flood(heard->notice, heard->from);
        return fail(heard->notice.code, heard->notice.text);
      }
      if (!in) in = wire_.take_data(from);
      if (in && !wire_.has_unsent(to)) return *std::move(in);
      if (!in && wire_.has_left(from)) {
        return fail(Errc::peer_lost,
                    name_member(wire_.members(), from) + " left while the communicator was made");
      }
      if (deadline.passed(steady_clock().now())) return late(in ? to : from);
      const int longest = pending ? 0 : 1000;
      poll(entries_.data(), entries_.size(), std::min(longest, poll_milliseconds(deadline)));
    }
  }

  tl::unexpected<Error> late(std::int32_t peer) const {
    return fail(Errc::timeout,
                fmt::format("rank {} waited in vain for {} while the communicator was made",
                            index(rank_), name_member(wire_.members(), peer)));
  }

  // Nobody could take an exception: out of memory is the communicator's end, on every rank.
  void run() noexcept {
    std::optional<Text> broken;  // what nobody has been told yet
    while (!stop_.load()) {
      try {
        if (broken && fail_here(*broken)) broken.reset();
        turn();
      } catch (const std::bad_alloc&) {
        broken = Text("out of memory");
      } catch (...) {
        broken = Text("an exception on the thread of the control connections");
      }
      if (!broken) continue;
      end_leave(Leave::told);
      std::this_thread::sleep_for(milliseconds(1));  // there may be memory at the next turn
    }
  }

  /// To the peers, who see the connections end where there is no memory to tell them, and here.
  void pass_on(const Notice& notice, std::int32_t from) {
    bool news = true;
    try {
      news = wire_.flood(notice, from);
    } catch (const std::bad_alloc&) {
      wire_.hang_up();
    }
    if (news && handlers_.on_notice) handlers_.on_notice(notice);
  }

  /// Whether this rank knows.
  bool fail_here(const Text& why) noexcept {
    try {
      pass_on({Errc::system, rank_, rank_, why}, -1);
      return true;
    } catch (...) {
      return false;
    }
  }

  void turn() {
    woken_.store(false);  // before on_tick: what is asked for during it needs another one
    wait(handlers_.on_tick ? handlers_.on_tick() : kLongestSleep);
    const auto heard = wire_.pump();
    // Passed on before anything else: this process may be about to end.
    if (heard) pass_on(heard->notice, heard->from);
    wire_.beat();
    if (heard) end_leave(Leave::told);
    if (leaving_.load()) go_on_leaving();
  }

  void wait(Duration longest) {
    entries_.clear();
    entries_.push_back({wake_.fd(), POLLIN, 0});
    const bool pending = wire_.prepare_poll(entries_);
    const Duration most = std::min<Duration>(heartbeat_, kLongestSleep);
    const auto limit = std::clamp<Duration>(longest, Duration::zero(), most);
    sleeping_.store(true);
    const auto ms =
        pending || woken_.load() ? milliseconds(0) : std::chrono::ceil<milliseconds>(limit);
    poll(entries_.data(), entries_.size(), static_cast<int>(ms.count()));
    sleeping_.store(false);
    eventfd_t ignored = 0;
    eventfd_read(wake_.fd(), &ignored);
  }

  std::string description_;
  Key key_;
  Rank rank_;
  Socket wake_;
  MeshWire wire_;
  Duration heartbeat_;
  Handlers handlers_;
  std::vector<pollfd> entries_;
  std::atomic<bool> may_run_{false};
  std::atomic<bool> stop_{false};
  std::atomic<bool> sleeping_{false};
  std::atomic<bool> woken_{false};
  std::atomic<bool> leaving_{false};
  std::atomic<std::uint32_t> round_{0};  // of the last barrier: the round that is due
  std::uint32_t fences_sent_ = 0;
  mutable std::mutex leave_mutex_;
  std::condition_variable leave_changed_;
  Leave leave_ = Leave::waiting;
  bool gave_up_ = false;  // of whoever calls leave() and destroys
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
      std::make_unique<Mesh>(std::move(links), bootstrap.rank(), options, std::move(wake)));
}

}  // namespace gdrx

// SPDX-License-Identifier: Apache-2.0
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "net-conformance/driver/peer.hpp"
#include "net-conformance/rules/common.hpp"

namespace gdrx::conformance {

namespace {

constexpr std::size_t kSize = 200'000;
constexpr std::uint64_t kMessages = 20;

Result<void> receive_all(Session& session, const Comm& recv, std::uint64_t count) {
  Region to = GDRX_TRY(prepared(Region::make(session, recv.get(), kSize)));
  for (std::uint64_t i = 0; i < count; ++i) {
    Exchange exchange(session, nullptr, recv.get());
    exchange.receive(whole(to));
    GDRX_TRY(exchange.finish());
    GDRX_TRY(holds(to, 0, kSize, i));
  }
  return {};
}

Result<void> send_all(Session& session, const Comm& send, std::uint64_t count) {
  Region from = GDRX_TRY(prepared(Region::make(session, send.get(), kSize)));
  for (std::uint64_t i = 0; i < count; ++i) {
    fill(from.bytes(), i);
    Exchange exchange(session, send.get(), nullptr);
    exchange.send(whole(from));
    GDRX_TRY(exchange.finish());
  }
  return {};
}

/// The other process connects to a handle of this one.
Result<Comm> connect_there(Session& session, Channel& channel) {
  GDRX_TRY(ready(session));
  Handle handle;
  handle.bytes = GDRX_TRY(channel.receive<decltype(handle.bytes)>(g_patience));
  return connect(session, handle);
}

Result<Comm> accept_here(Session& session, Channel& channel) {
  GDRX_TRY(ready(session));
  Handle handle;
  const Comm listener = GDRX_TRY(prepared(listen(session, handle)));
  GDRX_TRY(channel.send(handle.bytes));
  return accept(session, listener);
}

Result<void> two(Session& session) {
  Peer peer = GDRX_TRY(Peer::start(session, [](Session& own, Channel& channel) -> Result<void> {
    const Comm send = GDRX_TRY(connect_there(own, channel));
    const Comm recv = GDRX_TRY(accept_here(own, channel));
    GDRX_TRY(send_all(own, send, kMessages));
    GDRX_TRY(receive_all(own, recv, kMessages));
    static_cast<void>(channel.receive<char>(g_patience));  // the end of the other side
    return {};
  }));
  const auto part = [&]() -> Result<void> {
    const Comm recv = GDRX_TRY(accept_here(session, peer.channel()));
    const Comm send = GDRX_TRY(connect_there(session, peer.channel()));
    GDRX_TRY(receive_all(session, recv, kMessages));
    GDRX_TRY(send_all(session, send, kMessages));
    GDRX_TRY(peer.channel().send('.'));
    return peer.result(g_patience);
  };
  return part();
}

/// One end here, the other in a process that is killed while a message is under way.
struct Bereaved {
  Comm comm;
  Region region;
  Exchange exchange;
};

Result<Bereaved> bereave(Session& session, bool sender_dies) {
  static constexpr std::size_t kLarge = std::size_t{64} << 20;
  Peer peer = GDRX_TRY(Peer::start(session, [&](Session& own, Channel& channel) -> Result<void> {
    const Comm comm =
        GDRX_TRY(sender_dies ? connect_there(own, channel) : accept_here(own, channel));
    const Region region = GDRX_TRY(Region::make(own, comm.get(), kLarge));
    Exchange exchange(own, nullptr, comm.get());
    if (!sender_dies) {
      exchange.receive(whole(region));
      GDRX_TRY(exchange.step());
    }
    GDRX_TRY(channel.send('.'));
    static_cast<void>(channel.receive<char>(10 * g_patience));  // killed here
    return {};
  }));
  Comm comm = GDRX_TRY(prepared(sender_dies ? accept_here(session, peer.channel())
                                            : connect_there(session, peer.channel())));
  Region region = GDRX_TRY(prepared(Region::make(session, comm.get(), kLarge)));
  GDRX_TRY(peer.channel().receive<char>(g_patience));
  Exchange exchange(session, sender_dies ? nullptr : comm.get(),
                    sender_dies ? comm.get() : nullptr);
  if (sender_dies) {
    exchange.receive(whole(region));
    exchange.receive(whole(region));
  } else {
    // The first may end: a NIC takes it without the process. The second is never received.
    exchange.send(whole(region));
    exchange.send(whole(region));
  }
  for (int round = 0; round < 100; ++round) {
    GDRX_TRY(prepared(exchange.step()));
  }
  peer.kill();
  return Bereaved{std::move(comm), std::move(region), std::move(exchange)};
}

/// Calls go on to return at once, with an error or without, and so does closing.
Result<void> survives(Session& session, bool sender_dies) {
  Bereaved left = GDRX_TRY(bereave(session, sender_dies));
  const Deadline deadline = Deadline::after(steady_clock(), std::chrono::milliseconds(300));
  while (!deadline.passed(steady_clock().now())) {
    Result<void> result;
    GDRX_TRY(at_once("test or isend after the peer's death",
                     timed([&] { result = left.exchange.step(); })));
    if (!result) {
      break;
    }
    GDRX_TRY(expect(!left.exchange.done(), "a request was done though the peer is dead"));
  }
  left.region.deregister();
  NetResult closed = NetResult::success;
  GDRX_TRY(at_once("closing after the peer's death", timed([&] { closed = left.comm.close(); })));
  GDRX_TRY(succeeds(closed, "closing after the peer's death"));
  const auto link = Link::open(session);
  return link ? Result<void>{} : broken("after a peer's death: " + link.error().what);
}

Result<void> sender_killed(Session& session) { return survives(session, true); }
Result<void> receiver_killed(Session& session) { return survives(session, false); }

Result<void> death_noticed(Session& session) {
  constexpr std::chrono::seconds kLimit{10};
  Bereaved left = GDRX_TRY(bereave(session, true));
  const Deadline deadline = Deadline::after(steady_clock(), kLimit);
  while (left.exchange.step()) {
    if (deadline.passed(steady_clock().now())) {
      return broken(
          fmt::format("{} s after the peer's death test still says pending", kLimit.count()));
    }
  }
  return {};
}

Result<void> dead_listener(Session& session) {
  Handle handle;
  {
    Peer peer = GDRX_TRY(Peer::start(session, [](Session& own, Channel& channel) -> Result<void> {
      GDRX_TRY(ready(own));
      Handle mine;
      const Comm listener = GDRX_TRY(prepared(listen(own, mine)));
      GDRX_TRY(channel.send(mine.bytes));
      static_cast<void>(channel.receive<char>(10 * g_patience));
      return {};
    }));
    handle.bytes = GDRX_TRY(peer.channel().receive<decltype(handle.bytes)>(g_patience));
  }
  GDRX_TRY(ready(session));
  const Deadline deadline = Deadline::after(steady_clock(), std::chrono::milliseconds(300));
  while (!deadline.passed(steady_clock().now())) {
    Result<Comm> attempt = fail(Errc::internal, "");
    GDRX_TRY(at_once("connect to a dead process",
                     timed([&] { attempt = try_connect(session, handle); })));
    if (!attempt) {
      break;  // NCCL does not call again after an error
    }
    GDRX_TRY(expect(!*attempt, "connect to a dead process yielded a communicator"));
  }
  const auto link = Link::open(session);
  return link ? Result<void>{} : broken("after it: " + link.error().what);
}

/// A child of fork() that does `work`, lives on until it is let go, and ends with 0.
class Child {
 public:
  template <class F>
  static Result<Child> start(F&& work) {
    int ends[2];
    if (pipe(ends) != 0) {
      return blocked("pipe failed");
    }
    const pid_t pid = fork();
    if (pid == 0) {
      close(ends[1]);
      work();
      char none = 0;
      _exit(read(ends[0], &none, 1) == 0 ? 0 : 1);
    }
    close(ends[0]);
    if (pid < 0) {
      close(ends[1]);
      return blocked("fork failed");
    }
    return Child(pid, ends[1]);
  }
  Child(Child&& other) noexcept : pid_(std::exchange(other.pid_, -1)), held_(other.held_) {}
  Child& operator=(Child&&) = delete;
  ~Child() { end(); }
  /// How it ended, as waitpid() says it.
  int end() {
    int status = 0;
    if (0 < pid_) {
      close(held_);
      waitpid(std::exchange(pid_, -1), &status, 0);
    }
    return status;
  }

 private:
  Child(pid_t pid, int held) : pid_(pid), held_(held) {}
  pid_t pid_;
  int held_;
};

/// Three messages; before each one's bytes are written a child is made that does `work` and sees
/// its parent send and receive.
template <class F>
Result<void> forks(Session& session, Wired& wired, F&& work) {
  for (std::uint64_t round = 0; round < 3; ++round) {
    Exchange exchange(session, wired.link);
    exchange.receive(whole(wired.to));
    GDRX_TRY(exchange.step());
    Child child = GDRX_TRY(Child::start(work));
    // The first write to a page after a fork is the one that a parent must not get a new page for.
    fill(wired.from.bytes(), round);
    exchange.send(whole(wired.from));
    GDRX_TRY(exchange.finish());
    GDRX_TRY(holds(wired.to, 0, kSize, round));
    const int status = child.end();
    if (status != 0) {
      return broken(fmt::format("the child of a fork ended with {} {} in round {}",
                                WIFSIGNALED(status) ? "signal" : "status",
                                WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status),
                                round));
    }
  }
  return {};
}

/// Small blocks of the heap, so that some share their pages with the plugin's.
class Heap {
 public:
  void grow() {
    for (std::size_t i = 0; i < 256; ++i) {
      blocks_.push_back(std::make_unique<std::array<std::byte, 240>>());
    }
  }
  void write() {
    for (auto& block : blocks_) {
      block->fill(std::byte{0x11});
    }
  }

 private:
  std::vector<std::unique_ptr<std::array<std::byte, 240>>> blocks_;
};

Result<void> forks_while_sending(Session& session) {
  Heap heap;
  heap.grow();
  GDRX_TRY(ready(session));
  heap.grow();
  Wired wired = GDRX_TRY(Wired::open(session, kSize, kSize));
  heap.grow();
  return forks(session, wired, [&] { heap.write(); });
}

Result<void> child_has_copies(Session& session) {
  Wired wired = GDRX_TRY(Wired::open(session, kSize, kSize));
  return forks(session, wired, [&] {
    std::memset(wired.from.data(), 0x11, kSize);
    std::memset(wired.to.data(), 0x22, kSize);
  });
}

constexpr Severity kMust = Severity::must;
constexpr const char* kOne = "transfer.one";
constexpr const char* kDeath =
    "polls on until its watchdog or the user aborts; then closing hangs or crashes";

constexpr Rule kRules[] = {
    {"process.two", kMust, "two processes connect and send both ways", "hangs or fails at once",
     kOne, two},
    {"process.sender-killed", kMust, "the receiver of a killed process can test and close", kDeath,
     "process.two", sender_killed},
    {"process.receiver-killed", kMust, "the sender to a killed process can test and close", kDeath,
     "process.two", receiver_killed},
    {"process.death-noticed", Severity::should, "test reports a killed peer within 10 s",
     "hangs until its watchdog, minutes later, says nothing of the cause", "process.two",
     death_noticed},
    {"process.dead-listener", kMust, "connect to a dead process fails or says later, at once",
     "polls on; what blocks cannot be aborted", "process.two", dead_listener},
    {"process.fork", kMust, "a fork takes no message away, and its child may use the heap",
     "runs in programs whose data loaders fork: a parent would see old bytes", kOne,
     forks_while_sending},
    // No demand: before Linux 5.12 a NIC's pages can only be hidden from children.
    {"process.fork-copies", Severity::should, "a child of fork has copies of registered memory",
     "does not touch it in children; a program that does dies there", "process.fork",
     child_has_copies},
};

}  // namespace

std::span<const Rule> process_rules() { return kRules; }

}  // namespace gdrx::conformance

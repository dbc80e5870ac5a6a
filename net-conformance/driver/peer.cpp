// SPDX-License-Identifier: Apache-2.0
#include "net-conformance/driver/peer.hpp"

#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <string>

#include "net-conformance/driver/verdict.hpp"

namespace gdrx::conformance {

namespace {

struct Outcome {
  bool good = false;
  Errc code = Errc::internal;
  std::array<char, 300> what{};
};

/// What a suite asks a server for.
struct Request {
  std::array<char, 64> rule{};
  int version = 0;
};

constexpr std::chrono::seconds kWord{20};  // between two connections of a suite

int leader = -1;  // in a server's child: the channel to the suite

[[noreturn]] void live(const Session& session, const Peer::Part& part, int fd) {
  Channel channel(fd);
  Outcome outcome;
  {
    Session own(session.options());
    const Result<void> result = part(own, channel);
    outcome.good = result.has_value();
    if (!result) {
      outcome.code = result.error().code;
      std::strncpy(outcome.what.data(), result.error().what.c_str(), outcome.what.size() - 1);
    }
  }
  static_cast<void>(channel.send(outcome));
  _exit(0);
}

}  // namespace

Result<Peer> Peer::start(const Session& session, const Part& part) {
  if (leader >= 0) {
    live(session, part, leader);
  }
  if (!session.options().peer.empty()) {
    return start_there(session);
  }
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return blocked("socketpair failed");
  }
  const pid_t pid = fork();
  if (pid < 0) {
    return blocked("fork failed");
  }
  if (pid == 0) {
    close(ends[0]);
    live(session, part, ends[1]);
  }
  close(ends[1]);
  return Peer(pid, Channel(ends[0]));
}

Result<Peer> Peer::start_there(const Session& session) {
  constexpr std::chrono::seconds kArrival{20};
  const Options& options = session.options();
  Request request;
  std::strncpy(request.rule.data(), options.rule, request.rule.size() - 1);
  request.version = options.version;
  Channel control = GDRX_TRY(prepared(dial(options.peer, kArrival)));
  GDRX_TRY(control.send(request));
  Peer peer(-1, GDRX_TRY(prepared(dial(options.peer, kArrival))));
  peer.control_.emplace(std::move(control));
  return peer;
}

void Peer::kill() noexcept {
  if (control_) {
    control_->half_close();
    static_cast<void>(control_->receive<char>(std::chrono::seconds(10)));  // ends with the process
    control_.reset();
  }
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
}

Result<void> Peer::result(Duration limit) {
  const Outcome outcome = GDRX_TRY(channel_.receive<Outcome>(limit));
  if (!outcome.good) {
    return fail(outcome.code, "in the other process: " + std::string(outcome.what.data()));
  }
  return {};
}

namespace {

/// One second process, until it ends by itself or the suite wants it killed.
Result<void> serve_one(Server& server, Channel control, const Options& options,
                       const std::function<void(const char*, Session&)>& check) {
  const auto request = GDRX_TRY(control.receive<Request>(kWord));
  Channel channel = GDRX_TRY(server.accept(kWord));
  const pid_t pid = fork();
  if (pid < 0) {
    return blocked("fork failed");
  }
  if (pid == 0) {
    leader = channel.fd();
    Options own = options;
    own.version = request.version;
    Session session(own);
    check(request.rule.data(), session);
    _exit(1);  // the rule has no second process
  }
  { const Channel childs = std::move(channel); }  // so that its end is seen
  while (waitpid(pid, nullptr, WNOHANG) == 0) {
    if (control.wait(std::chrono::milliseconds(20))) {  // its end
      ::kill(pid, SIGKILL);
      waitpid(pid, nullptr, 0);
      break;
    }
  }
  return {};
}

}  // namespace

Result<void> serve_peers(int port, Duration idle, const Options& options,
                         const std::function<void(const char* rule, Session&)>& check) {
  Server server = GDRX_TRY(Server::listen(port));
  while (true) {
    auto control = server.accept(idle);
    if (!control) {
      return {};
    }
    GDRX_TRY(serve_one(server, std::move(*control), options, check));
  }
}

}  // namespace gdrx::conformance

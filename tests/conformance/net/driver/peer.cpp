// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/net/driver/peer.hpp"

#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <string>

#include "tests/conformance/net/driver/verdict.hpp"

namespace gdrx::conformance {

namespace {

struct Outcome {
  bool good = false;
  Errc code = Errc::internal;
  std::array<char, 300> what{};
};

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

void Peer::kill() noexcept {
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

}  // namespace gdrx::conformance

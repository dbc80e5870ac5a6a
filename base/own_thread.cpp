// SPDX-License-Identifier: Apache-2.0
#include "base/own_thread.hpp"

#include <signal.h>

#include <utility>

namespace gdrx {
namespace {

/// A thread that is made meanwhile has all signals blocked. But for those of its own faults: the
/// kernel ends a process at once, without its handler's report, where they are blocked.
class NoSignals {
 public:
  NoSignals() noexcept {
    sigset_t all;
    sigfillset(&all);
    for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS})
      sigdelset(&all, fault);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~NoSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  NoSignals(const NoSignals&) = delete;
  NoSignals& operator=(const NoSignals&) = delete;

 private:
  sigset_t before_;
};

std::jthread made(std::function<void()> body) {
  const NoSignals quiet;
  return std::jthread(std::move(body));
}

}  // namespace

// A thread names itself by a call; for others the name is a file, which takes a descriptor.
OwnThread::OwnThread(const char* name, std::function<void()> body)
    : thread_(made([name, body = std::move(body)] {
        pthread_setname_np(pthread_self(), name);
        body();
      })) {}

OwnThread::OwnThread(const char* name, const ThreadHome& home, std::function<void()> body)
    : OwnThread(name, std::move(body)) {
  place_thread(handle(), name, home);
}

}  // namespace gdrx

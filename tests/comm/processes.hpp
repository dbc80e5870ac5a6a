// SPDX-License-Identifier: Apache-2.0
// Ranks as processes, without MPI: forked while the test has no thread, joined by a unique id.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

#include "gdrx/gdrx.h"

namespace gdrx::test {

/// What a rank does; it returns 0 if all was well, or a number that says what was not.
using Life = std::function<int(int rank, gdrxComm_t comm)>;

class Processes {
 public:
  Processes(int ranks, const gdrxConfig_t& config, const Life& life) {
    int pipes[2] = {-1, -1};
    if (pipe(pipes) != 0) ADD_FAILURE() << "pipe";
    std::fflush(nullptr);  // or each rank would print it again
    for (int rank = 0; rank < ranks; ++rank) {
      const pid_t pid = fork();
      // exit, not _exit: the id's root is joined, and a sanitizer has the last word.
      if (pid == 0) std::exit(live(ranks, rank, pipes, config, life));
      pids_.push_back(pid);
    }
    close(pipes[0]);
    close(pipes[1]);
  }
  ~Processes() {
    for (const pid_t pid : pids_) {
      if (pid > 0) kill(pid, SIGKILL);
    }
    for (std::size_t rank = 0; rank < pids_.size(); ++rank) wait(static_cast<int>(rank));
  }
  Processes(const Processes&) = delete;
  Processes& operator=(const Processes&) = delete;

  pid_t pid(int rank) const { return pids_[static_cast<std::size_t>(rank)]; }
  /// The rank's exit status, or -signal; waits.
  int wait(int rank) {
    pid_t& pid = pids_[static_cast<std::size_t>(rank)];
    int status = 0;
    if (pid <= 0 || waitpid(pid, &status, 0) != pid) return 0;
    pid = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

 private:
  static int live(int ranks, int rank, const int* pipes, const gdrxConfig_t& config,
                  const Life& life) {
    gdrxUniqueId id{};
    if (rank == 0) {
      if (gdrxGetUniqueId(&id) != gdrxSuccess) return 90;
      for (int other = 1; other < ranks; ++other) {
        if (write(pipes[1], &id, sizeof id) != sizeof id) return 91;
      }
    } else if (read(pipes[0], &id, sizeof id) != sizeof id) {
      return 92;
    }
    gdrxComm_t comm = nullptr;
    if (gdrxCommInitRank(&comm, ranks, id, rank, &config) != gdrxSuccess) {
      std::fprintf(stderr, "rank %d: %s\n", rank, gdrxGetLastError(nullptr));
      return 93;
    }
    return life(rank, comm);
  }

  std::vector<pid_t> pids_;
};

}  // namespace gdrx::test

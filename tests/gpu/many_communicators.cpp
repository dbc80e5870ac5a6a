// SPDX-License-Identifier: Apache-2.0
// many_communicators: many communicators on the same GPUs, their calls in another order on each
// rank. All of them go on, or the verdict says that they did not. `--help` has the rest.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "gdrx/gdrx.h"
#include "tests/gpu/seat.hpp"

namespace gdrx::crowd {
namespace {

int live(const Options& options, int process, Board& board) {
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 1);
  if (process == 0) {
    for (int c = 0; c < options.communicators; ++c) {
      if (gdrxGetUniqueId(&board.ids[c]) != gdrxSuccess) return 1;
    }
    board.ids_made = 1;
  }
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (board.ids_made == 0) {
    if (std::chrono::steady_clock::now() > end) return 1;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  std::vector<std::thread> threads;
  for (int gpu = 0; gpu < options.gpus; ++gpu) {
    threads.emplace_back([&, gpu] { live_on_gpu(options, process, gpu, board); });
  }
  for (std::thread& thread : threads) thread.join();
  return 0;
}

int report(const Options& options, const Board& board, bool ended, double seconds) {
  const int gpus_of_each = options.layout == "pairs" ? std::min(options.gpus, 2) : options.gpus;
  const int ranks = options.communicators * gpus_of_each * options.processes;
  const bool well = ended && board.failed == 0 && board.wrong == 0 && board.finished == ranks;
  const nlohmann::json result = {{"communicators", options.communicators},
                                 {"gpus", options.gpus},
                                 {"processes", options.processes},
                                 {"layout", options.layout},
                                 {"order", options.order},
                                 {"collective", options.collective},
                                 {"graphs", options.graphs},
                                 {"bytes", options.bytes},
                                 {"rounds", options.rounds},
                                 {"ranks", ranks},
                                 {"ranks_finished", board.finished.load()},
                                 {"wrong", board.wrong.load()},
                                 {"seconds", seconds},
                                 {"passed", well}};
  std::printf("%s\n", result.dump().c_str());
  if (!options.json.empty()) {
    std::FILE* const file = std::fopen(options.json.c_str(), "w");
    if (file == nullptr || std::fprintf(file, "%s\n", result.dump(2).c_str()) < 0) return 2;
    std::fclose(file);
  }
  std::printf("%s: %d of %d ranks went on to the end, %d wrong\n", well ? "PASSED" : "FAILED",
              board.finished.load(), ranks, board.wrong.load());
  return well ? 0 : 1;
}

}  // namespace
}  // namespace gdrx::crowd

int main(int argc, char** argv) {
  using namespace gdrx::crowd;  // NOLINT(google-build-using-namespace): all of the program is there
  Options options;
  CLI::App app("Many communicators on the same GPUs, called in another order on each rank.");
  app.add_option("--communicators", options.communicators, "how many")
      ->check(CLI::Range(1, kMostCommunicators))
      ->capture_default_str();
  app.add_option("--gpus", options.gpus, "the first so many GPUs")
      ->check(CLI::Range(1, 16))
      ->capture_default_str();
  app.add_option("--processes", options.processes, "each has a rank on each GPU")
      ->check(CLI::Range(1, 16))
      ->capture_default_str();
  app.add_option("--layout", options.layout, "each communicator has all GPUs, or two of them")
      ->check(CLI::IsMember({"all", "pairs"}))
      ->capture_default_str();
  app.add_option("--order", options.order, "in which a GPU comes to its communicators, by round")
      ->check(CLI::IsMember({"same", "turned", "every"}))
      ->capture_default_str();
  app.add_option("--collective", options.collective, "every: one after the other, by round")
      ->check(CLI::IsMember(
          {"every", "allreduce", "alltoall", "allgather", "reducescatter", "sendrecv"}))
      ->capture_default_str();
  app.add_option("--rounds", options.rounds, "calls of each communicator")->capture_default_str();
  app.add_option("--bytes", options.bytes, "of a rank's buffer")->capture_default_str();
  app.add_option("--timeout", options.timeout_s, "seconds that a call may wait")
      ->capture_default_str();
  app.add_flag("--graphs", options.graphs, "each call in a graph of its own, all of them held");
  app.add_option("--json", options.json, "a file for the result");
  CLI11_PARSE(app, argc, argv);
  void* const memory =
      mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 2;
  auto& board = *new (memory) Board{};
  const auto begin = std::chrono::steady_clock::now();
  std::vector<pid_t> children;
  for (int process = 0; process < options.processes; ++process) {
    const pid_t pid = fork();
    if (pid == 0) _exit(live(options, process, board));
    children.push_back(pid);
  }
  bool ended = true;
  for (const pid_t child : children) {
    int status = 0;
    ended = waitpid(child, &status, 0) == child && status == 0 && ended;
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  return report(options, board, ended, took.count());
}

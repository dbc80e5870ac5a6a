// SPDX-License-Identifier: Apache-2.0
#include "tests/swarm/world.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <thread>
#include <vector>

#include "gdrx/gdrx.h"
#include "tests/swarm/memory.hpp"
#include "tests/swarm/plan.hpp"

namespace gdrx::swarm {
namespace {

constexpr double kTimeout = 0.4;               // of a call, seconds
constexpr std::chrono::seconds kDeadline{20};  // of a seed, on a machine with other work

class World {
 public:
  explicit World(Plan plan)
      : plan_(std::move(plan)),
        comms_(static_cast<std::size_t>(plan_.ranks)),
        said_(comms_.size()),
        where_(comms_.size()) {}

  static void make_buffers() {
    for (std::size_t rank = 0; rank < buffers_.size(); ++rank) {
      if (!buffers_[rank]) buffers_[rank] = std::make_unique<Buffers>(static_cast<int>(rank));
    }
  }

  /// Empty, or what went wrong. A hang ends the process: its threads cannot be taken back.
  std::string run(Outcome& outcome) {
    std::vector<std::thread> threads;
    for (int rank = 0; rank < plan_.ranks; ++rank) {
      threads.emplace_back([this, rank] { body(rank); });
    }
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return waiting_ == plan_.ranks; });
      arm(plan_.faults);
      go_ = true;
      changed_.notify_all();
      if (!changed_.wait_for(lock, kDeadline, [&] { return ended_ == plan_.ranks; })) hang();
    }
    for (std::thread& thread : threads) thread.join();
    outcome.fired = disarm();
    outcome.made = made_;
    outcome.failed = failed_;
    outcome.error = error_;
    for (const auto& said : said_) {
      if (said[0] != '\0') return said.data();
    }
    return {};
  }

 private:
  [[noreturn]] void hang() {
    if (std::getenv("SWARM_STOP") != nullptr) pause();
    const Fired fired = disarm();
    std::string text = "hangs:";
    for (std::size_t rank = 0; rank < where_.size(); ++rank) {
      text += " rank " + std::to_string(rank) + " " + where_[rank].load() + ";";
    }
    std::printf("WRONG %s fired: %s\n", text.c_str(), fired.text().c_str());
    std::fflush(stdout);
    std::abort();
  }

  void body(int rank) {
    buffers_[static_cast<std::size_t>(rank)]->enter();
    {
      std::unique_lock lock(mutex_);
      ++waiting_;
      changed_.notify_all();
      changed_.wait(lock, [&] { return go_; });
    }
    live(rank);
    const std::lock_guard lock(mutex_);
    ++ended_;
    changed_.notify_all();
  }

  void live(int rank) {
    const auto at = static_cast<std::size_t>(rank);
    gdrxConfig_t config = GDRX_CONFIG_INITIALIZER;
    config.transport = plan_.transport;
    config.timeout_seconds = kTimeout;
    where_[at] = "in init";
    if (!enter(rank, config)) {
      ++failed_;
      return;
    }
    ++made_;
    gdrxResult_t result = gdrxSuccess;
    for (std::size_t i = 0; i < plan_.calls.size() && result == gdrxSuccess; ++i) {
      if (rank == 0 && static_cast<int>(i) == plan_.fork_before) fork_a_child();
      where_[at] = "in a call";
      result = call(rank, plan_.calls[i]);
    }
    if (result != gdrxSuccess) {
      ++failed_;
      explained(rank, result, gdrxGetLastError(comms_[at]));
    }
    where_[at] = "in destroy";
    leave(rank);
    where_[at] = "away";
  }

  bool enter(int rank, const gdrxConfig_t& config) {
    const auto at = static_cast<std::size_t>(rank);
    gdrxResult_t result = gdrxSuccess;
    if (plan_.by_id) {
      if (rank == 0) {
        result = gdrxGetUniqueId(&id_);
        publish(result == gdrxSuccess ? 1 : 2);
        if (result != gdrxSuccess) return explained(rank, result, gdrxGetLastError(nullptr));
      } else if (await() != 1) {
        return false;
      }
      result = gdrxCommInitRank(&comms_[at], plan_.ranks, id_, rank, &config);
      if (result != gdrxSuccess) return explained(rank, result, gdrxGetLastError(nullptr));
      return true;
    }
    if (rank == 0) {
      result = gdrxCommInitAll(comms_.data(), plan_.ranks, &config);
      if (result != gdrxSuccess) explained(rank, result, gdrxGetLastError(nullptr));
      publish(result == gdrxSuccess ? 1 : 2);
    }
    return await() == 1;
  }

  void leave(int rank) {
    const auto at = static_cast<std::size_t>(rank);
    const gdrxResult_t result = gdrxCommDestroy(comms_[at]);
    comms_[at] = nullptr;
    if (result != gdrxSuccess) explained(rank, result, gdrxGetLastError(nullptr));
  }

  gdrxResult_t call(int rank, const OneCall& one) {
    const auto at = static_cast<std::size_t>(rank);
    gdrxComm_t comm = comms_[at];
    Buffers& mine = *buffers_[at];
    const int ranks = plan_.ranks;
    const auto value = [&](int of, std::size_t i) {
      return static_cast<float>(of + 1) + static_cast<float>(i % 13);
    };
    const std::size_t all = one.count * static_cast<std::size_t>(ranks);
    const bool to_all = one.what == What::all_to_all;
    mine.fill_in([&](std::size_t i) { return value(rank, i); }, to_all ? all : one.count);
    mine.clear_out(to_all || one.what == What::all_gather ? all : one.count);
    gdrxResult_t result = gdrxSuccess;
    std::size_t length = one.count;
    std::vector<float>& expected = mine.expected;
    switch (one.what) {
      case What::all_reduce:
        result = gdrxAllReduce(mine.in(), mine.out(), one.count, gdrxFloat32, gdrxSum, comm,
                               mine.stream(), nullptr);
        for (std::size_t i = 0; i < length; ++i) {
          expected[i] = 0;
          for (int r = 0; r < ranks; ++r) expected[i] += value(r, i);
        }
        break;
      case What::broadcast:
        result = gdrxBroadcast(mine.in(), mine.out(), one.count, gdrxFloat32, one.root, comm,
                               mine.stream(), nullptr);
        for (std::size_t i = 0; i < length; ++i) expected[i] = value(one.root, i);
        break;
      case What::all_gather:
        result = gdrxAllGather(mine.in(), mine.out(), one.count, gdrxFloat32, comm, mine.stream(),
                               nullptr);
        length = all;
        for (std::size_t i = 0; i < length; ++i) {
          expected[i] = value(static_cast<int>(i / one.count), i % one.count);
        }
        break;
      case What::all_to_all:
        result = gdrxAllToAll(mine.in(), mine.out(), one.count, gdrxFloat32, comm, mine.stream(),
                              nullptr);
        length = all;
        for (std::size_t i = 0; i < length; ++i) {
          const std::size_t own = static_cast<std::size_t>(rank) * one.count;
          expected[i] = value(static_cast<int>(i / one.count), own + i % one.count);
        }
        break;
      case What::scan:
        result = gdrxScan(mine.in(), mine.out(), one.count, gdrxFloat32, gdrxSum, comm,
                          mine.stream(), nullptr);
        for (std::size_t i = 0; i < length; ++i) {
          expected[i] = 0;
          for (int r = 0; r <= rank; ++r) expected[i] += value(r, i);
        }
        break;
      case What::exchange: {
        if (ranks == 1) return gdrxSuccess;
        const int to = (rank + 1) % ranks;
        const int from = (rank + ranks - 1) % ranks;
        gdrxGroupStart();
        const gdrxResult_t sent =
            gdrxSend(mine.in(), one.count, gdrxFloat32, to, comm, mine.stream(), nullptr);
        const gdrxResult_t received =
            gdrxRecv(mine.out(), one.count, gdrxFloat32, from, comm, mine.stream(), nullptr);
        result = gdrxGroupEnd();
        if (sent != gdrxSuccess) result = sent;
        if (received != gdrxSuccess) result = received;
        for (std::size_t i = 0; i < length; ++i) expected[i] = value(from, i);
        break;
      }
      case What::barrier:
        return gdrxBarrier(comm, mine.stream(), nullptr);
    }
    if (result != gdrxSuccess) return result;
    if (!mine.finish(comm)) {
      gdrxResult_t later = gdrxSuccess;
      gdrxCommGetAsyncError(comm, &later);
      return later == gdrxSuccess ? gdrxSystemError : later;
    }
    if (!mine.equal(length)) say(rank, "a call that succeeded gave a wrong result");
    return gdrxSuccess;
  }

  // A child that ends at once, as a worker of a loader of data may.
  static void fork_a_child() {
    if (fails(Kind::fork)) return;
    const pid_t child = fork();
    if (child == 0) {
      usleep(1000);
      _exit(0);
    }
    if (child > 0) waitpid(child, nullptr, 0);
  }

  bool explained(int rank, gdrxResult_t result, const char* text) {
    const bool static_text = gdrxGetErrorString(result)[0] != '\0';
    if (text == nullptr || text[0] == '\0' || !static_text) {
      say(rank, "an error without a word");
      return false;
    }
    const std::lock_guard lock(mutex_);
    if (error_[0] == '\0') std::snprintf(error_.data(), error_.size(), "rank %d: %s", rank, text);
    return false;
  }
  void say(int rank, const char* text) {
    auto& said = said_[static_cast<std::size_t>(rank)];
    if (said[0] == '\0') std::snprintf(said.data(), said.size(), "rank %d: %s", rank, text);
  }
  void publish(int word) {
    const std::lock_guard lock(mutex_);
    word_ = word;
    changed_.notify_all();
  }
  int await() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return word_ != 0; });
    return word_;
  }

  Plan plan_;
  gdrxUniqueId id_{};
  std::vector<gdrxComm_t> comms_;
  std::vector<std::array<char, 160>> said_;
  decltype(Outcome::error) error_{};
  std::vector<std::atomic<const char*>> where_;
  // Kept from seed to seed.
  static inline std::array<std::unique_ptr<Buffers>, kMostRanks> buffers_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int waiting_ = 0;
  int ended_ = 0;
  int word_ = 0;
  bool go_ = false;
  std::atomic<int> made_{0};
  std::atomic<int> failed_{0};
};

// Of this process's mappings, those of a file with a name that others could open.
long mapped_shared_files() {
  std::ifstream maps("/proc/self/maps");
  long count = 0;
  for (std::string line; std::getline(maps, line);) {
    if (line.find("/dev/shm/") != std::string::npos) ++count;
  }
  return count;
}

long entries_of(const char* folder) {
  long count = 0;
  for ([[maybe_unused]] const auto& one : std::filesystem::directory_iterator(folder)) ++count;
  return count;
}

}  // namespace

Holdings Holdings::now() {
  return {entries_of("/proc/self/fd"), entries_of("/proc/self/task"), mapped_shared_files(),
          live_objects()};
}

std::string grown(const Holdings& before, const Holdings& after) {
  std::string text;
  const auto say = [&](const char* what, std::int64_t more) {
    if (more <= 0) return;
    text += (text.empty() ? "" : ", ") + std::to_string(more) + " " + what;
  };
  say("descriptors", after.descriptors - before.descriptors);
  say("threads", after.threads - before.threads);
  say("files in /dev/shm", after.shared_files - before.shared_files);
  say("objects", after.objects - before.objects);
  return text;
}

Outcome run_seed(std::uint64_t seed, Flavour flavour, std::span<const Fault> faults) {
  Plan plan = plan_of(seed, flavour);
  plan.faults.assign(faults.begin(), faults.end());
  Outcome outcome;
  if (flavour == Flavour::host) {
    if (plan.fabric) {
      unsetenv("GDRX_MODULE_PATH");
    } else {
      setenv("GDRX_MODULE_PATH", "/nowhere", 1);
    }
  }
  World::make_buffers();
  World world(std::move(plan));
  outcome.wrong = world.run(outcome);
  return outcome;
}

}  // namespace gdrx::swarm

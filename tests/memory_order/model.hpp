// SPDX-License-Identifier: Apache-2.0
// Atomics of a machine that orders nothing by itself, and every run of a few threads over them.
//
// A location keeps all values that were stored to it. A load may take any of them that is not older
// than what its thread has to know: that it took or stored there before, or that was published to
// it. Release, acquire, fences and seq_cst publish as in C++20 ([intro.races]); a seq_cst operation
// is as one between two fences of all threads, which is stronger than C++ asks for. A store comes
// behind all that its thread knows, and else anywhere in its location's order. Loads that take what
// is stored only later are not seen.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <source_location>
#include <string>
#include <string_view>
#include <vector>

namespace gdrx::model {

/// An operation in a source, with its order; one may be weakened by a step.
struct Site {
  std::string where;  // file:line, operation
  std::memory_order order;
};
std::vector<std::memory_order> weaker(std::string_view operation, std::memory_order order);
std::string to_string(std::memory_order order);

struct Weakened {
  std::string where;
  std::memory_order order;
};

struct Scenario {
  std::function<void()> begin;                 // before each run
  std::vector<std::function<void()>> threads;  // at most kThreads
  std::function<void()> end;  // after a run in which all threads ended; may be empty
};

struct Limits {
  int preemptions = 2;  // turns that are taken from a thread which could go on
  int stale = 2;        // loads that take another value than the newest, stores that become none
  std::size_t runs = 2'000'000;
};

struct Outcome {
  std::size_t runs = 0;
  bool whole = false;  // every run within the limits was made, or one was found that is wrong
  std::string wrong;   // of the first that is
  std::vector<Site> sites;
};

Outcome explore(const Scenario& scenario, const Limits& limits, const Weakened* weakened = nullptr);

inline constexpr std::size_t kThreads = 3;

// From within a thread.

/// Which of the scenario's threads this is.
std::size_t self();
/// Something that this thread did, such as a plain read or write.
struct Event {
  std::size_t thread = 0;
  std::uint32_t number = UINT32_MAX;  // it did not happen yet
};
Event happen();
/// Whether it happens before what this thread does now: else the two are a race.
bool knows(const Event& event);
/// The run is wrong where it does not hold.
void require(bool holds, std::string_view what);
/// The others' turn: this thread waits for a change. Its next load takes the newest value. The run
/// is wrong where every thread that has not ended waits, and none stores anything any more.
void wait();

// What the atomics call.
std::uint64_t load(void* at, std::uint64_t first, std::memory_order order,
                   std::source_location from);
void store(void* at, std::uint64_t first, std::uint64_t value, std::memory_order order,
           std::source_location from);
/// Reads the newest value and stores `next` of it; the value that was read.
std::uint64_t exchange(void* at, std::uint64_t first,
                       const std::function<std::uint64_t(std::uint64_t)>& next,
                       std::memory_order order, std::source_location from,
                       const char* operation = "exchange");
/// The same where the newest value is `expected`; else a load. `order` may be weakened.
std::uint64_t compare(void* at, std::uint64_t first, std::uint64_t expected, std::uint64_t next,
                      std::memory_order order, std::memory_order failure,
                      std::source_location from);
void fence(std::memory_order order, std::source_location from);
/// PTX has but fence.acq_rel: weakened by a step it is gone.
void fence_of_gpu(std::source_location from);

}  // namespace gdrx::model

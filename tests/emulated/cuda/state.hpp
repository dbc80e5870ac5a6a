// SPDX-License-Identifier: Apache-2.0
// What the emulated CUDA keeps: contexts, memory, streams. One process's; memory that is shared
// between processes is a memfd. Status values are the runtime's, which are the driver's, too.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "tests/emulated/cuda/enqueue.hpp"

struct CUgraph_st {
  std::vector<gdrx::emulated::Work> nodes;
  std::vector<std::shared_ptr<void>> objects;
};

/// A device's primary context; there is no other.
struct CUctx_st {
  int device;
};

namespace gdrx::emulated {

int device_count() noexcept;
/// The thread's; the first device's becomes current if none was, as the runtime does it.
CUcontext current_context() noexcept;
inline int current_device() noexcept { return current_context()->device; }
/// Keeps the status for cudaGetLastError().
cudaError_t told(cudaError_t status) noexcept;

enum class Kind : std::uint8_t { malloced, mapped, imported, pinned, managed, pooled };

/// A range of addresses with memory behind it.
struct Range {
  std::byte* begin = nullptr;
  std::size_t bytes = 0;
  int device = 0;
  Kind kind = Kind::malloced;
  std::shared_ptr<class File> file;
};

/// The range that has the address in it.
std::optional<Range> range_at(const void* address);

/// What is being recorded of one or more streams.
struct Capture {
  struct Member {
    std::shared_ptr<CUstream_st> stream;
    bool joined = false;  // what it has, another one of the capture waits for
  };
  unsigned long long id = 0;
  std::atomic<bool> valid{true};
  std::mutex mutex;
  std::vector<Work> nodes;            // in an order that any of their dependencies allow
  std::unique_ptr<CUgraph_st> graph;  // what they go into
  std::vector<Member> members;        // the first began it
};

/// Refused while this thread captures a stream, which is then invalid.
cudaError_t refuse_in_capture() noexcept;
/// Until the device has done everything.
void finish_device(int device);

/// When an event was reached.
struct Point {
  std::mutex mutex;
  std::condition_variable changed;
  bool reached = false;
  std::chrono::steady_clock::time_point when;
};

}  // namespace gdrx::emulated

struct CUuserObject_st {
  std::shared_ptr<void> held;
};
struct CUgraphExec_st {
  std::shared_ptr<const std::vector<gdrx::emulated::Work>> nodes;
  std::vector<std::shared_ptr<void>> objects;
};
struct CUevent_st {
  std::mutex mutex;
  std::shared_ptr<gdrx::emulated::Point> point;       // none: never recorded
  std::weak_ptr<gdrx::emulated::Capture> in_capture;  // recorded on a stream that was captured
  const CUstream_st* stream = nullptr;                // that one
  bool captured = false;
};
struct CUstream_st {
  explicit CUstream_st(int on) : device(on) {}
  const int device;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<gdrx::emulated::Work> waiting;
  bool busy = false;
  bool ends = false;
  std::shared_ptr<gdrx::emulated::Capture> capture;
};

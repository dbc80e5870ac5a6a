// SPDX-License-Identifier: Apache-2.0
// Times stream-ordered calls of gdrx and of NCCL the same way on one GPU. Without a CUDA toolkit at
// build time create() says so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gdrx/result.hpp"
#include "gdrx/types.hpp"
#include "mpi-tests/calls.hpp"

namespace gdrx::bench {

enum class Mode : std::uint8_t { blocking, stream, graph };

/// Of this rank, microseconds a call.
struct GpuTimes {
  std::vector<double> samples;  // each over kCallsOfSample calls
  double host = 0;              // the host's share of a call, stream mode
};

class GpuBench {
 public:
  static constexpr int kCallsOfSample = 40;
  /// A call on a stream (a cudaStream_t).
  using Enqueue = std::function<void(void* stream)>;
  using Refresh = std::function<void()>;

  virtual ~GpuBench() = default;
  /// Makes GPU `ordinal`, modulo their number, current on this thread, and its context live.
  static Result<std::unique_ptr<GpuBench>> create(int ordinal);

  /// Every rank calls it. Graph: kCallsOfSample calls are captured once and replayed; stream: they
  /// are enqueued one by one. Before each sample as many calls line the ranks up; the first
  /// `warmup` samples do not count. `refresh` comes before the last one: its calls wrote what is
  /// then in the output.
  virtual Result<GpuTimes> time(Mode mode, int warmup, int samples, const Enqueue& call,
                                const Refresh& refresh) = 0;
  /// "NVIDIA H200".
  virtual std::string device_name() const = 0;
  virtual void* stream() const noexcept = 0;
  virtual Result<void> synchronize() = 0;
};

/// NCCL, opened at run time.
class Nccl {
 public:
  virtual ~Nccl() = default;
  /// Collective over MPI_COMM_WORLD. Errc::unsupported where there is no libnccl.so.2.
  static Result<std::unique_ptr<Nccl>> create(int rank, int ranks);
  /// "2.28.3".
  virtual std::string version() const = 0;
  virtual Result<void> call(const Place& place, DataType type, ReduceOp op, const Ends& ends,
                            void* stream) = 0;
  /// Two buffers from ncclMemAlloc, registered as symmetric windows; collective. Errc::unsupported
  /// where this NCCL has no windows.
  virtual Result<std::pair<std::byte*, std::byte*>> windows(std::uint64_t bytes) = 0;
};

}  // namespace gdrx::bench

// SPDX-License-Identifier: Apache-2.0
// What a group's GPU runs: calls go into a stream, and no thread of the host drives them.
//
// A group gets its communicator for this at its first call of CUDA tensors, or when PyTorch names
// its GPU: before that nobody knows which it is, and a group of CPU tensors needs none. It is apart
// from the one for CPU tensors, so that neither waits for the other.
#pragma once

#include <torch/csrc/distributed/c10d/Store.hpp>

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "account.hpp"
#include "device.hpp"
#include "gpu_work.hpp"
#include "work.hpp"

namespace gdrx_torch {

/// What a user asks of a group: the same on every rank, but for the stream.
struct Wishes {
  int gpu_blocks = 0;         // multiprocessors that calls of CUDA tensors may keep busy; 0: gdrx's
  bool reproducible = false;  // sums in the order of ranks; false: as GDRX_REPRODUCIBLE says
  bool urgent_stream = false;  // CUDA calls with async_op are in a stream of high priority
};

/// What the ranks of a group have in common before they have a communicator.
struct Meeting {
  c10::intrusive_ptr<c10d::Store> store;
  std::string name;  // of the group, in the store
  int rank = 0, size = 0;
  Wishes wishes;
};
/// The configuration of a communicator for it.
gdrxConfig_t config_of(const Wishes& wishes);

/// Where a call runs: on the host, or in a stream of a GPU. While this lives that stream is the
/// current one, so copies before and after the call are in it, too.
class Place {
 public:
  Place() = default;  // the host
  /// `async`: in a stream of the group, behind what the caller's has now; else in the caller's.
  Place(Gpu& gpu, c10::Device device, bool async);
  bool on_gpu() const { return stream_.has_value(); }
  const c10::Stream& stream() const { return *stream_; }
  bool async() const { return async_; }

 private:
  std::optional<c10::Stream> stream_;
  bool async_ = false;
  c10::OptionalStreamGuard guard_;
};

/// As PyTorch numbers its memory pools.
using PoolId = std::pair<std::uint64_t, std::uint64_t>;

struct Segment {
  std::uintptr_t address = 0;
  std::uint64_t bytes = 0;
};

struct Message {
  at::Tensor tensor;
  int peer = 0;
  bool sends = false;
};

class Gpu : public std::enable_shared_from_this<Gpu> {
 public:
  /// `number`: of the group, in the record.
  Gpu(Meeting meeting, int number);
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;
  const Meeting& meeting() const { return meeting_; }
  int number() const { return number_; }

  /// Makes the communicator now. Collective.
  void connect(c10::Device device, Milliseconds timeout);
  /// The stream of the group's own. The group is of this device from now on.
  c10::Stream stream_of(c10::Device device);

  c10::intrusive_ptr<c10d::Work> launch(const Place& place, Call call, const Poster& poster,
                                        std::uint64_t number);
  /// By order, without tags. In a bracket: at its end, all as one.
  c10::intrusive_ptr<c10d::Work> exchange(Call call, Message message, std::uint64_t number);
  /// Microseconds that such a call is predicted to take. Nothing starts.
  double predict(const c10::Stream& stream, const char* title, const Poster& poster);
  void start_coalescing();
  std::vector<c10::intrusive_ptr<c10d::Work>> end_coalescing();

  /// Keeps tensors that a stream may still use until `event`.
  void shelve(c10::Event event, std::vector<at::Tensor> tensors, bool captured) noexcept;
  /// Why it has failed; empty: it has not.
  std::string failure();
  void abort();
  /// Waits for what runs, at most `grace`; then every communicator ends.
  void shutdown(Milliseconds grace);
  std::map<const char*, Counted> counts();
  /// Whom kernels wait for, and what is staged. Any thread; no call into CUDA.
  Waits waits();
  std::string explain(c10::Device device, std::size_t bytes, Milliseconds timeout);
  /// Bytes of the GPU that the group's communicators hold.
  std::uint64_t memory();
  /// Maps memory of all ranks, as long at each: collective, and waits for all. If it fails, then on
  /// every rank, and nothing more is mapped than before.
  void share(PoolId pool, const std::vector<Segment>& segments, c10::Device device,
             Milliseconds timeout);
  /// Undoes it: collective, in the same order on every rank.
  void unshare(PoolId pool);

 private:
  static constexpr int kAll = -1;  // no peer: the communicator of all ranks
  struct Comm {
    gdrxComm_t handle = nullptr;
    Milliseconds limit{0};
    std::uint64_t memory = 0;  // of the GPU's, when it was made
  };
  struct Shelved {
    c10::Event event;
    std::vector<at::Tensor> tensors;
    bool captured = false;
  };
  struct Bracket {
    std::vector<Message> messages;
    c10::intrusive_ptr<GpuWork> batch;  // of the messages
    std::vector<c10::intrusive_ptr<c10d::Work>> works;
  };

  void bind(c10::Device device);
  void run(const Place& place, GpuWork& work, int peer, const Poster& poster);
  void run_messages(const std::vector<Message>& messages, GpuWork& work, int peer);
  void record(const Message& message);
  Comm& comm_of(int peer, Milliseconds timeout);
  Comm make(int peer, Milliseconds timeout);
  void free_shelf(const c10::Stream& stream);
  bool settle(Clock::time_point until);
  void check_process(const char* call) const;

  const Meeting meeting_;
  const int number_;
  const int process_;     // a forked child owns nothing of this
  std::mutex looking_;    // taken before lock_, to end a communicator too
  std::mutex launching_;  // a communicator takes one thread at a time; taken before lock_
  std::mutex lock_;       // for moments, of all below
  std::optional<c10::Device> device_;
  std::optional<c10::Stream> own_, last_;  // last_: where the last call went
  std::map<int, Comm> comms_;              // by peer, if it is of two ranks alone
  std::deque<Shelved> shelf_;
  std::map<PoolId, std::vector<gdrxRegistration_t>> shared_;  // with launching_ held
  std::optional<Bracket> bracket_;
  std::map<const char*, Counted> calls_;
  std::string failure_;
  bool left_ = false;
};

}  // namespace gdrx_torch

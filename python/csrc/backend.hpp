// SPDX-License-Identifier: Apache-2.0
// gdrx as a c10d::Backend, for CPU and CUDA tensors. One source for all versions of PyTorch: what a
// version lacks is left out by the macros below.
#pragma once

#include <torch/version.h>
#include <optional>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include <atomic>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "engine.hpp"

#define GDRX_TORCH_AT_LEAST(minor) (TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= (minor))
#if GDRX_TORCH_AT_LEAST(7)
#define GDRX_FROM_2_7 override
#else
#define GDRX_FROM_2_7
#endif
#if GDRX_TORCH_AT_LEAST(8)
#define GDRX_FROM_2_8 override
#else
#define GDRX_FROM_2_8
#endif
#if GDRX_TORCH_AT_LEAST(9)
#define GDRX_FROM_2_9 override
#else
#define GDRX_FROM_2_9
#endif
#if GDRX_TORCH_AT_LEAST(14)
#define GDRX_FROM_2_14 override
#else
#define GDRX_FROM_2_14
#endif
#if GDRX_TORCH_AT_LEAST(15)
#define GDRX_FROM_2_15 override
#else
#define GDRX_FROM_2_15
#endif

namespace gdrx_torch {

using Tensors = std::vector<at::Tensor>;
using TensorLists = std::vector<Tensors>;
using c10dWork = c10::intrusive_ptr<c10d::Work>;
using StorePtr = c10::intrusive_ptr<c10d::Store>;

/// Before 2.8 options do not say whether the caller waits at once: then it is not known.
template <class Options>
bool waits_later(const Options& options) {
  if constexpr (requires { options.asyncOp; }) {
    return options.asyncOp;
  } else {
    return true;
  }
}

/// What a group was made with. PyTorch copies it for groups that it splits off.
struct GroupOptions : c10d::Backend::Options {
  explicit GroupOptions(Milliseconds timeout, Wishes asked = {})
      : Options("gdrx", timeout), wishes(asked) {}
  Wishes wishes;
#if !GDRX_TORCH_AT_LEAST(9)
  std::string group_name;
  std::vector<std::uint64_t> global_ranks_in_group;
#endif
};

/// What the calls of a thread since its begin are predicted to take.
struct Estimate {
  Clock::time_point begun = Clock::now();
  double us = 0;
  bool bracket = false;           // startCoalescing was called, endCoalescing not yet
  std::vector<Message> messages;  // of the bracket
};

class Backend : public c10d::Backend {
 public:
  /// `later`: it has members from the first reconfigure on.
  Backend(StorePtr store, int rank, int size, Milliseconds timeout, const Wishes& wishes,
          bool later = false);
  Backend(StorePtr store, std::shared_ptr<Engine> engine);
  ~Backend() override;

  const std::string getBackendName() const override { return "gdrx"; }
  bool supportsSplitting() const override { return GDRX_TORCH_AT_LEAST(9); }
  bool supportsCoalescing() const GDRX_FROM_2_7 { return true; }
  bool isInitialized() GDRX_FROM_2_15 { return has_members_; }

  c10dWork broadcast(Tensors& tensors, const c10d::BroadcastOptions& opts) override;
  c10dWork allreduce(Tensors& tensors, const c10d::AllreduceOptions& opts) override;
  c10dWork allreduce_sparse(Tensors& tensors, const c10d::AllreduceOptions& opts) override;
  c10dWork allreduce_coalesced(Tensors& tensors,
                               const c10d::AllreduceCoalescedOptions& opts) override;
  c10dWork reduce(Tensors& tensors, const c10d::ReduceOptions& opts) override;
  c10dWork allgather(TensorLists& outputs, Tensors& inputs,
                     const c10d::AllgatherOptions& opts) override;
  c10dWork _allgather_base(at::Tensor& output, at::Tensor& input,
                           const c10d::AllgatherOptions& opts) override;
  c10dWork allgather_coalesced(TensorLists& outputs, Tensors& inputs,
                               const c10d::AllgatherOptions& opts) override;
  c10dWork allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                           const c10d::AllgatherOptions& opts) override;
  c10dWork gather(TensorLists& outputs, Tensors& inputs, const c10d::GatherOptions& opts) override;
  c10dWork gather_into_tensor(at::Tensor& output, at::Tensor& input,
                              const c10d::GatherOptions& opts) GDRX_FROM_2_14;
  c10dWork scatter(Tensors& outputs, TensorLists& inputs,
                   const c10d::ScatterOptions& opts) override;
  c10dWork reduce_scatter(Tensors& outputs, TensorLists& inputs,
                          const c10d::ReduceScatterOptions& opts) override;
  c10dWork _reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                                const c10d::ReduceScatterOptions& opts) override;
  c10dWork reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                           const c10d::ReduceScatterOptions& opts) override;
  c10dWork alltoall_base(at::Tensor& output, at::Tensor& input, std::vector<int64_t>& output_splits,
                         std::vector<int64_t>& input_splits,
                         const c10d::AllToAllOptions& opts) override;
  c10dWork alltoall(Tensors& outputs, Tensors& inputs, const c10d::AllToAllOptions& opts) override;
  c10dWork send(Tensors& tensors, int peer, int tag) override;
  c10dWork recv(Tensors& tensors, int peer, int tag) override;
  c10dWork recvAnysource(Tensors& tensors, int tag) override;
  c10dWork barrier(const c10d::BarrierOptions& opts) override;
  void eagerConnectSingleDevice(at::Device device) override;
  void monitoredBarrier(const c10d::BarrierOptions& opts, bool wait_all_ranks) override;

  void startCoalescing() override;
  c10dWork endCoalescing() override;
  bool supportsTimeEstimation() const GDRX_FROM_2_8 { return true; }
  /// Between the two the calls that this thread makes of this group start nothing, write nothing
  /// and have ended at once, whatever errors come; other threads' are made. Nothing is collective:
  /// a rank may do it alone. A call over a minute after the begin raises.
  void startTimeEstimate() GDRX_FROM_2_15;
  /// Microseconds.
  float endTimeEstimate() GDRX_FROM_2_15;
  void setSequenceNumberForGroup() override {}  // every rank counts its calls from 0
  uint64_t getSequenceNumberForGroup() override { return engine_->sequence(); }

#if GDRX_TORCH_AT_LEAST(10)
  bool supportsShrinking() const override { return true; }
  c10::intrusive_ptr<c10d::Backend> shrink(const std::vector<int64_t>& ranks_to_exclude, int flags,
                                           const c10::intrusive_ptr<Options>& opts) override;
#endif
#if GDRX_TORCH_AT_LEAST(9)
  c10::intrusive_ptr<c10d::Backend> split(const StorePtr& store, const std::vector<int>& ranks,
                                          const c10::intrusive_ptr<Options>& opts) override;
  c10::intrusive_ptr<Options> getBackendOptions() override { return options_; }
#endif
#ifdef C10D_BACKEND_HAS_RECONFIGURE
  bool supportsReconfigure() const override { return true; }
  /// Another one after each reconfigure.
  c10d::ReconfigureHandle get_reconfigure_handle() const override;
  /// Collective over the ranks of the handles, and waits for them. What waits in the group as it
  /// was has an error. If this fails the group has no members; another reconfigure may follow.
  c10dWork reconfigure(const c10d::ReconfigureOptions& opts) override;
#endif
  void setTimeout(Milliseconds timeout) GDRX_FROM_2_9;
  void addEphemeralTimeout(const Milliseconds& timeout) GDRX_FROM_2_14;
  void abort() GDRX_FROM_2_7 { engine_->abort("the group was aborted"); }
  void shutdown() GDRX_FROM_2_7;
#if GDRX_TORCH_AT_LEAST(7)
  c10d::ErrorType getError() override;
#endif
  // For Python alone.
  const c10::intrusive_ptr<GroupOptions>& options() const { return options_; }
  std::string failure() { return engine_->failure(); }
  /// `ranks`: those of the job that it has.
  void named(const std::string& name, const std::vector<std::uint64_t>& ranks);
  std::string explain(std::size_t bytes, bool cuda);
  /// Collective: the group goes on with communicators of other wishes, and what graphs recorded of
  /// the old ones does nothing. No call of the group is in flight.
  void set_reproducible(bool on);
  void share(PoolId pool, const std::vector<Segment>& segments);
  void unshare(PoolId pool) { engine_->gpu().unshare(pool); }
  Stats stats() { return engine_->stats(); }
  int splits() const { return splits_; }

 private:
  Call call_of(c10d::OpType type, const char* title, Milliseconds timeout, bool async) const;
  Place place_of(const at::Tensor& tensor, bool async);
  c10dWork post(const Place& place, Call call, const Poster& poster);
  c10dWork exchange(Call call, Message message);
  Estimate* estimate() const;  // this thread's; null: none is on
  c10dWork foresee(Estimate& estimate, const Place& place, Call call, const Poster& poster);
  c10dWork foresee(Estimate& estimate, Message message);
  c10dWork foresee_messages(Estimate& estimate);
  void check_peer(const char* call, int peer) const;
  Milliseconds limit_of(Milliseconds timeout) const;
  c10dWork gather_lists(c10d::OpType type, TensorLists& outputs, Tensors& inputs,
                        const c10d::AllgatherOptions& opts);
  std::string missing_ranks(Milliseconds timeout, bool wait_all_ranks);
  void tell_barrier(const std::string& missing, Milliseconds timeout);

  StorePtr store_;  // alive as long as the group, as other backends keep it
  std::shared_ptr<Engine> engine_;
  c10::intrusive_ptr<GroupOptions> options_;
  int splits_ = 0;
  StorePtr split_store_;  // of the last that was split off
  c10::weak_intrusive_ptr<c10d::Backend> split_{c10::intrusive_ptr<c10d::Backend>()};
  int barriers_ = 0;
  bool has_members_ = true;
  mutable std::mutex handle_lock_;
  mutable std::optional<gdrxUniqueId> id_;  // of the handle, and of those before that nobody met by
  mutable int handles_ = 0;                 // that there were
  mutable std::string handle_;              // of reconfigure; empty: nobody has asked for it
  std::set<std::int64_t> uuids_;            // of those that were
  static inline std::atomic<std::uint64_t> made_{0};
  const std::uint64_t number_ = ++made_;  // of this process: an address may come again
};

}  // namespace gdrx_torch

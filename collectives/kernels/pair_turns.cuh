// SPDX-License-Identifier: Apache-2.0
// Messages, and what goes as they do, in so few blocks that a warp has more channels than it can
// keep in registers: each channel's state lies in the block's memory between its turns.
//
// No warp waits for one channel alone, and every block is there at once. So it goes on whatever
// blocks the peers have.
#pragma once

#include "collectives/kernels/moved_messages.cuh"

namespace gdrx::gpu {

/// Of each warp, where `warps` carry them. `paired`: see Carrier.
constexpr std::uint32_t channels_of_warp(std::uint32_t tasks, std::uint32_t paired,
                                         std::uint32_t warps) {
  if (paired == 0) return (tasks + warps - 1) / warps;
  return 2 * (((tasks + 1) / 2 + warps - 1) / warps);
}

/// A warp's channels. All of its threads call its functions.
template <class AnyRelay>
class ManyChannels {
 public:
  using AnyCall = typename AnyRelay::AnyCall;
  static constexpr bool kRelays = !std::is_same_v<AnyRelay, NoRelay>;
  using Lane = Channel<InBulk::by_threads, !kRelays>;

  /// `warps`: of a block, that carry.
  __device__ __forceinline__ ManyChannels(const AnyCall& call, std::uint32_t warps) : call_(call) {
    const std::uint32_t all = warps * gridDim.x;
    std::uint32_t warp = threadIdx.x / 32 * gridDim.x + blockIdx.x;
    std::uint32_t paired = 0;
    if constexpr (kRelays) {
      paired = call.paired;
      if (warp < call.relays) relay_.begin(call, warp);
      // Who relays has channels last.
      warp = warp < call.relays ? warp + all - call.relays : warp - call.relays;
    }
    const std::uint32_t most = channels_of_warp(call.tasks, paired, all);
    kept_ = reinterpret_cast<Lane*>(memory_of_launch()) + threadIdx.x / 32 * most;
    for (std::uint32_t unit = warp; count_ < most; unit += all) {
      const std::uint32_t task = paired == 0 || unit < paired ? unit : 2 * unit;
      if (task >= call.tasks) break;
      begin(task);
      if (paired == 0) continue;
      if (unit < paired) paired_ = count_ + 1;
      const std::uint32_t other = unit < paired ? unit + paired : task + 1;
      if (other < call.tasks) begin(other);
    }
  }

  /// False: a wait has ended before all was done, and what has come is void.
  __device__ __forceinline__ bool carry() {
    WaitGuard guard(call_);
    while (true) {
      const Round round = go_round(guard);
      if (round.moved) {
        guard.arrived();
      } else if (!round.waits) {
        break;
      } else if (!all_of_warp(goes_on(guard, round))) {
        return false;
      }
    }
#pragma unroll 1
    for (std::uint32_t i = 0; i < count_; ++i) {
      Lane lane = kept_[i];
      lane.keep(call_);
    }
    if constexpr (kRelays) relay_.keep(call_);
    return true;
  }

 private:
  /// Each channel's turn, once.
  struct Round {
    bool moved = false;
    bool waits = false;
    int peer = 0;  // whom for, the last
    Stage stage{};
    std::uint32_t number = 0;

    template <class Waiting>
    __device__ __forceinline__ void waits_for(const Waiting& one) {
      waits = true;
      peer = one.peer();
      stage = one.stage();
      number = one.number();
    }
  };

  __device__ __forceinline__ Round go_round(WaitGuard& guard) {
    Round round;
    NoStaging memory;
    if constexpr (kRelays) {
      if (!relay_.done()) {
        round.moved = relay_.step(call_, memory);
        if (!round.moved) round.waits_for(relay_);
      }
    }
    std::uint64_t given = kAllPacks;
#pragma unroll 1
    for (std::uint32_t i = 0; i < count_; ++i) {
      Lane lane = kept_[i];
      if (!lane.done()) {
        // Who gives and gets at the same places reads before it writes.
        const std::uint64_t most = i % 2 == 0 || i >= paired_ ? kAllPacks : given;
        if (lane.step(call_, memory, guard, most)) {
          round.moved = true;
        } else {
          round.waits_for(lane);
        }
        keep(i, lane);
      }
      given = lane.given();
    }
    return round;
  }

  __device__ __forceinline__ void begin(std::uint32_t task) {
    Lane lane;
    lane.begin(call_, task);
    keep(count_++, lane);
  }
  /// Its threads know the same of a channel, but for how much of it the peer has emptied: what any
  /// of them knows of that is true.
  __device__ __forceinline__ void keep(std::uint32_t i, const Lane& lane) {
    __syncwarp();
    if (threadIdx.x % 32 == 0) kept_[i] = lane;
    __syncwarp();
  }
  // One thread's clock is enough.
  __device__ __forceinline__ bool goes_on(WaitGuard& guard, const Round& round) const {
    if (threadIdx.x % 32 != 0) return !guard.expired();
    return guard.keep_waiting(round.peer, round.stage, round.number);
  }

  const AnyCall& call_;
  Lane* kept_;
  std::uint32_t count_ = 0;
  std::uint32_t paired_ = 0;
  AnyRelay relay_;
};

inline __global__ void __launch_bounds__(kPairWarps * 32, 1)
    send_receive_in_turns(const __grid_constant__ PairCall call) {
  if (!all_of_warp(goes_on(call))) return;
  ManyChannels<NoRelay> channels(call, blockDim.x / 32);
  if (channels.carry()) copy_own(call, blockDim.x);
}

/// As move_messages().
inline __global__ void __launch_bounds__((kPairWarps + 1) * 32, 1)
    move_messages_in_turns(const __grid_constant__ MovedMessages call) {
  const std::uint32_t warps = blockDim.x / 32 - call.enters;
  if (!enter_if_alone(call, warps)) return;
  if (!all_of_warp(goes_on(call))) return;
  ManyChannels<PairRelay<InBulk::by_threads>> channels(call, warps);
  if (channels.carry()) copy_own(call, 32 * warps);
}

}  // namespace gdrx::gpu

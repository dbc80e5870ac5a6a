// SPDX-License-Identifier: Apache-2.0
// What gdrxCommExplain says of an allReduce: a table for each kind of memory, as both may be used.
#include <fmt/format.h>

#include <algorithm>

#include "collectives/comm/communicator.hpp"

namespace gdrx {
namespace {

// The kernels of a piece are the halves of two-shot, but take fewer multiprocessors than the times
// are from, and may write to the host: the model's time for two-shot is the least.
std::string explain_pieces(const gpu::Host& host, const Pieces& pieces) {
  const std::string_view when =
      pieces.count() == 1 ? "before and after the network's"
                          : "beside the network's, but for the first scatter and the last gather";
  const auto us = gpu::prediction_of(gpu::Kernel::two_shot, host, pieces.piece(0).bytes);
  if (host.ranks == 1 || !us) {
    return fmt::format("  and of the GPUs: copies of a piece, no prediction; {}\n", when);
  }
  return fmt::format("  and of the GPUs: at least {:.1f} us a piece (the kernel two-shot); {}\n",
                     us->us, when);
}

}  // namespace

Result<std::string> Communicator::explain(Bytes bytes) const {
  const bool by_gpus = gpu_ && (hierarchy_ || !fixed_ || gpu::kernel_of(*fixed_));
  const auto choice = choose(machine_, Collective::all_reduce, bytes, fixed_);
  std::string text;
  if (by_gpus) text = hierarchy_ ? explain_hosts(bytes) : explain_gpu(bytes);
  if (!choice && !by_gpus) return fail(Errc::unsupported, "nothing carries an allReduce here");
  if (!choice) return text + "host buffers: nothing carries an allReduce of them here\n";
  const bool gpus = std::any_of(peers_.begin(), peers_.end(),
                                [](const Hello& peer) { return peer.gpu.process != 0; });
  const bool staged = gpus && !by_gpus;
  return text +
         (staged ? "host buffers, and GPU buffers, which are copied to the host: "
                 : "host buffers: ") +
         gdrx::explain(machine_, Collective::all_reduce, bytes, *choice);
}

std::string Communicator::explain_hosts(Bytes bytes) const {
  const bool direct = rail_ != nullptr;
  const Pieces pieces = pieces_of(std::max<Bytes>(bytes, 1));
  const Machine rail = rail_machine();
  const std::string_view memory = direct ? "memory of its own (GPUDirect RDMA)" : "pinned memory";
  std::string text =
      fmt::format("GPU buffers: allReduce of {} bytes, {} on each of {} ranks on {} hosts\n", bytes,
                  gpu_->device_name(), machine_.ranks, machine_.hosts);
  if (gpu_host_.ranks > 1) {
    text += fmt::format(
        "  {} piece(s); of each the GPUs of a host reduce-scatter {} bytes a rank, each into {}, "
        "rails of {} ranks sum these over {}, the GPUs gather\n",
        pieces.count(), pieces.part, memory, rail.ranks, machine_.fabric_name);
  } else {
    text += fmt::format(
        "  {} piece(s) of {} bytes; each GPU copies them into {}, all ranks sum them over {}, each "
        "GPU copies the sums\n",
        pieces.count(), pieces.part, memory, machine_.fabric_name);
  }
  text += "  times of the network for all pieces, from the model\n";
  if (direct) {
    for (const Candidate& way : direct_rail_ways(rail, pieces)) {
      const bool chosen = way.algorithm == rail_algorithm();
      text += explain_row(rail, way, chosen,
                          !chosen  ? ""
                          : fixed_ ? "  <- asked for, by GPUDirect RDMA"
                                   : "  <- chosen, by GPUDirect RDMA");
    }
  } else if (const auto choice = choose_rail(rail, pieces, fixed_)) {
    text += explain_rows(rail, *choice);
  }
  return text + explain_pieces(gpu_host_, pieces);
}

std::string Communicator::explain_gpu(Bytes bytes) const {
  std::string text =
      fmt::format("GPU buffers: allReduce of {} bytes, {} on each of {} ranks, {} blocks\n", bytes,
                  gpu_->device_name(), size(), gpu_host_.blocks);
  const auto line = [](const gpu::Prediction& candidate, bool chosen, std::string_view remark) {
    return fmt::format(
        "  {} {:<17} {:>3} x {:<3} threads, {} packs each   predicted {:>10.1f} us{}\n",
        chosen ? "*" : " ", gpu::to_string(candidate.shape.kernel), candidate.shape.blocks,
        candidate.shape.threads, candidate.shape.unroll, candidate.us, remark);
  };
  const auto all = gpu::candidates(gpu_host_, bytes);
  text += fmt::format("  times from {}\n", all.front().measured ? gpu_measured_by_ : "the model");
  const auto asked = gpu::asked_for(fixed_, gpu_host_, bytes);
  if (asked) text += line(*asked, true, "  <- asked for");
  for (const gpu::Prediction& candidate : all) {
    if (asked && candidate.shape.kernel == asked->shape.kernel) continue;
    const bool chosen = !asked && &candidate == &all.front();
    text += line(candidate, chosen, chosen ? "  <- chosen" : "");
  }
  if (windows_.empty() || fixed_) return text;
  const auto with_direct = gpu::candidates(gpu_host_, bytes, true);
  const bool only = config_.algo == "direct";
  for (const gpu::Prediction& candidate : with_direct) {
    if (candidate.shape.kernel != gpu::Kernel::direct) continue;
    const bool chosen = only || &candidate == &with_direct.front();
    text += line(candidate, chosen,
                 only     ? "  <- asked for, of registered buffers"
                 : chosen ? "  <- chosen for registered buffers"
                          : "  if registered");
  }
  return text;
}

std::size_t Communicator::pinned_memory() const {
  const Driving driving(*this);
  return pinned_->held();
}

std::string Communicator::describe() const {
  const Driving driving(*this);  // counters of the fabric and of the cache
  const double inbox = inbox_ ? static_cast<double>(inbox_->shape().bytes()) / machine_.ranks : 0;
  const RegistrationCache::Counters& registered = registrations_->counters();
  const double arena = layout_ ? static_cast<double>(arena_->bytes().size()) : 0;
  return fmt::format(
      "{} ranks on {} host(s), {} cpu(s) each; shared memory {}{}; fabric {}; arena "
      "{:.1f} MiB, at most {:.1f} MiB of messages from each active peer; {} registered buffer(s), "
      "{} hits, {} misses, {} evicted; GPU memory {:.1f} MiB, pinned {:.1f} MiB{}{}",
      machine_.ranks, machine_.hosts, machine_.cpus, machine_.shm ? "yes" : "no",
      machine_.cma > 0 ? " (CMA)" : "", machine_.fabric ? machine_.fabric_name : "none",
      arena / (1 << 20), inbox / (1 << 20), registrations_->size(), registered.hits,
      registered.misses, registered.evictions,
      gpu_ ? static_cast<double>(gpu_->memory()) / (1 << 20) : 0,
      static_cast<double>(pinned_->held()) / (1 << 20), device_ ? "; " : "",
      device_ ? device_->describe() : "");
}

}  // namespace gdrx

// SPDX-License-Identifier: Apache-2.0
// What gdrxCommExplain says of an allReduce: a table for each kind of memory, as both may be used.
#include <fmt/format.h>

#include <algorithm>

#include "collectives/comm/communicator.hpp"
#include "collectives/comm/gpu_moves.hpp"
#include "collectives/exec/parcels.hpp"
#include "collectives/gpu/message_shape.hpp"

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

// What is asked of a communicator, and all it is asked for.
class Explanation {
 public:
  explicit Explanation(const Communicator& comm) : comm_(comm) {}

  std::string of_hosts(Bytes bytes) const;
  /// By a kernel of allReduce, on GPUs of one host.
  std::string of_sums(Collective collective, Bytes bytes) const;
  std::string of_kernel(const Call& call, Bytes bytes) const;
  std::string of_host_memory(const Call& call, Bytes bytes) const;

 private:
  std::string of_moves(const Call& call, Bytes bytes) const;
  std::string of_bulk(bool in_pieces) const;
  std::string of_blocks(const Call& call) const;
  std::string of_message(Bytes bytes) const;
  std::string on_gpus(Collective collective, Bytes bytes) const;

  const Communicator& comm_;
};

Result<std::string> Communicator::explain(Bytes bytes) const {
  const bool by_gpus =
      gpu_.path && (gpu_.rails.hierarchy() || !choices_.fixed || gpu::kernel_of(*choices_.fixed));
  const auto choice = choose(choices_.machine, Collective::all_reduce, bytes, choices_.fixed);
  const Explanation explanation(*this);
  std::string text;
  if (by_gpus) {
    text = gpu_.rails.hierarchy() ? explanation.of_hosts(bytes)
                                  : explanation.of_sums(Collective::all_reduce, bytes);
  }
  if (!choice && !by_gpus) return fail(Errc::unsupported, "nothing carries an allReduce here");
  if (!choice) return text + "host buffers: nothing carries an allReduce of them here\n";
  const bool gpus = std::any_of(network_.peers().begin(), network_.peers().end(),
                                [](const Hello& peer) { return peer.gpu.process != 0; });
  const bool staged = gpus && !by_gpus;
  Call call;
  call.collective = Collective::all_reduce;
  call.count = (bytes + 3) / 4;  // of float
  std::string routes;
  if (gpus) {
    routes =
        fmt::format("  route of GPU buffers: {}\n", row_of(route_of(call, MemoryKind::cuda)).name);
  }
  routes += fmt::format("  route: {}\n", row_of(route_of(call, MemoryKind::host)).name);
  return text +
         (staged ? "host buffers, and GPU buffers, which are copied to the host: "
                 : "host buffers: ") +
         gdrx::explain(choices_.machine, Collective::all_reduce, bytes, *choice) + routes;
}

Result<void> Communicator::check_shape(const Call& call, MemoryKind memory) const {
  const bool cuda = memory == MemoryKind::cuda;
  if (cuda && is_host_only(call.type)) {
    return fail(Errc::invalid_argument,
                fmt::format("{}: GPU memory has no such type", to_string(call.type)));
  }
  if ((cuda && !why_staged(call)) || choices_.can_carry(call)) return {};
  return fail(Errc::unsupported,
              fmt::format("nothing carries {} here", to_string(call.collective)));
}

Result<std::string> Communicator::explain(const Call& call, MemoryKind memory) const {
  GDRX_TRY(check_shape(call, memory));
  return explain_ways(call, memory) +
         fmt::format("  route: {}\n", row_of(route_of(call, memory)).name);
}

std::string Communicator::explain_ways(const Call& call, MemoryKind memory) const {
  const plan::CollectiveTraits& traits = plan::traits_of(call.collective);
  const std::uint64_t elements = traits.has_parts()
                                     ? call.count * static_cast<std::uint64_t>(size())
                                     : plan::vector_elements(traits, call.count, size());
  const Bytes bytes = elements * size_of(call.type);
  const Explanation explanation(*this);
  const bool cuda = memory == MemoryKind::cuda;
  const auto staged = cuda ? why_staged(call) : std::nullopt;
  if (cuda && !staged) return explanation.of_kernel(call, bytes);
  std::string text;
  if (staged) {
    text = fmt::format("GPU buffers go through pinned host memory: {}\n",
                       text_of(*staged, gpu_.why_not));
    if (gpu_.path)
      text += "  in the order of their stream, and in graphs; without a stream the caller waits\n";
  }
  return text + explanation.of_host_memory(call, bytes);
}

// As make_execution() has it.
std::string Explanation::of_host_memory(const Call& call, Bytes bytes) const {
  const Machine& machine = comm_.choices_.machine;
  const Question question = comm_.choices_.question_of(call);
  const bool messages = plan::traits_of(call.collective).by_messages();
  const auto one = choose_one_block(machine, question);
  if (!one && !messages) {
    const auto choice = choose(machine, question.collective, question.bytes, question.fixed,
                               question.in_rank_order);
    return choice ? gdrx::explain(machine, question.collective, question.bytes, *choice) : "";
  }
  std::string text =
      fmt::format("{} of {} bytes, {} ranks on {} host(s), {} cpu(s) a host\n",
                  to_string(call.collective), bytes, machine.ranks, machine.hosts, machine.cpus);
  if (one) return text + explain_row(machine, *one, true, "  <- in one hop: so few bytes");
  std::string hop;
  if (machine.shm && exec::goes_by_parcels(call.collective, machine.ranks)) {
    hop = fmt::format("in one hop where a rank gives at most {} KiB, else ",
                      exec::kMostInParcel / 1024);
  }
  return text + fmt::format(
                    "  * {}a message to each rank that gets something, all at once, over {}; "
                    "no prediction\n",
                    hop, machine.fabric ? machine.fabric_name : "memory of its own");
}

std::string Explanation::on_gpus(Collective collective, Bytes bytes) const {
  return fmt::format("GPU buffers: {} of {} bytes, {} on each of {} ranks, {} blocks\n",
                     to_string(collective), bytes, comm_.gpu_.path->device_name(), comm_.size(),
                     comm_.gpu_.host.blocks);
}

std::string Explanation::of_kernel(const Call& call, Bytes bytes) const {
  if (comm_.gpu_.rails.hierarchy()) return of_hosts(bytes);
  if (goes_by_moves(call, comm_.choices_.fixed.has_value(), comm_.size())) {
    return on_gpus(call.collective, bytes) + of_moves(call, bytes);
  }
  if (call.collective == Collective::send_recv) {
    return on_gpus(call.collective, bytes) + of_message(bytes);
  }
  if (by_blocks(call.collective)) return on_gpus(call.collective, bytes) + of_blocks(call);
  return of_sums(call.collective,
                 call.collective == Collective::barrier ? sizeof(std::uint32_t) : bytes);
}

// The longest run between two ranks.
std::string Explanation::of_moves(const Call& call, Bytes bytes) const {
  const plan::CollectiveTraits& traits = plan::traits_of(call.collective);
  const int ranks = comm_.size();
  const bool is_broadcast = call.collective == Collective::broadcast;
  const bool in_pieces = is_broadcast && passes_on(bytes, ranks);
  const bool in_two = is_broadcast && scatters_first(bytes, ranks);
  const bool split = traits.has_blocks() || traits.has_parts();
  const auto parts = static_cast<Bytes>(in_pieces || in_two ? ranks - 1 : split ? ranks : 1);
  const gpu::Run run{0, bytes / parts};
  const gpu::Channels channels = gpu::channels_of(ranks, comm_.gpu_.host.blocks);
  const gpu::Move move = gpu::move_of(run, channels);
  const bool adds = traits.reduces;
  const bool in_bulk = run.bytes >= gpu::least_in_bulk(ranks, comm_.gpu_.host.blocks);
  if (!adds && (in_pieces || in_bulk)) return of_bulk(in_pieces);
  return fmt::format(
      "  * {:<17} {:>3} x {:<3} threads, {} tile(s) of {} bytes; no prediction{}\n",
      adds ? "move that adds" : "move", std::max(move.channels, 1U), gpu::kMovers, move.tiles(),
      move.width * sizeof(gpu::Pack),
      in_two ? "; in two: a piece to each rank, each rank's piece to all others" : "");
}

std::string Explanation::of_bulk(bool in_pieces) const {
  const gpu::PairChannels channels = gpu::channels_of_pair(comm_.size(), comm_.gpu_.host.blocks);
  return fmt::format(
      "  * {:<17} {:>3} channel(s) from each rank to each, {} tiles of {} bytes in each; no "
      "prediction{}\n",
      "move in bulk", gpu::channels_of_moved(comm_.size(), channels), channels.tiles,
      gpu::kBulkTile * sizeof(gpu::Pack),
      in_pieces ? "; a piece to each rank, which passes it on" : "");
}

std::string Explanation::of_message(Bytes bytes) const {
  const gpu::MessageShape shape = gpu::shape_of_message(comm_.gpu_.host, bytes);
  return fmt::format("  * {:<17} {:>3} warp(s) of {} packs on each side; no prediction\n",
                     "send and receive", shape.warps, shape.packs);
}

std::string Explanation::of_blocks(const Call& call) const {
  const bool gathers = call.collective == Collective::all_gather;
  const gpu::Shape shape =
      gpu::shape_of_blocks(gathers ? gpu::Kernel::all_gather : gpu::Kernel::reduce_scatter,
                           comm_.gpu_.host, call.count * size_of(call.type));
  return fmt::format("  * {:<17} {:>3} x {:<3} threads, {} packs each{}; no prediction\n",
                     gpu::to_string(shape.kernel), shape.blocks, shape.threads, shape.unroll,
                     shape.whole ? ", in tiles" : "");
}

std::string Explanation::of_hosts(Bytes bytes) const {
  const bool direct = comm_.gpu_.rails.direct() != nullptr;
  const Pieces pieces = comm_.pieces_of(std::max<Bytes>(bytes, 1));
  const Machine rail = comm_.rail_machine();
  const std::string_view memory = direct ? "memory of its own (GPUDirect RDMA)" : "pinned memory";
  std::string text = fmt::format(
      "GPU buffers: allReduce of {} bytes, {} on each of {} ranks on {} hosts\n", bytes,
      comm_.gpu_.path->device_name(), comm_.choices_.machine.ranks, comm_.choices_.machine.hosts);
  if (comm_.gpu_.host.ranks > 1) {
    text += fmt::format(
        "  {} piece(s); of each the GPUs of a host reduce-scatter {} bytes a rank, each into {}, "
        "rails of {} ranks sum these over {}, the GPUs gather\n",
        pieces.count(), pieces.part, memory, rail.ranks, comm_.choices_.machine.fabric_name);
  } else {
    text += fmt::format(
        "  {} piece(s) of {} bytes; each GPU copies them into {}, all ranks sum them over {}, each "
        "GPU copies the sums\n",
        pieces.count(), pieces.part, memory, comm_.choices_.machine.fabric_name);
  }
  text += "  times of the network for all pieces, from the model\n";
  if (direct) {
    for (const Candidate& way : direct_rail_ways(rail, pieces)) {
      const bool chosen = way.algorithm == comm_.choices_.of_rail();
      text += explain_row(rail, way, chosen,
                          !chosen                ? ""
                          : comm_.choices_.fixed ? "  <- asked for, by GPUDirect RDMA"
                                                 : "  <- chosen, by GPUDirect RDMA");
    }
  } else if (const auto choice = choose_rail(rail, pieces, comm_.choices_.fixed)) {
    text += explain_rows(rail, *choice);
  }
  return text + explain_pieces(comm_.gpu_.host, pieces);
}

std::string Explanation::of_sums(Collective collective, Bytes bytes) const {
  std::string text = on_gpus(collective, bytes);
  const auto line = [](const gpu::Prediction& candidate, bool chosen, std::string_view remark) {
    return fmt::format(
        "  {} {:<17} {:>3} x {:<3} threads, {} packs each   predicted {:>10.1f} us{}\n",
        chosen ? "*" : " ", gpu::to_string(candidate.shape.kernel), candidate.shape.blocks,
        candidate.shape.threads, candidate.shape.unroll, candidate.us, remark);
  };
  const auto all = gpu::candidates(comm_.gpu_.host, bytes);
  text +=
      fmt::format("  times from {}\n", all.front().measured ? comm_.gpu_.measured_by : "the model");
  const auto asked = gpu::asked_for(comm_.choices_.fixed, comm_.gpu_.host, bytes);
  if (asked) text += line(*asked, true, "  <- asked for");
  for (const gpu::Prediction& candidate : all) {
    if (asked && candidate.shape.kernel == asked->shape.kernel) continue;
    const bool chosen = !asked && &candidate == &all.front();
    text += line(candidate, chosen, chosen ? "  <- chosen" : "");
  }
  const bool others = collective != Collective::all_reduce;
  if (others || comm_.gpu_.windows.empty() || comm_.choices_.fixed) return text;
  const auto with_direct = gpu::candidates(comm_.gpu_.host, bytes, true);
  const bool only = comm_.settings_.config.algo == "direct";
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

std::string Communicator::describe() const {
  const Driving driving(*this);  // counters of the fabric and of the cache
  const Device* const device = network_.device();
  const double receive_ring =
      static_cast<double>(network_.receive_ring_bytes()) / choices_.machine.ranks;
  const RegistrationCache::Counters& registered = network_.registrations().counters();
  const double arena = memory_.seat ? static_cast<double>(memory_.arena.size()) : 0;
  return fmt::format(
      "{} ranks on {} host(s), {} cpu(s) each; shared memory {}{}; fabric {}; arena "
      "{:.1f} MiB, at most {:.1f} MiB of messages from each active peer; {} registered buffer(s), "
      "{} hits, {} misses, {} evicted; GPU memory {:.1f} MiB, pinned {:.1f} MiB{}{}",
      choices_.machine.ranks, choices_.machine.hosts, choices_.machine.cpus,
      choices_.machine.shm ? "yes" : "no", choices_.machine.cma > 0 ? " (CMA)" : "",
      choices_.machine.fabric ? choices_.machine.fabric_name : "none", arena / (1 << 20),
      receive_ring / (1 << 20), network_.registrations().size(), registered.hits, registered.misses,
      registered.evictions, gpu_.path ? static_cast<double>(gpu_.path->memory()) / (1 << 20) : 0,
      static_cast<double>(network_.pinned().held() + gpu_.rails.pinned_bytes() +
                          streams_.pinned_bytes()) /
          (1 << 20),
      device != nullptr ? "; " : "", device != nullptr ? device->describe() : "");
}

}  // namespace gdrx

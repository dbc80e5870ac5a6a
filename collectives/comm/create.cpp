// SPDX-License-Identifier: Apache-2.0
// How a communicator is made: everybody tells everybody one Hello, agrees on what can be used, and
// the mesh starts to watch.
#include <fmt/format.h>

#include <algorithm>
#include <new>

#include "collectives/comm/choose_fabric.hpp"
#include "collectives/comm/communicator.hpp"
#include "collectives/comm/gpu_share.hpp"
#include "collectives/comm/introduction.hpp"
#include "collectives/comm/meeting.hpp"
#include "collectives/comm/memory_share.hpp"
#include "collectives/comm/own_threads.hpp"
#include "collectives/comm/rail_share.hpp"
#include "collectives/comm/tuning.hpp"
#include "collectives/gpu/load.hpp"
#include "gdrx/gdrx.h"
#include "transport/shm/fabric.hpp"

namespace gdrx {

class CommunicatorBuilder {
 public:
  CommunicatorBuilder(Communicator::Options options, std::unique_ptr<gpu::Path> gpu,
                      const Heritage& heritage = {})
      : comm_(new Communicator), given_gpu_(std::move(gpu)), heritage_(heritage) {
    comm_->settings_.config = std::move(options.config);
    comm_->settings_.timeout = config().timeout;
    comm_->settings_.log = std::move(options.log);
    comm_->failure_.handler.set(comm_.get(), std::move(options.on_error));
    asked_gpu_ = options.gpu;
    needs_gpu_ = options.needs_gpu && config().gpu;
  }

  // Some peer may have its communicator all the same, and kernels that write to this GPU.
  ~CommunicatorBuilder() {
    if (comm_ && comm_->gpu_.path) comm_->gpu_.path->abort();
  }
  CommunicatorBuilder(const CommunicatorBuilder&) = delete;
  CommunicatorBuilder& operator=(const CommunicatorBuilder&) = delete;

  /// How the ranks come to their mesh, by the deadline.
  using Meet = std::function<Result<std::unique_ptr<ControlMesh>>(Deadline)>;

  Result<std::unique_ptr<ControlMesh>> meet_by(Bootstrap& bootstrap, Deadline deadline) {
    const auto introduce = [this](const Heritage& likely) {
      heritage_ = likely;
      return introduce_self();
    };
    Met met = GDRX_TRY(meet(bootstrap, config(), comm_->settings_.log, introduce, deadline));
    heritage_ = std::move(met.heritage);
    hellos_ = std::move(met.hellos);
    return std::move(met.mesh);
  }

  /// What a rank cannot do alone it finds out before the others hear of it, as far as it can.
  Result<std::unique_ptr<Communicator>> run(Rank rank, int size, const Meet& meet) {
    Communicator& comm = *comm_;
    comm.rank_ = rank;
    comm.choices_.machine.ranks = size;
    if (config().algo != "auto") comm.choices_.fixed = plan::parse_algorithm(config().algo);
    GDRX_TRY(check_reproducible(config().reproducible, comm.choices_.fixed));
    tuning_ = GDRX_TRY(Tuning::load(config().tune_file));
    GDRX_TRY(choose_shape());
    open_gpu();
    deadline_ = Deadline::after(steady_clock(), config().init_timeout);
    comm.mesh_ = GDRX_TRY(meet(deadline_));
    if (!heritage_.memory) GDRX_TRY(open_fabric_and_receive_ring());
    GDRX_TRY(exchange_hellos());
    GDRX_TRY(check_settings(comm.network_.peers()));
    GDRX_TRY(check_gpus(comm.network_.peers()));
    describe_machine();
    GDRX_TRY(share_host_memory());
    comm.network_.open_registrations();
    GDRX_TRY(share_gpu());
    if (comm.network_.has_receive_ring()) comm.make_flows();
    comm.trace_.watch(trace::Track::create(config().trace, comm.rank_));
    if (comm.gpu_.path && !comm.gpu_.rails.hierarchy()) {
      comm.gpu_.spans = GpuSpans::create(*comm.gpu_.path, comm.trace_.track(), comm.settings_.log);
    }
    place_progress(*comm.mesh_, comm.network_.device(), comm.gpu_.path.get(), comm.settings_);
    comm.settings_.log.info("rank {} of {}: {}", index(comm.rank_), comm.size(), comm.describe());
    // Who has his communicator uses the others' memory: none of them fails any more and frees it.
    GDRX_TRY(meet_at_the_end(*comm.mesh_, told_, deadline_));
    if (comm.memory_.segment) comm.memory_.segment->seal();
    try {
      comm.watch_peers();
      comm.mesh_->share(heritage_name(config()), comm.heritage(config()).facts());
    } catch (const std::bad_alloc&) {  // they would wait for this rank
      comm.mesh_->announce({no_memory().code, rank, rank, no_memory().what});
      throw;
    }
    return std::move(comm_);
  }

 private:
  const Config& config() const noexcept { return comm_->settings_.config; }

  Result<void> choose_shape() {
    Communicator& comm = *comm_;
    constexpr int kMaxRanks = 4096;  // receive_ring address space: 16 MiB and more a rank
    if (comm.size() > kMaxRanks) {
      return fail(Errc::unsupported,
                  fmt::format("{} ranks; at most {} are possible", comm.size(), kMaxRanks));
    }
    exec::RingShape shape;
    shape.ranks = static_cast<std::uint32_t>(comm.choices_.machine.ranks);
    if (config().lanes > 0) shape.window = static_cast<std::uint32_t>(config().lanes);
    shape.lanes = std::max(shape.window, plan::kMostChannels) + exec::kFlowLanes;
    if (config().slice > 0) shape.slice = config().slice;
    comm.network_.describe_self(comm.rank_, shape);
    comm.choices_.machine.arena_block =
        exec::ArenaLayout::block_for(comm.size(), config().arena_block);
    return {};
  }

  Result<void> open_fabric_and_receive_ring() {
    Communicator& comm = *comm_;
    auto fabric = GDRX_TRY(
        choose_fabric(host_id(config()), config(), *comm.mesh_, comm.settings_.log, deadline_));
    if (!fabric) {
      // Without a fabric the shared memory may still do; whether it does is known later.
      if (config().transport != "auto") return tl::unexpected(std::move(fabric).error());
      comm.settings_.log.info("no fabric: {}", describe(fabric.error()));
      return {};
    }
    comm.network_.use(*fabric);
    return comm.network_.open(
        GDRX_TRY((*fabric)->open_device(comm.rank_, config(), comm.settings_.log)));
  }

  // For the heritage as it is known now.
  Result<Blob> introduce_self() {
    Communicator& comm = *comm_;
    Offered offered;
    const bool offers_memory = index(comm.rank_) == 0 && (heritage_.memory || shm_wanted());
    if (offers_memory) offered.memory = memory_layout().bytes();
    offered.needs_memory = heritage_.memory;
    offered.process = shm_wanted() && writes_processes();
    Introduction own = GDRX_TRY(
        introduce(config(), host_id(config()), tuning_.fingerprint(), offered, comm.settings_.log));
    offer_gpu(own.hello);
    if (const Device* const device = comm.network_.device()) {
      own.hello.device_address = device->address();
      own.hello.receive_ring_key = comm.network_.receive_ring().key();
    }
    comm.memory_.segment = std::move(own.memory);
    comm.memory_.gate = std::move(own.gate);
    return encode(own.hello);
  }

  // Those who met in memory that they share have heard each other.
  Result<std::vector<Blob>> tell_hellos() {
    if (!hellos_.empty()) return std::move(hellos_);
    const Blob mine = GDRX_TRY(introduce_self());
    return heritage_.tell ? heritage_.tell(mine) : comm_->mesh_->all_gather(mine, deadline_);
  }

  Result<void> exchange_hellos() {
    Communicator& comm = *comm_;
    const std::vector<Blob> all = GDRX_TRY(tell_hellos());
    KeyContext told;
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
      told.add(std::span(all[rank]));
      auto hello = decode_hello(all[rank]);
      if (!hello) {
        return fail(hello.error().code, fmt::format("rank {}: {}", rank, hello.error().what));
      }
      comm.network_.peers().push_back(std::move(*hello));
    }
    told_ = GDRX_TRY(derive(comm.mesh_->key(), "gdrx told", told));
    return {};
  }

  bool shm_wanted() const {
    const std::string& transport = config().transport;
    return config().shared_memory && (transport == "auto" || transport == "shm") &&
           comm_->choices_.machine.ranks > 1;
  }

  bool writes_processes() const {
    return config().cma > 0 && (!heritage_.memory || heritage_.processes);
  }

  // With receive rings and mailboxes in it where it is known that the ranks share memory.
  shm::CommonLayout memory_layout() const {
    const Communicator& comm = *comm_;
    const std::size_t arena =
        shm_wanted() ? exec::ArenaLayout::bytes(comm.size(), comm.choices_.machine.arena_block) : 0;
    if (!heritage_.memory) return {0, arena, 0};
    const exec::RingShape& shape = comm.network_.shape();
    return {shape.ranks, arena, shape.bytes()};
  }

  // Before the clock runs: a GPU newer than the kernels has them compiled for it, once.
  void open_gpu() {
    Communicator& comm = *comm_;
    if (!config().gpu) {
      comm.gpu_.why_not = "GDRX_GPU=0";
      return;
    }
    const Instant begin = steady_clock().now();
    auto path = given_gpu_ ? Result<std::unique_ptr<gpu::Path>>(std::move(given_gpu_))
                           : gpu::open_path(config(), asked_gpu_);
    if (!path) {
      comm.gpu_.why_not = describe(path.error());
      comm.settings_.log.info("no GPU: {}", comm.gpu_.why_not);
      return;
    }
    comm.gpu_.path = std::move(*path);
    const std::chrono::duration<double> took = steady_clock().now() - begin;
    if (took > std::chrono::seconds(5)) {
      comm.settings_.log.warn(
          "opening {} took {:.0f} s: its kernels were compiled for it, which CUDA keeps",
          comm.gpu_.path->device_name(), took.count());
    }
  }

  void offer_gpu(Hello& mine) const {
    mine.no_gpu = comm_->gpu_.why_not;
    mine.needs_gpu = needs_gpu_;
    if (!comm_->gpu_.path) return;
    mine.gpu = comm_->gpu_.path->ticket();
    mine.gpu_name = comm_->gpu_.path->device_name();
  }

  Hierarchy arrange(std::span<const std::string> hosts, bool one_host) const {
    const Communicator& comm = *comm_;
    auto by_host = hierarchy_of(hosts, comm.rank_);
    // Added up host by host is not the order of ranks.
    if (by_host && (one_host || !config().reproducible)) return std::move(*by_host);
    if (!by_host && index(comm.rank_) == 0) {
      comm.settings_.log.info("between hosts each GPU is by itself: {}", by_host.error().what);
    }
    return each_alone(comm.size(), comm.rank_);
  }

  Result<void> share_gpu() {
    Communicator& comm = *comm_;
    const bool one_host = comm.choices_.machine.hosts == 1;
    if (one_host && config().transport != "auto") {  // it carries what it can
      comm.gpu_.give_up(fmt::format("{} is to carry all calls", config().transport));
      return {};
    }
    std::vector<gpu::Ticket> tickets;
    std::vector<std::string> hosts;
    for (const Hello& peer : comm.network_.peers()) {
      tickets.push_back(peer.gpu);
      hosts.push_back(peer.host_id);
    }
    Hierarchy hierarchy = arrange(hosts, one_host);
    if (!one_host && comm.gpu_.path) {
      if (auto memory = comm.gpu_.rails.take_pinned(*comm.gpu_.path, comm.network_.registrations());
          !memory) {
        // Then nobody uses GPUs between hosts.
        comm.gpu_.give_up(fmt::format("no pinned memory: {}", describe(memory.error())));
      }
    }
    comm.gpu_.why_not =
        GDRX_TRY(share_gpus({comm.gpu_.path.get(), comm.gpu_.why_not}, comm.network_.peers(),
                            hierarchy, *comm.mesh_, deadline_));
    if (!comm.gpu_.why_not.empty()) {
      comm.gpu_.rails.give_pinned_back(comm.network_.registrations());
      comm.gpu_.path.reset();
      return {};
    }
    // In one default stream kernels that wait for each other would stand one behind the other.
    comm.gpu_.own_queue = ranks_on_gpu(comm.network_.peers(), comm.gpu_.path->ticket()) > 1;
    comm.gpu_.flags.emplace(comm.gpu_.path->flags());
    if (config().gpu_staging > 0) (void)comm.pinned_of(config().gpu_staging);
    const int budget = config().gpu_blocks > 0 ? config().gpu_blocks : 1024;
    comm.gpu_.host = {static_cast<int>(hierarchy.host.size()),
                      gpu::co_resident_blocks(tickets, budget), config().reproducible};
    if (one_host) {
      comm.gpu_.measured_by = tuning_.gpu(comm.network_.peers(), comm.gpu_.host);
    } else {
      comm.gpu_.rails.stand(std::move(hierarchy));
      GDRX_TRY(share_rail());
    }
    return {};
  }

  Result<void> share_rail() {
    Communicator& comm = *comm_;
    auto plan = exec::RailPlan::create(comm.choices_.of_rail(), comm.rail_machine().ranks,
                                       comm.gpu_.rails.hierarchy()->own_host);
    if (!plan) {  // on every rank
      comm.settings_.log.info("no GPUDirect RDMA between hosts: {}", gdrx::describe(plan.error()));
      return {};
    }
    exec::RailAdder& adder = comm.gpu_.rails.plan(std::move(*plan), *comm.gpu_.flags);
    const RailOffer offer{comm.gpu_.path.get(), comm.network_.device(), config().gpu_direct,
                          &adder};
    comm.gpu_.rails.use(GDRX_TRY(share_rails(offer, *comm.gpu_.rails.hierarchy(), comm.rank_,
                                             *comm.mesh_, comm.settings_.log, deadline_)));
    return {};
  }

  void describe_machine() {
    Machine& machine = comm_->choices_.machine;
    machine.reproducible = config().reproducible;
    std::map<std::string, CpuSet> hosts;
    machine.fabric = true;
    for (const Hello& peer : comm_->network_.peers()) {
      hosts[peer.host_id] |= peer.cpus;
      machine.fabric &= heritage_.memory || !peer.device_address.empty();
    }
    machine.hosts = static_cast<int>(hosts.size());
    machine.cpus = static_cast<int>(kMaxCpus);
    for (const auto& [id, cpus] : hosts) {
      machine.cpus = std::max(1, std::min(machine.cpus, static_cast<int>(cpus.count())));
    }
    if (heritage_.memory) comm_->network_.use(shm::make_fabric(comm_->network_.shape().ranks));
    const auto& fabric = comm_->network_.fabric();
    machine.fabric_name = fabric ? std::string(fabric->name()) : "none";
    const Log log = index(comm_->rank_) == 0 ? comm_->settings_.log : Log({}, nullptr);  // once
    auto measured = tuning_.host(comm_->network_.peers(), machine, log);
    machine.measured = std::move(measured.curves);
    machine.measured_by = std::move(measured.by);
    machine.measured_not = std::move(measured.none);
  }

  Result<void> share_host_memory() {
    Communicator& comm = *comm_;
    Machine& machine = comm.choices_.machine;
    const shm::CommonLayout layout = memory_layout();
    HostMemory& memory = comm.memory_;
    SharedMemory shared =
        GDRX_TRY(share_memory({std::move(memory.segment), layout.bytes(), machine.hosts == 1},
                              comm.network_.peers(), heritage_, *comm.mesh_, deadline_));
    memory.segment = std::move(shared.segment);
    if (heritage_.memory) GDRX_TRY(open_receive_ring_in(layout));
    machine.shm = memory.segment != nullptr && shm_wanted();
    if (machine.shm) {
      memory.arena = memory.segment->bytes().first(layout.before);
      comm.memory_.seat.emplace(
          exec::ArenaLayout(memory.arena, comm.size(), machine.arena_block, machine.share_cores()),
          index(comm.rank_));
    } else if (machine.hosts == 1 && shm_wanted()) {
      comm.settings_.log.warn("shared memory between ranks is not used: {}", shared.why_not);
    }
    if (!machine.shm && !machine.fabric && machine.ranks > 1) {
      return fail(Errc::unsupported,
                  "no way to reach the other ranks: no fabric could be opened "
                  "(is UCX installed?) and shared memory is not usable (is GDRX_SHM 0?)");
    }
    if (!machine.shm || !writes_processes()) return {};
    const std::string why_not =
        GDRX_TRY(share_processes(comm.network_.peers(), heritage_, *comm.mesh_, deadline_));
    if (why_not.empty()) {
      machine.cma = config().cma;
      for (const Hello& peer : comm.network_.peers())
        comm.memory_.processes.push_back(peer.process);
    } else if (index(comm.rank_) == 0) {
      comm.settings_.log.info("ranks do not write each other's memory: {}", why_not);
    }
    return {};
  }

  // In memory that every rank has mapped: nobody need tell where.
  Result<void> open_receive_ring_in(const shm::CommonLayout& layout) {
    Communicator& comm = *comm_;
    place_receive_rings(comm.network_.peers(), layout, comm.memory_.segment->ticket());
    return comm.network_.open(GDRX_TRY(shm::open_device(layout, comm.memory_.segment, comm.rank_)));
  }

  std::unique_ptr<Communicator> comm_;
  std::unique_ptr<gpu::Path> given_gpu_;
  std::optional<int> asked_gpu_;
  bool needs_gpu_ = false;
  Heritage heritage_;
  std::vector<Blob> hellos_;  // by rank, where they have been told
  Key told_;                  // of all that the ranks have said of themselves
  Deadline deadline_ = Deadline::never();
  Tuning tuning_;
};

Result<std::unique_ptr<Communicator>> Communicator::create(Bootstrap& bootstrap, Options options,
                                                           std::unique_ptr<gpu::Path> gpu) {
  CommunicatorBuilder builder(std::move(options), std::move(gpu));
  return builder.run(bootstrap.rank(), bootstrap.size(),
                     [&](Deadline deadline) { return builder.meet_by(bootstrap, deadline); });
}

Result<std::unique_ptr<Communicator>> Communicator::create(std::unique_ptr<ControlMesh> mesh,
                                                           Options options,
                                                           const Heritage& heritage) {
  CommunicatorBuilder builder(std::move(options), nullptr, heritage);
  return builder.run(mesh->rank(), mesh->size(), [&](Deadline) {
    return Result<std::unique_ptr<ControlMesh>>(std::move(mesh));
  });
}

}  // namespace gdrx

// SPDX-License-Identifier: Apache-2.0
// Verbs devices of several hosts on a simulated network, all driven by one thread.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/fabric/network.hpp"
#include "transport/verbs/device.hpp"

namespace gdrx::sim {

struct Host {
  std::shared_ptr<const verbs::VerbsTable> verbs;
  std::shared_ptr<verbs::VerbsDevice> device;
  std::unique_ptr<MemoryRegion> receive_ring;
  std::vector<std::unique_ptr<Endpoint>> endpoints;  // by rank; null: itself
  std::vector<RemoteRegionId> receive_rings;         // of the others
  std::vector<Completion> completions;               // all so far
  std::vector<std::string> log;
  std::string error;  // of poll()
  bool slow = false;  // does not poll
};

struct ClusterSettings {
  int hosts = 2;
  int nics = 1;
  int qps = 1;
  std::size_t receive_ring = 1 << 20;
  std::uint64_t seed = 1;
  int timeout = 8;  // 1 ms, and so 8 ms until a QP gives up
  std::chrono::milliseconds heartbeat{10};
  std::uint32_t max_message = 1U << 30;
  std::vector<int> first_subnet;  // of each host
  bool routed = true;             // between subnets
  int unresolved = 0;  // so many ibv_create_ah of each host time out, as when nobody answers
  std::chrono::milliseconds peer_timeout{2000};
  std::vector<int> nics_of;              // by host, instead of nics
  std::vector<std::string> pci_folders;  // of each host's NICs
  const cuda::GpuCalls* gpu = &cuda::gpu_calls();
  bool dma_buf = true;  // of every NIC
  bool peermem = true;
  GpuDirect gpu_direct = GpuDirect::automatic;
  bool gpu_flush = false;
  std::vector<std::uint32_t> ece;  // of each host's NICs
  bool use_ece = true;
  int adaptive_routing = 0;
  std::vector<bool> soft;  // of each host: its NICs are soft-RoCE, and may repeat
  bool repeats = false;    // all NICs may, and do not say so
  Level log_level = Level::warn;
  std::vector<std::uint32_t> unreliable;  // of each host's NICs, as NicSettings
  bool own_thread = false;                // for slow calls: the clock has to be a real one
  bool infiniband = false;
  bool live = false;  // the real clock
  bool star = false;  // the first is connected to each other one, and nobody else to anybody
  /// What a test changes of the verbs that a host calls.
  std::function<void(int rank, verbs::VerbsTable&)> amend;
  bool start = true;  // false: start() does it, and may fail
};

class Cluster {
 public:
  explicit Cluster(const ClusterSettings& settings)
      : network(settings.live ? Network::Mode::live : Network::Mode::deterministic, settings.seed),
        settings_(settings) {
    network.set_gpu(*settings.gpu);
    if (!settings.start) return;
    if (auto started = start(); !started) throw std::runtime_error(describe(started.error()));
  }
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  Result<void> start() {
    for (int rank = 0; rank < settings_.hosts; ++rank) GDRX_TRY(open(rank));
    for (int rank = 0; rank < settings_.hosts; ++rank) GDRX_TRY(connect(rank));
    return {};
  }

  Host& operator[](int rank) { return *hosts[static_cast<std::size_t>(rank)]; }

  void poll_all() {
    for (auto& host : hosts) {
      if (host->slow || !host->error.empty()) continue;
      std::array<Completion, 16> batch;
      auto polled = host->device->poll(batch);
      if (!polled) {
        host->error = describe(polled.error());
        continue;
      }
      host->completions.insert(host->completions.end(), batch.begin(),
                               batch.begin() + static_cast<std::ptrdiff_t>(*polled));
    }
  }
  /// Polls until `done`, at most `limit` of simulated time. False: it was not done by then.
  bool run_until(const std::function<bool()>& done, Duration limit = std::chrono::seconds(5),
                 Duration step = std::chrono::microseconds(5)) {
    const Instant end = network.now() + limit;
    while (!done()) {
      if (network.now() >= end) return false;
      network.run_for(step);
      poll_all();
    }
    return true;
  }
  void run_for(Duration time) {
    run_until([] { return false; }, time);
  }
  Result<Progress> post(int from, int to, std::span<const std::byte> header,
                        std::span<const std::byte> payload, Bytes offset,
                        std::optional<std::uint32_t> immediate, std::uint64_t cookie,
                        const MemoryRegion* local = nullptr) {
    Host& host = (*this)[from];
    WriteOp op;
    op.header = header;
    op.payload = payload;
    op.local = local;
    op.remote = host.receive_rings[static_cast<std::size_t>(to)];
    op.offset = offset;
    op.has_immediate = immediate.has_value();
    op.immediate = immediate.value_or(0);
    op.cookie = cookie;
    return host.endpoints[static_cast<std::size_t>(to)]->post(op);
  }
  /// Polls until the write is taken.
  void send(int from, int to, std::span<const std::byte> payload, Bytes offset,
            std::optional<std::uint32_t> immediate, std::uint64_t cookie = 0) {
    ASSERT_TRUE(run_until([&] {
      auto posted = post(from, to, {}, payload, offset, immediate, cookie);
      return posted.has_value() && *posted == Progress::done;
    }));
  }
  std::size_t count(int rank, CompletionKind kind) {
    return static_cast<std::size_t>(
        std::count_if((*this)[rank].completions.begin(), (*this)[rank].completions.end(),
                      [&](const Completion& c) { return c.kind == kind; }));
  }

  Network network;
  std::vector<std::unique_ptr<Host>> hosts;

 private:
  Result<void> open(int rank) {
    auto host = std::make_unique<Host>();
    NicSettings nics;
    nics.nics = settings_.nics_of.empty() ? settings_.nics
                                          : settings_.nics_of[static_cast<std::size_t>(rank)];
    nics.max_message = settings_.max_message;
    nics.routed = settings_.routed;
    nics.infiniband = settings_.infiniband;
    if (!settings_.first_subnet.empty()) {
      nics.first_subnet = settings_.first_subnet[static_cast<std::size_t>(rank)];
    }
    nics.dma_buf = settings_.dma_buf;
    nics.peermem = settings_.peermem;
    nics.pci_folders = settings_.pci_folders;
    if (!settings_.ece.empty()) nics.ece = settings_.ece[static_cast<std::size_t>(rank)];
    nics.soft = !settings_.soft.empty() && settings_.soft[static_cast<std::size_t>(rank)];
    nics.repeats = nics.soft || settings_.repeats;
    if (!settings_.unreliable.empty()) {
      nics.unreliable = settings_.unreliable[static_cast<std::size_t>(rank)];
    }
    host->verbs = network.add_host(nics);
    if (settings_.unresolved > 0) {
      auto table = std::make_shared<verbs::VerbsTable>(*host->verbs);
      table->create_ah = [real = table->create_ah, left = settings_.unresolved](
                             ibv_pd* pd, ibv_ah_attr* attributes) mutable -> ibv_ah* {
        errno = ETIMEDOUT;
        return left-- > 0 ? nullptr : real(pd, attributes);
      };
      host->verbs = std::move(table);
    }
    if (settings_.amend) {
      auto table = std::make_shared<verbs::VerbsTable>(*host->verbs);
      settings_.amend(rank, *table);
      host->verbs = std::move(table);
    }
    verbs::Options options;
    options.qps = static_cast<std::uint8_t>(settings_.qps);
    options.timeout = static_cast<std::uint8_t>(settings_.timeout);
    options.soft_timeout = options.timeout;
    options.soft_nap = {};
    options.own_thread = settings_.own_thread;
    options.heartbeat = settings_.heartbeat;
    options.peer_timeout = settings_.peer_timeout;
    options.staging = 4 << 20;
    options.gpu_direct = settings_.gpu_direct;
    options.gpu_flush = settings_.gpu_flush;
    options.ece = settings_.use_ece;
    options.adaptive_routing = settings_.adaptive_routing;
    Host* raw = host.get();
    const Log log(settings_.log_level,
                  [raw](Level, std::string_view line) { raw->log.emplace_back(line); });
    host->device = GDRX_TRY(
        verbs::VerbsDevice::create(host->verbs, Rank{rank}, options, network.clock(), log,
                                   0x1000 + static_cast<std::uint64_t>(rank), *settings_.gpu));
    host->receive_ring = GDRX_TRY(host->device->allocate_memory(settings_.receive_ring));
    hosts.push_back(std::move(host));
    return {};
  }
  Result<void> connect(int rank) {
    Host& host = (*this)[rank];
    host.endpoints.resize(hosts.size());
    host.receive_rings.resize(hosts.size());
    for (int peer = 0; peer < settings_.hosts; ++peer) {
      if (peer == rank || (settings_.star && peer != 0 && rank != 0)) continue;
      const auto at = static_cast<std::size_t>(peer);
      host.endpoints[at] =
          GDRX_TRY(host.device->connect(Rank{peer}, (*this)[peer].device->address()));
      host.receive_rings[at] =
          GDRX_TRY(host.endpoints[at]->import_region((*this)[peer].receive_ring->export_key()));
    }
    return {};
  }
  ClusterSettings settings_;
};

inline std::vector<std::byte> pattern(std::size_t bytes, std::uint64_t seed) {
  std::vector<std::byte> data(bytes);
  Random random(seed);
  for (std::size_t i = 0; i < bytes; i += 8) {
    const std::uint64_t word = random.next();
    std::memcpy(data.data() + i, &word, std::min<std::size_t>(8, bytes - i));
  }
  return data;
}

}  // namespace gdrx::sim

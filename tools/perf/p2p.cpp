// SPDX-License-Identifier: Apache-2.0
#include "tools/perf/p2p.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>

#include "tools/perf/p2p_gpu.hpp"

namespace gdrx::perf {
namespace {

// Numbers of the driver's documented ABI.
constexpr int kMajor = 75;
constexpr int kMinor = 76;
constexpr int kP2pAtomics = 3;
constexpr int kAlreadyEnabled = 704;
constexpr unsigned kRounds = 2000;

using Gpus = std::vector<std::unique_ptr<PeerGpu>>;

std::string model_of(const cuda::Device& device) {
  std::array<char, 96> name{};
  if (device.cuda().device_name(name.data(), name.size(), device.ordinal()) != 0) return {};
  return name.data();
}

bool enable(const cuda::Device& from, const cuda::Device& to) {
  const cuda::Current current(from);
  int can = 0;
  const cuda::Driver& cuda = from.cuda();
  if (cuda.can_access(&can, from.ordinal(), to.ordinal()) != 0 || can == 0) return false;
  const int status = cuda.enable_peer(to.context(), 0);
  return status == 0 || status == kAlreadyEnabled;
}

class Measurement {
 public:
  Measurement(const Gpus& gpus, const P2pOptions& options) : gpus_(gpus), options_(options) {}

  Result<void> pair(std::size_t a, std::size_t b, P2pPair& there, P2pPair& back) {
    there.copy = GDRX_TRY(one_way(a, b, copy(a, b), there));
    back.copy = GDRX_TRY(one_way(b, a, copy(b, a), back));
    there.copy_both = back.copy_both = GDRX_TRY(rate({copy(a, b), copy(b, a)}));
    if (there.access) there.store = GDRX_TRY(one_way(a, b, store(a, b), there));
    if (back.access) back.store = GDRX_TRY(one_way(b, a, store(b, a), back));
    if (there.access) there.load = GDRX_TRY(rate({load(a, b)}));
    if (back.access) back.load = GDRX_TRY(rate({load(b, a)}));
    if (!there.access || !back.access) return {};
    there.store_both = back.store_both = GDRX_TRY(rate({store(a, b), store(b, a)}));
    there.load_both = back.load_both = GDRX_TRY(rate({load(a, b), load(b, a)}));
    there.round_trip = GDRX_TRY(round_trip(a, b, there));
    back.round_trip = GDRX_TRY(round_trip(b, a, back));
    return {};
  }

  /// GB/s out of each GPU.
  Result<double> all(bool by_kernel) {
    const std::size_t peers = gpus_.size() - 1;
    const std::size_t slice = options_.bytes / gpus_.size() / 4096 * 4096;
    std::vector<Job> jobs;
    for (std::size_t step = 1; step <= peers; ++step) {
      for (std::size_t a = 0; a < gpus_.size(); ++a) {
        const std::size_t b = (a + step) % gpus_.size();
        jobs.push_back(by_kernel ? store(a, b, slice, a * slice, options_.blocks)
                                 : copy(a, b, slice, a * slice));
      }
    }
    const int iterations = options_.iterations * static_cast<int>(gpus_.size());
    const double seconds = GDRX_TRY(run_jobs(jobs, iterations, true));
    return static_cast<double>(slice * peers) * iterations / seconds / 1e9;
  }

 private:
  static unsigned value(std::size_t gpu) { return 0x5a000001u + static_cast<unsigned>(gpu) * 257; }

  Job copy(std::size_t from, std::size_t to) const { return copy(from, to, options_.bytes, 0); }
  Job copy(std::size_t from, std::size_t to, std::size_t bytes, std::size_t at) const {
    const PeerGpu* a = gpus_[from].get();
    const PeerGpu* b = gpus_[to].get();
    return {a, [=](void* stream) {
              const cuda::Current current(a->device());
              return a->device().cuda().copy_peer(b->target() + at, b->device().context(),
                                                  a->source() + at, a->device().context(), bytes,
                                                  stream);
            }};
  }
  Job store(std::size_t from, std::size_t to) const {
    return store(from, to, options_.bytes, 0, options_.blocks);
  }
  Job store(std::size_t from, std::size_t to, std::size_t bytes, std::size_t at, int blocks) const {
    const PeerGpu* a = gpus_[from].get();
    const PeerGpu* b = gpus_[to].get();
    const unsigned what = value(from);
    return {a,
            [=](void* stream) { return a->store(b->target() + at, bytes, what, blocks, stream); }};
  }
  Job load(std::size_t from, std::size_t to) const {
    const PeerGpu* a = gpus_[from].get();
    const PeerGpu* b = gpus_[to].get();
    const P2pOptions options = options_;
    return {a, [=](void* stream) {
              return a->load(b->source(), options.bytes, options.blocks, stream);
            }};
  }

  Result<double> rate(const std::vector<Job>& jobs) const {
    const double seconds = GDRX_TRY(run_jobs(jobs, options_.iterations, true));
    return static_cast<double>(options_.bytes) * options_.iterations / seconds / 1e9;
  }
  /// With the bytes compared: cleared before, looked at after.
  Result<double> one_way(std::size_t from, std::size_t to, Job job, P2pPair& into) const {
    GDRX_TRY(gpus_[from]->fill_source(value(from)));
    GDRX_TRY(gpus_[to]->clear_target());
    const double found = GDRX_TRY(rate({std::move(job)}));
    const bool right = GDRX_TRY(gpus_[to]->target_holds(value(from), options_.bytes));
    if (!right) into.problem = "the bytes that arrived are others than those sent";
    return right ? found : 0;
  }

  Result<double> round_trip(std::size_t a, std::size_t b, P2pPair& into) const {
    GDRX_TRY(gpus_[a]->clear_target());
    GDRX_TRY(gpus_[b]->clear_target());
    const PeerGpu* first = gpus_[a].get();
    const PeerGpu* second = gpus_[b].get();
    const std::vector<Job> jobs{
        {second,
         [=](void* stream) { return second->ping(first->flags(), kRounds, false, stream); }},
        {first, [=](void* stream) { return first->ping(second->flags(), kRounds, true, stream); }}};
    const double seconds = GDRX_TRY(run_jobs(jobs, 1, false));
    unsigned rounds = 0;
    GDRX_TRY(first->flag_memory().read(PeerGpu::kVerdictAt,
                                       std::as_writable_bytes(std::span(&rounds, 1))));
    if (rounds == kRounds) return seconds / kRounds * 1e6;
    into.problem = "a flag did not come back within 2 s";
    return 0.0;
  }

  const Gpus& gpus_;
  const P2pOptions& options_;
};

}  // namespace

Result<P2pReport> measure_p2p(const P2pOptions& options) {
  const auto devices = GDRX_TRY(cuda::open_all());
  if (devices.empty()) return fail(Errc::unsupported, "this process sees no GPU");
  P2pReport report{options, {}, {}, 0, 0};
  Gpus gpus;
  for (const auto& device : devices) {
    report.gpus.push_back({device->bus(), model_of(*device),
                           device->attribute(kMajor) * 10 + device->attribute(kMinor)});
    gpus.push_back(GDRX_TRY(PeerGpu::create(device, options.bytes)));
  }
  const std::size_t count = gpus.size();
  report.pairs.assign(count, std::vector<P2pPair>(count));
  bool all = count > 1;
  for (std::size_t a = 0; a < count; ++a) {
    for (std::size_t b = 0; b < count; ++b) {
      if (a == b) continue;
      P2pPair& pair = report.pairs[a][b];
      pair.access = enable(*devices[a], *devices[b]);
      int atomics = 0;
      const bool known =
          devices[a]->cuda().p2p_attribute(&atomics, kP2pAtomics, devices[a]->ordinal(),
                                           devices[b]->ordinal()) == 0;
      pair.atomics = known && atomics != 0;
      all &= pair.access;
    }
  }
  Measurement measurement(gpus, report.options);
  for (std::size_t a = 0; a < count; ++a) {
    for (std::size_t b = a + 1; b < count; ++b) {
      const auto done = measurement.pair(a, b, report.pairs[a][b], report.pairs[b][a]);
      if (!done) return tl::unexpected(done.error());
    }
  }
  if (count > 1) report.copy_all = GDRX_TRY(measurement.all(false));
  if (all) report.store_all = GDRX_TRY(measurement.all(true));
  return report;
}

}  // namespace gdrx::perf

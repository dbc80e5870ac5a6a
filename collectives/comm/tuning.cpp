// SPDX-License-Identifier: Apache-2.0
#include "collectives/comm/tuning.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace gdrx {
namespace {

// A kernel as tables have it.
struct Way {
  gpu::Kernel kernel;
  plan::Algorithm algorithm;
  std::string_view transport = tune::kGpu;
};
constexpr Way kWays[] = {{gpu::Kernel::one_shot, plan::Algorithm::one_shot},
                         {gpu::Kernel::two_shot, plan::Algorithm::two_shot},
                         {gpu::Kernel::ring, plan::Algorithm::ring},
                         {gpu::Kernel::tree, plan::Algorithm::tree},
                         {gpu::Kernel::direct, plan::Algorithm::two_shot, tune::kGpuRegistered}};

// What all ranks have; empty if they differ.
template <class Member>
std::string common(std::span<const Hello> ranks, Member member) {
  const bool same = std::all_of(ranks.begin(), ranks.end(), [&](const Hello& rank) {
    return rank.*member == ranks[0].*member;
  });
  return same ? ranks[0].*member : std::string();
}

// A GPU for each rank, all of its processors for one call.
bool fills_its_gpu(std::span<const Hello> ranks, const gpu::Host& host) {
  std::vector<gpu::Ticket> tickets;
  for (const Hello& rank : ranks) tickets.push_back(rank.gpu);
  const bool alone = std::all_of(tickets.begin(), tickets.end(), [&](const gpu::Ticket& ticket) {
    return std::count_if(tickets.begin(), tickets.end(), [&](const gpu::Ticket& other) {
             return other.device == ticket.device;
           }) == 1;
  });
  return alone && host.blocks == gpu::co_resident_blocks(tickets, std::numeric_limits<int>::max());
}

}  // namespace

Result<Tuning> Tuning::load(const std::string& file) {
  Tuning tuning;
  if (file.empty()) return tuning;
  tuning.file_ = file;
  auto loaded = tune::load(file);
  if (!loaded) {
    Error error = std::move(loaded).error();
    error.what = "GDRX_TUNE_FILE: " + error.what;
    return tl::unexpected(std::move(error));
  }
  tuning.loaded_ = *std::move(loaded);
  return tuning;
}

Tuning::Measured Tuning::host(std::span<const Hello> ranks, const Machine& machine,
                              const Log& log) const {
  const tune::Platform here{common(ranks, &Hello::cpu), machine.cpus, {}};
  const tune::Table* table = file_.empty() ? tune::known(here) : &loaded_.table;
  if (table == nullptr) return {};
  std::vector<tune::Curve> curves = tune::curves_at(*table, machine.ranks, machine.hosts);
  std::erase_if(curves, [](const tune::Curve& curve) { return tune::is_of_gpus(curve); });
  if (curves.empty()) {
    if (file_.empty()) return {};
    return {{},
            {},
            fmt::format(
                "{} has no times of host memory for {} ranks on {} host(s) (gdrx tune --ranks {})",
                file_, machine.ranks, machine.hosts, machine.ranks)};
  }
  if (table->platform.cpus != machine.cpus) {
    log.warn(
        "GDRX_TUNE_FILE={} was measured with {} CPUs a host, here are {}: not used for host memory",
        file_, table->platform.cpus, machine.cpus);
    return {};
  }
  return {std::move(curves),
          file_.empty() ? "a table that came with gdrx for " + here.cpu : "GDRX_TUNE_FILE=" + file_,
          {}};
}

std::string Tuning::gpu(std::span<const Hello> ranks, gpu::Host& host) const {
  const std::string name = common(ranks, &Hello::gpu_name);
  const tune::Table* table = file_.empty() ? tune::known({{}, 0, name}) : &loaded_.table;
  if (table == nullptr || name.empty() || table->platform.gpu != name) return {};
  if (!fills_its_gpu(ranks, host)) return {};
  const auto curves = tune::curves_at(*table, host.ranks, 1);
  for (const Way& way : kWays) {
    const auto points = tune::find(curves, way.transport, way.algorithm);
    host.measured[gpu::place_of(way.kernel)].assign(points.begin(), points.end());
  }
  return file_.empty() ? "a table that came with gdrx for " + name : "GDRX_TUNE_FILE=" + file_;
}

}  // namespace gdrx

// SPDX-License-Identifier: Apache-2.0
#include "collectives/comm/choose_fabric.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/printable.hpp"
#include "transport/fabric/split.hpp"
#include "transport/shm/fabric.hpp"
#include "transport/shm/probe.hpp"

namespace gdrx {
namespace {

bool wants_shm(const Config& config) {
  return config.transport == "shm" || (config.transport == "auto" && config.shared_memory);
}

// What a rank says of itself: where others find its probe, of nowhere if it has none, and its host.
Blob place_of(const std::string& host, const std::optional<shm::Probe>& probe) {
  Blob place = shm::Probe::words_of(probe);
  const auto name = std::as_bytes(std::span(host));
  place.insert(place.end(), name.begin(), name.end());
  return place;
}

bool same_host(const std::vector<Blob>& places) {
  const auto host = [](const Blob& place) { return std::span(place).subspan(shm::Probe::kWords); };
  return std::all_of(places.begin(), places.end(), [&](const Blob& place) {
    return std::ranges::equal(host(place), host(places.front()));
  });
}

// Why the ranks do not share memory, the same on every rank; empty: they do.
Result<std::string> try_memory(const std::vector<Blob>& places, ControlMesh& mesh,
                               Deadline deadline) {
  const auto words = [&](std::size_t rank) {
    return std::span(places[rank]).first(shm::Probe::kWords);
  };
  for (std::size_t rank = 0; rank < places.size(); ++rank) {
    if (shm::Probe::is_none(words(rank))) return fmt::format("rank {} shares none", rank);
  }
  const std::size_t next = (static_cast<std::size_t>(index(mesh.rank())) + 1) % places.size();
  std::string trouble;
  if (auto tried = shm::Probe::attempt(words(next)); !tried) {
    trouble = fmt::format("rank {} cannot map that of rank {}: {}", index(mesh.rank()), next,
                          describe(tried.error()));
  }
  for (const Blob& answer :
       GDRX_TRY(mesh.all_gather(std::as_bytes(std::span(trouble)), deadline))) {
    if (!answer.empty()) return printable(answer);
  }
  return std::string();
}

}  // namespace

// On one host memory that the ranks share; where there is another host to reach, UCX and TCP.
Result<Result<std::shared_ptr<Fabric>>> choose_fabric(const std::string& host, const Config& config,
                                                      ControlMesh& mesh, const Log& log,
                                                      Deadline deadline) {
  std::optional<shm::Probe> probe;
  if (wants_shm(config)) {
    if (auto made = shm::Probe::create()) {
      probe = std::move(*made);
    } else {
      log.warn("no shared memory: {}", describe(made.error()));
    }
  }
  const std::vector<Blob> places = GDRX_TRY(mesh.all_gather(place_of(host, probe), deadline));
  for (std::size_t rank = 0; rank < places.size(); ++rank) {
    if (places[rank].size() >= shm::Probe::kWords) continue;
    return fail(Errc::protocol, fmt::format("rank {} does not say where it is", rank));
  }
  const bool automatic = config.transport == "auto";
  const bool by_shm = config.transport == "shm";
  const bool one_host = same_host(places);
  if (automatic && !one_host) return open_split_fabric(host, config, log);
  if (by_shm && !one_host) {
    return Result<std::shared_ptr<Fabric>>(
        fail(Errc::unsupported,
             "GDRX_TRANSPORT=shm is for ranks of one host, and these are of several: use auto"));
  }
  const std::string trouble =
      one_host ? GDRX_TRY(try_memory(places, mesh, deadline)) : std::string();
  if (wants_shm(config) && trouble.empty()) {
    return Result<std::shared_ptr<Fabric>>(
        shm::make_fabric(static_cast<std::uint32_t>(mesh.size())));
  }
  if (by_shm) {
    return Result<std::shared_ptr<Fabric>>(
        fail(Errc::unsupported, "the ranks do not share memory: " + trouble));
  }
  if (wants_shm(config) && index(mesh.rank()) == 0) {
    log.warn("messages do not go through shared memory: {}", trouble);
  }
  return open_fabric(automatic ? "ucx" : config.transport, config, log);
}

}  // namespace gdrx

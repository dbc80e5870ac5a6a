// SPDX-License-Identifier: Apache-2.0
#include "collectives/comm/rail_share.hpp"

#include <fmt/format.h>

#include <utility>

#include "collectives/comm/hierarchical_direct.hpp"

namespace gdrx {
namespace {

// What a rank says: how its GPU's memory is reached and the key to it, or why it is not.
enum class Says : std::uint8_t { no, yes };

Result<std::unique_ptr<MemoryRegion>> register_area(const RailOffer& offer, Bytes bytes) {
  if (offer.device == nullptr) return fail(Errc::unsupported, "there is no fabric");
  if (offer.wanted == GpuDirect::staged) {
    return fail(Errc::unsupported, "GDRX_GPU_DIRECT is staged");
  }
  const std::span<std::byte> memory = GDRX_TRY(offer.path->rail_memory(bytes));
  auto region = GDRX_TRY(offer.device->register_memory(memory, MemoryKind::cuda));
  // A copy on the host is what the other way has, and better.
  if (region->path() == MemoryPath::staged) {
    return fail(Errc::unsupported, "the NICs cannot reach the GPU's memory");
  }
  return region;
}

Blob answer_of(const Result<std::unique_ptr<MemoryRegion>>& area) {
  Blob answer{static_cast<std::byte>(area ? Says::yes : Says::no)};
  const std::string why = area ? "" : describe(area.error());
  const Blob key = area ? (*area)->export_key() : Blob();
  const auto rest = area ? std::span<const std::byte>(key) : std::as_bytes(std::span(why));
  answer.insert(answer.end(), rest.begin(), rest.end());
  return answer;
}

bool says_yes(const Blob& answer) {
  return answer.size() > 1 && answer.front() == static_cast<std::byte>(Says::yes);
}

std::string reason(const Blob& answer) {
  if (answer.size() < 2) return "it did not say";
  return {reinterpret_cast<const char*>(answer.data()) + 1, answer.size() - 1};
}

}  // namespace

Result<std::unique_ptr<exec::Rail>> share_rails(const RailOffer& offer, const Hierarchy& hierarchy,
                                                Rank self, ControlMesh& mesh, const Log& log,
                                                Deadline deadline) {
  exec::Rail::Setup setup;
  setup.layout = kRailLayout;
  auto area = register_area(offer, setup.layout.bytes());
  const std::vector<Blob> answers = GDRX_TRY(mesh.all_gather(answer_of(area), deadline));
  for (std::size_t rank = 0; rank < answers.size(); ++rank) {
    if (says_yes(answers[rank])) continue;
    if (index(self) == 0) {
      log.info("no GPUDirect RDMA between hosts, pinned memory instead: rank {}: {}", rank,
               reason(answers[rank]));
    }
    return std::unique_ptr<exec::Rail>();
  }
  for (const Rank rank : hierarchy.rail) {
    const Blob& answer = answers[static_cast<std::size_t>(index(rank))];
    setup.keys.emplace_back(answer.begin() + 1, answer.end());
  }
  if (index(self) == 0) {
    log.info("GPUDirect RDMA between hosts ({})", to_string((*area)->path()));
  }
  setup.self = hierarchy.own_host;
  setup.ranks = hierarchy.rail;
  setup.area = std::move(*area);
  setup.device = offer.device;
  setup.adder = offer.adder;
  return std::make_unique<exec::Rail>(std::move(setup));
}

}  // namespace gdrx

// SPDX-License-Identifier: Apache-2.0
#include "collectives/comm/meeting.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <utility>

#include "collectives/comm/version_agreement.hpp"
#include "gdrx/gdrx.h"
#include "transport/bootstrap/host_id.hpp"
#include "transport/bootstrap/mesh_meeting.hpp"

namespace gdrx {
Result<Met> meet(Bootstrap& bootstrap, const Config& config, const Log& log,
                 const Introduce& introduce, Deadline deadline) {
  Secret secret = GDRX_TRY(Secret::load(config.secret_file));
  const ControlMesh::Options options{config.socket_ifname, config.heartbeat, host_id(config),
                                     std::move(secret),    config.silence,   config.port_range};
  MeshMeeting meeting = MeshMeeting::of(options, heritage_name(config), bootstrap.size());
  const Heritage likely = Heritage::of(meeting.likely_facts());
  const Blob hello = likely.memory ? GDRX_TRY(introduce(likely)) : Blob();
  const Blob offer = say_version(GDRX_VERSION, GDRX_TRY(meeting.offer(hello)));
  std::vector<Blob> offers;
  try {
    offers = GDRX_TRY(check_versions(bootstrap, offer, deadline));
  } catch (const std::bad_alloc&) {
    // That the others join a mesh in common is more likely than that they wait in another round.
    meeting.hang_up();
    bootstrap.end();
    throw;
  }
  const auto common = meeting.choose(offers);
  if (!common) return Met{GDRX_TRY(ControlMesh::create(bootstrap, options, log, deadline))};
  const Heritage heritage = Heritage::of(common->facts);
  if (heritage.memory) bootstrap.end();
  auto joined = GDRX_TRY(meeting.join(*common, offers, bootstrap.rank()));
  if (heritage.memory) return Met{std::move(joined.mesh), heritage, std::move(joined.more)};
  // Their hellos are more than a mesh keeps for a rank that has not joined.
  GDRX_TRY(bootstrap.all_gather({}, deadline));
  bootstrap.end();
  return Met{std::move(joined.mesh), heritage};
}

std::string heritage_name(const Config& config) {
  return fmt::format("{} {} {}", config.transport, config.shared_memory ? 1 : 0, config.cma);
}

Result<void> meet_at_the_end(ControlMesh& mesh, const Key& told, Deadline deadline) {
  const std::vector<Blob> said = GDRX_TRY(mesh.all_gather(told.bytes(), deadline));
  const bool alike = std::ranges::all_of(
      said, [&](const Blob& one) { return std::ranges::equal(one, told.bytes()); });
  if (alike) return {};
  // Who that is cannot be known: nobody is to look guilty, as who leaves without a word does.
  const Error lied{Errc::protocol,
                   "the ranks have not heard the same of each other: somebody has spoken for one "
                   "of them, or told different things to different ranks",
                   0};
  mesh.announce({lied.code, mesh.rank(), mesh.rank(), lied.what});
  return tl::unexpected(lied);
}

}  // namespace gdrx

// SPDX-License-Identifier: Apache-2.0
#include "collectives/comm/meeting.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "collectives/comm/version.hpp"
#include "gdrx/gdrx.h"
#include "transport/bootstrap/host_id.hpp"
#include "transport/bootstrap/mesh_meeting.hpp"

namespace gdrx {

Result<Met> meet(Bootstrap& bootstrap, const Config& config, const Log& log,
                 const Introduce& introduce, Deadline deadline) {
  const ControlMesh::Options options{
      config.socket_ifname, config.heartbeat,
      host_id(config),      GDRX_TRY(Secret::load(config.secret_file)),
      config.silence,       config.port_range};
  MeshMeeting meeting = MeshMeeting::of(options, heritage_name(config));
  const Heritage likely = Heritage::of(meeting.likely_facts());
  const Blob hello = likely.memory ? GDRX_TRY(introduce(likely)) : Blob();
  const Blob offer = GDRX_TRY(meeting.offer(hello));
  const auto offers = GDRX_TRY(check_versions(bootstrap, GDRX_VERSION, offer, deadline));
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
  for (std::size_t rank = 0; rank < said.size(); ++rank) {
    if (std::ranges::equal(said[rank], told.bytes())) continue;
    return fail(Errc::protocol, fmt::format("rank {} has heard other things of the ranks than rank "
                                            "{}: somebody has spoken for one of them",
                                            rank, index(mesh.rank())));
  }
  return {};
}

}  // namespace gdrx

// SPDX-License-Identifier: Apache-2.0
// Where the threads of a communicator run.
#pragma once

#include "collectives/comm/settings.hpp"
#include "collectives/gpu/path.hpp"
#include "gdrx/transport.hpp"
#include "transport/bootstrap/control_mesh.hpp"

namespace gdrx {

/// Of the mesh's thread, which drives calls that nobody waits for and the network's part of GPU
/// calls: near the NICs first, whose doorbells it writes, then near the GPU. Either may be null.
void place_progress(ControlMesh& mesh, const Device* device, const gpu::Path* gpu,
                    const Settings& settings);

}  // namespace gdrx

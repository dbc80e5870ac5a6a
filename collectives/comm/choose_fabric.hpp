// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "gdrx/transport.hpp"
#include "transport/bootstrap/control_mesh.hpp"

namespace gdrx {

/// Opens the fabric of the configuration; by `auto` the one that suits where the ranks are, of
/// which every rank asks the others. The inner error: that fabric cannot be opened here.
Result<Result<std::shared_ptr<Fabric>>> choose_fabric(const std::string& host, const Config& config,
                                                      ControlMesh& mesh, const Log& log,
                                                      Deadline deadline);

}  // namespace gdrx

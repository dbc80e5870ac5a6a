// SPDX-License-Identifier: Apache-2.0
// One process's part of a matrix, over any table of verbs and on any interface.
#pragma once

#include "tools/perf/control_channel.hpp"
#include "tools/perf/matrix.hpp"

namespace gdrx::perf {

struct MatrixSide {
  std::shared_ptr<const verbs::VerbsTable> table;  // nothing: `problem` says why
  std::size_t rank = 0;
  std::string host;
  SocketAddress at;  // where others reach it
  PortRange ports = {};
  Secret secret = {};  // none: made by rank 0 and handed on by the exchange
  std::string problem = {};
};

Result<MatrixReport> measure_matrix(MatrixSide side, const Gather& gather,
                                    const MatrixOptions& options);

}  // namespace gdrx::perf

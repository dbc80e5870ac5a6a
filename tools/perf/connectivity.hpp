// SPDX-License-Identifier: Apache-2.0
// Which NIC of a host reaches which NIC of the others: a write over a queue pair of each pair.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gdrx/result.hpp"

namespace gdrx::verbs {
struct VerbsTable;
}

namespace gdrx::perf {

/// Every process's text at every process, by rank. Called by all of them equally often.
using Exchange = std::function<Result<std::vector<std::string>>(const std::string& mine)>;

struct Reached {
  std::size_t from_rank = 0;
  std::string from;  // "mlx5_0 port 1"
  std::size_t to_rank = 0;
  std::string to;
  std::string problem;  // empty: reached
};

/// One process a host; each gets the answers of all. Ports that are down are left out. With so many
/// hosts that a NIC would need more than 1024 queue pairs, only ports of the same place on each
/// host are tried. Errors: the exchange failed, or somebody sent something that is not of this.
Result<std::vector<Reached>> reach(const std::shared_ptr<const verbs::VerbsTable>& table,
                                   std::size_t rank, const Exchange& exchange);
/// Over this host's libibverbs; without it this host's ports are none.
Result<std::vector<Reached>> reach_here(std::size_t rank, const Exchange& exchange);

}  // namespace gdrx::perf

// SPDX-License-Identifier: Apache-2.0
// What a rank says of itself before there is a communicator, and what it makes to offer it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "collectives/comm/hello.hpp"
#include "gdrx/config.hpp"
#include "gdrx/log.hpp"
#include "transport/memory/process_memory.hpp"
#include "transport/shm/common.hpp"

namespace gdrx {

struct Offered {
  std::size_t memory = 0;     // bytes that all are to share; 0: none of this rank
  bool needs_memory = false;  // there is no other way
  bool process = false;       // others may write into this one
};
struct Introduction {
  Hello hello;  // but for its GPU and its fabric
  std::shared_ptr<shm::Segment> memory;
  WriteGate gate;
};
/// An error only where memory is needed and there is none.
Result<Introduction> introduce(const Config& config, const std::string& host_id,
                               std::uint64_t tuning, const Offered& offered, const Log& log);

}  // namespace gdrx

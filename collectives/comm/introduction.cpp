// SPDX-License-Identifier: Apache-2.0
#include "collectives/comm/introduction.hpp"

#include <unistd.h>

#include "collectives/tune/tune_table.hpp"
#include "gdrx/gdrx.h"
#include "transport/bootstrap/host_id.hpp"

namespace gdrx {
namespace {

Result<void> offer_memory(Introduction& own, const Offered& offered, const Log& log) {
  auto segment = shm::Segment::create(offered.memory);
  if (segment) {
    own.hello.memory = (*segment)->ticket();
    own.memory = *std::move(segment);
    return {};
  }
  if (offered.needs_memory) return tl::unexpected(segment.error());
  log.warn("no shared-memory arena: {}", describe(segment.error()));
  return {};
}

void offer_process(Introduction& own, const Log& log) {
  auto process = own_process();
  auto gate = WriteGate::create();
  if (process && gate) {
    own.hello.process = *process;
    own.gate = std::move(*gate);
  } else {
    log.info("no other process writes this one: {}",
             describe(process ? gate.error() : process.error()));
  }
}

}  // namespace

Result<Introduction> introduce(const Config& config, const std::string& host_id,
                               std::uint64_t tuning, const Offered& offered, const Log& log) {
  Introduction own;
  own.hello.version = GDRX_VERSION;
  own.hello.pid = getpid();
  own.hello.host_id = host_id;
  own.hello.host_name = host_name();
  own.hello.settings = settings_of(config, tuning);
  own.hello.cpu = tune::cpu_model();
  own.hello.cpus = usable_cpus();
  if (offered.memory > 0) GDRX_TRY(offer_memory(own, offered, log));
  if (offered.process) offer_process(own, log);
  return own;
}

}  // namespace gdrx

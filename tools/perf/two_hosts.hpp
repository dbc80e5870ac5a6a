// SPDX-License-Identifier: Apache-2.0
// A measurement between two hosts: both open a port, tell each other what they opened, and go
// through the sizes in step. The one that connected leads: it says what is measured.
#pragma once

#include "tools/perf/control_channel.hpp"
#include "tools/perf/nic_perf.hpp"

namespace gdrx::perf {

/// Errors: as measure_nic(), of either side.
Result<NicPerfReport> lead(const Channel& channel,
                           const std::shared_ptr<const verbs::VerbsTable>& table,
                           const NicPerfOptions& options);
/// What the one who connected wants. Errors: it is none of us, or says nothing for 10 s.
Result<NicPerfOptions> greet(const Channel& channel, const NicPerfOptions& own);
/// `judge` may be empty.
Result<NicPerfReport> follow(const Channel& channel,
                             const std::shared_ptr<const verbs::VerbsTable>& table,
                             const NicPerfOptions& plan, const Judge& judge);

}  // namespace gdrx::perf

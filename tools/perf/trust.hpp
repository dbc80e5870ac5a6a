// SPDX-License-Identifier: Apache-2.0
// Two that share a secret know each other before either says, or does, anything else.
#pragma once

#include "tools/perf/channel.hpp"
#include "transport/bootstrap/secret.hpp"

namespace gdrx::perf {

/// Each asks with a number of its own and answers the other's: what is overheard opens nothing, and
/// what one side says is no answer of the other. Without a secret on both sides it only finds that
/// out. Errors: a side without a secret, or with another one, in words for its own host.
Result<void> trust(const Channel& channel, const Secret& secret, bool leads, Deadline deadline);

}  // namespace gdrx::perf

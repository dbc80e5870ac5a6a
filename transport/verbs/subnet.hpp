// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <infiniband/verbs.h>

namespace gdrx::verbs {

/// How many of its leading bits name the subnet of an Ethernet port's GID, by the addresses of this
/// host's interfaces. 0: it is of none, is link-local (which every link has), or has no neighbours.
int subnet_bits_of(const ibv_gid& gid);

}  // namespace gdrx::verbs

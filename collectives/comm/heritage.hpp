// SPDX-License-Identifier: Apache-2.0
// What a communicator that is split from another takes over instead of trying it again. The same on
// all of its ranks.
#pragma once

namespace gdrx {

struct Heritage {
  bool memory = false;     // its ranks share memory: messages and the arena are there
  bool processes = false;  // and write each other's
};

}  // namespace gdrx

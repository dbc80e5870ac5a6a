// SPDX-License-Identifier: Apache-2.0
// Which of the kernel's errors about a connection pass, and what to say of those that do not.
#pragma once

#include "gdrx/result.hpp"

namespace gdrx {

/// Whether connecting may work soon although it has just failed with this errno.
bool connect_may_pass(int error) noexcept;
/// Whether accept4() failed for the connection that it took off the queue, so that the next one may
/// well be good: accept(2), "Error handling".
bool accept_next(int error) noexcept;
/// Nobody acknowledges any more, as against a connection that ends.
bool is_silence(int error) noexcept;
/// Names what ran out where no descriptor could be had.
tl::unexpected<Error> no_descriptor(const char* what, int error);

}  // namespace gdrx

// SPDX-License-Identifier: Apache-2.0
// Which of UCX's transports may be opened.
#pragma once

#include <string>
#include <string_view>

#include "gdrx/result.hpp"

namespace gdrx::ucx {

/// UCX's TCP writes to the address that a packet names: whoever reaches its port writes this
/// process's memory. So it is left out of `tls`, as UCX_TLS has it. Errc::unsupported: nothing else
/// is in it.
Result<std::string> without_tcp(std::string_view tls);
bool names_tcp(std::string_view tls);

}  // namespace gdrx::ucx

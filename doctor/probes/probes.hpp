// SPDX-License-Identifier: Apache-2.0
// What is asked of libraries that may be missing. Each has its stable C ABI written down.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "gdrx/doctor.hpp"

namespace gdrx::doctor {

Result<CudaFacts> probe_cuda();
Result<NvmlFacts> probe_nvml();
Result<VerbsFacts> probe_verbs();

/// By netlink; needs no rights. The error's native code is EOPNOTSUPP where the driver has no DCB.
Result<Dcb> probe_dcb(const std::string& interface);
/// Of the kernel's answer. Errors: it is an error, or no answer to this question.
Result<Dcb> parse_dcb(std::span<const std::byte> answer);

}  // namespace gdrx::doctor

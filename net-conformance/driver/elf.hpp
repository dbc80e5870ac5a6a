// SPDX-License-Identifier: Apache-2.0
// What a loaded library needs and exports.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "gdrx/result.hpp"

namespace gdrx::conformance {

struct ElfFacts {
  std::vector<std::string> needed;    // libraries
  std::vector<std::string> exported;  // names of defined global, weak and unique symbols
  std::size_t foreign = 0;            // of them not beginning with nccl
};

/// `library`: of dlopen.
Result<ElfFacts> read_elf(void* library);

}  // namespace gdrx::conformance

// SPDX-License-Identifier: Apache-2.0
#include "net-conformance/suite/rule.hpp"

#include <vector>

namespace gdrx::conformance {

std::vector<Rule> all_rules() {
  std::vector<Rule> all;
  for (const auto part : {load_rules(), device_rules(), connect_rules(), life_rules(),
                          transfer_rules(), memory_rules(), request_rules(), group_rules(),
                          flush_rules(), close_rules(), process_rules(), thread_rules()}) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

}  // namespace gdrx::conformance

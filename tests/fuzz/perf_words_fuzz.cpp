// SPDX-License-Identifier: Apache-2.0
// libFuzzer: what another host says to gdrx perf. A plan that is taken is one that gdrx perf itself
// could have been told, and what is taken comes back in the same words.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "tools/perf/protocol.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gdrx::perf;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto plan = read_plan(text, {});
  if (plan) {
    const auto again = read_plan(plan_words(*plan), {});
    if (!again || plan_words(*again) != plan_words(*plan)) std::abort();
    for (const std::size_t bytes : plan->sizes) {
      if (bytes == 0 || bytes > std::size_t{1} << 30) std::abort();
    }
  }
  const auto far = read_far(text, 1);
  if (far) {
    const auto again = read_far(far_words(*far), 1);
    if (!again || far_words(*again) != far_words(*far)) std::abort();
  }
  const auto row = read_row(text);
  if (row && !read_row(row_words(*row))) std::abort();
  return 0;
}

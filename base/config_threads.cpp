// SPDX-License-Identifier: Apache-2.0
#include "config_threads.hpp"

#include "base/cpu_list.hpp"

namespace gdrx {
namespace {

Result<void> parse_threads(Config& config, std::string_view text) {
  if (text != "auto" && text != "off" && !is_cpu_list(text)) {
    return fail(Errc::invalid_argument,
                "auto, off or a list of CPUs such as 2,4-7 is expected, each below 65536");
  }
  config.thread_cpus = std::string(text);
  return {};
}

}  // namespace

Variable threads_variable() {
  return {"GDRX_THREAD_CPUS", "",
          "CPUs of gdrx's own threads: auto: of those of the thread that makes a communicator "
          "the ones near the RDMA NIC and the GPU, off: all of them, or a list such as 2,4-7",
          parse_threads, [](const Config& c) { return c.thread_cpus; }};
}

}  // namespace gdrx

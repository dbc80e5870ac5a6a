// SPDX-License-Identifier: Apache-2.0
// Why a call of GPU memory goes through host memory.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace gdrx {

enum class WhyStaged : std::uint8_t {
  no_gpu,
  between_hosts,
  no_kernel,
  no_arithmetic,
  algorithm,
  host_buffer,
  no_stream,
};

/// `no_gpu`: why the communicator uses none.
constexpr std::string_view text_of(WhyStaged why, const std::string& no_gpu) noexcept {
  switch (why) {
    case WhyStaged::no_gpu:
      return no_gpu;
    case WhyStaged::between_hosts:
      return "between hosts only allReduce runs on GPUs";
    case WhyStaged::no_kernel:
      return "no kernel does this collective";
    case WhyStaged::no_arithmetic:
      return "no kernel has its type and operator";
    case WhyStaged::algorithm:
      return "no kernel has the algorithm that was asked for";
    case WhyStaged::host_buffer:
      return "one of its buffers is host memory";
    case WhyStaged::no_stream:
      return "it has no stream, or goes to its own rank outside of a group that receives it";
  }
  return "";
}

}  // namespace gdrx

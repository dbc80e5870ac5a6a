// SPDX-License-Identifier: Apache-2.0
// Which measured times a communicator chooses by. Every rank has to find the same: what they do not
// have in common is not used.
#pragma once

#include <span>
#include <string>

#include "collectives/comm/hello.hpp"
#include "collectives/comm/tuner.hpp"
#include "collectives/gpu/choose.hpp"
#include "collectives/tune/tune_table.hpp"
#include "gdrx/log.hpp"

namespace gdrx {

class Tuning {
 public:
  /// Of GDRX_TUNE_FILE; empty: tables that came with gdrx. One line says what is wrong with a file.
  static Result<Tuning> load(const std::string& file);

  /// Of the file's text, 0 without one: ranks compare it.
  std::uint64_t fingerprint() const noexcept { return loaded_.fingerprint; }

  struct Measured {
    std::vector<tune::Curve> curves;  // empty: the model decides
    std::string by;                   // where they are from
    std::string none;                 // why a file that was given has none
  };
  /// Of host memory, for the machine as far as it is described.
  Measured host(std::span<const Hello> ranks, const Machine& machine, const Log& log) const;
  /// Puts the GPU kernels' times into `host`, and says where they are from. None if ranks share a
  /// GPU, or may not fill it: nobody measured that.
  std::string gpu(std::span<const Hello> ranks, gpu::Host& host) const;

 private:
  std::string file_;
  tune::Loaded loaded_;
};

}  // namespace gdrx

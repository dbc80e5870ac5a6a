// SPDX-License-Identifier: Apache-2.0
// The collectives of a communicator, one behind another: their numbers, the signature of the one
// that runs, and how far the arena has come. By who drives.
#pragma once

#include <cstdint>

#include "collectives/exec/call_signature.hpp"

namespace gdrx {

class Sequence {
 public:
  /// Of the running one, or the last.
  const exec::CallSignature& signature() const noexcept { return signature_; }
  /// So many numbers were given.
  std::uint64_t calls() const noexcept { return calls_; }
  /// Of the arena.
  std::uint64_t stage() const noexcept { return stage_; }

  /// The next begins, whose number `signature` gets. `numbers`: it has more of them.
  const exec::CallSignature& begin(const exec::CallSignature& signature,
                                   std::uint64_t numbers = 1) noexcept {
    signature_ = signature;
    signature_.sequence = calls_;
    calls_ += numbers;
    return signature_;
  }
  /// One that no peer hears of.
  void skip() noexcept { ++calls_; }
  /// The running one has come to another of its numbers.
  const exec::CallSignature& come_to(std::uint64_t number) noexcept {
    signature_.sequence = number;
    return signature_;
  }
  void end_stage(std::uint64_t stage) noexcept { stage_ = stage; }

 private:
  std::uint64_t calls_ = 0;
  std::uint64_t stage_ = 0;
  exec::CallSignature signature_;
};

}  // namespace gdrx

// SPDX-License-Identifier: Apache-2.0
// A rank's buffers, of the host or of a GPU.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "gdrx/gdrx.h"
#include "tests/swarm/world.hpp"

namespace gdrx::swarm {

inline constexpr std::size_t kMostFloats = 4 * 70000;

class Buffers {
 public:
  explicit Buffers(int rank);
  ~Buffers();
  Buffers(const Buffers&) = delete;
  Buffers& operator=(const Buffers&) = delete;

  void enter() const;  // on the thread of the rank
  void* in() const;
  void* out() const;
  gdrxStream_t stream() const;
  template <class Value>
  void fill_in(const Value& value, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) host_in_[i] = value(i);
    upload(count);
  }
  void clear_out(std::size_t count);
  /// Waits for the stream; false: what was put into it has failed.
  bool finish(gdrxComm_t comm);
  bool equal(std::size_t count);  // out to expected

  std::vector<float> expected = std::vector<float>(kMostFloats);

 private:
  struct Gpu;
  void upload(std::size_t count);
  std::vector<float> host_in_ = std::vector<float>(kMostFloats);
  std::vector<float> host_out_ = std::vector<float>(kMostFloats);
  std::unique_ptr<Gpu> gpu_;
};

}  // namespace gdrx::swarm

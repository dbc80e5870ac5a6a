// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "tests/swarm/memory.hpp"

namespace gdrx::swarm {

struct Buffers::Gpu {};

Buffers::Buffers(int) {}
Buffers::~Buffers() = default;
void Buffers::enter() const {}
void* Buffers::in() const { return const_cast<float*>(host_in_.data()); }
void* Buffers::out() const { return const_cast<float*>(host_out_.data()); }
gdrxStream_t Buffers::stream() const { return nullptr; }
void Buffers::upload(std::size_t) {}
void Buffers::clear_out(std::size_t count) { std::fill_n(host_out_.begin(), count, -1.0F); }
bool Buffers::finish(gdrxComm_t) { return true; }
bool Buffers::equal(std::size_t count) {
  return std::equal(expected.begin(), expected.begin() + static_cast<std::ptrdiff_t>(count),
                    host_out_.begin());
}

}  // namespace gdrx::swarm

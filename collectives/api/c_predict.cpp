// SPDX-License-Identifier: Apache-2.0
// What a group is predicted to take.
#include <algorithm>
#include <utility>
#include <vector>

#include "collectives/api/c_pending.hpp"
#include "gdrx/traits.hpp"

namespace gdrx::c_api {
namespace {

/// The messages of one communicator.
struct Messages {
  gdrxComm* comm = nullptr;
  BothWays bytes;
};

BothWays& ways_of(std::vector<Messages>& all, gdrxComm* comm) {
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const Messages& one) { return one.comm == comm; });
  if (found != all.end()) return found->bytes;
  return all.emplace_back(Messages{comm, {}}).bytes;
}

// What goes to the rank itself is copied beside the rest.
void add(const Call& call, gdrxComm* comm, std::vector<Messages>& all) {
  if (call.root == comm->impl->rank()) return;
  BothWays& bytes = ways_of(all, comm);
  (call.sends ? bytes.out : bytes.in) += call.count * size_of(call.type);
  if (comm->impl->route_of(call) == Route::gpu_kernel) bytes.gpu = true;
}

}  // namespace

double predicted_us(const std::vector<Pending>& calls) {
  double us = 0;
  std::vector<Messages> messages;
  for (const Pending& entry : calls) {
    if (entry.call.collective == Collective::send_recv) {
      add(entry.call, entry.comm, messages);
    } else {
      us += entry.comm->impl->predicted_us(entry.call);
    }
  }
  for (const Messages& one : messages) us += one.comm->impl->predicted_us(one.bytes);
  return us;
}

}  // namespace gdrx::c_api

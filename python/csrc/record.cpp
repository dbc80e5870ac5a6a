// SPDX-License-Identifier: Apache-2.0
#include "record.hpp"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <utility>

namespace gdrx_torch {
namespace {

constexpr std::size_t kCalls = 2000, kMostCalls = 1'000'000;

// As many as PyTorch's own recorder is told to keep, by the same names.
std::size_t calls_to_keep() {
  for (const char* const name : {"TORCH_FR_BUFFER_SIZE", "TORCH_NCCL_TRACE_BUFFER_SIZE"}) {
    const char* const value = std::getenv(name);
    if (value == nullptr || *value == '\0') continue;
    return std::min<std::size_t>(std::strtoull(value, nullptr, 10), kMostCalls);
  }
  return kCalls;
}

std::int64_t now() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(since).count();
}

void keep(Recorded& entry, const std::vector<at::Tensor>& tensors) {
  for (const at::Tensor& tensor : tensors) {
    const at::IntArrayRef sizes = tensor.sizes();
    entry.sizes.insert(entry.sizes.end(), sizes.begin(), sizes.end());
    entry.dims.push_back(static_cast<std::uint8_t>(sizes.size()));
    entry.types.push_back(tensor.scalar_type());
  }
}

}  // namespace

// Never destroyed: a thread may outlive the end of main.
Record& Record::of_process() {
  static auto* const record = new Record;
  return *record;
}

Record::Record() : ring_(calls_to_keep()) {}

int Record::add_group(int rank, int size) {
  const std::lock_guard lock(lock_);
  const std::uint64_t oldest = made_ - std::min<std::uint64_t>(made_, ring_.size());
  std::erase_if(groups_, [&](const auto& known) {
    return known.second.ended && known.second.last <= oldest;
  });
  const int group = next_group_++;
  RecordedGroup made{.rank = rank, .name = "gdrx " + std::to_string(group)};
  made.ranks.resize(static_cast<std::size_t>(size));
  std::iota(made.ranks.begin(), made.ranks.end(), 0);
  groups_.emplace(group, std::move(made));
  return group;
}

void Record::name_group(int group, std::string name, std::vector<std::uint64_t> ranks) {
  const std::lock_guard lock(lock_);
  RecordedGroup& known = groups_[group];
  known.name = std::move(name);
  if (!ranks.empty()) known.ranks = std::move(ranks);  // none: all of the job
}

std::uint64_t Record::begin(int group, const Call& call, std::uint64_t sequence, Peer peer,
                            bool on_gpu) {
  if (ring_.empty()) return 0;
  const std::lock_guard lock(lock_);
  RecordedGroup& known = groups_[group];
  Recorded& entry = ring_[made_ % ring_.size()];
  entry.number = known.last = ++made_;
  entry.group = group;
  entry.sequence = peer.rank == Peer::kNone ? sequence : ++known.messages;
  entry.title = call.title;
  entry.peer = peer;
  entry.on_gpu = on_gpu;
  entry.sizes.clear();
  entry.dims.clear();
  entry.types.clear();
  keep(entry, call.shown.empty() ? call.inputs : call.shown);
  entry.inputs = entry.dims.size();
  keep(entry, call.outputs);
  entry.created = now();
  entry.ended = 0;
  entry.timeout = call.timeout.count();
  entry.failed = false;
  return made_;
}

void Record::end(std::uint64_t number, int source, bool failed) {
  if (number == 0) return;
  const std::lock_guard lock(lock_);
  Recorded& entry = ring_[(number - 1) % ring_.size()];
  if (entry.number != number) return;  // a later call has its place
  entry.ended = now();
  entry.failed = failed;
  if (entry.peer.rank == Peer::kAny && source >= 0) entry.peer.rank = source;
}

void Record::end_group(int group) {
  const std::lock_guard lock(lock_);
  groups_[group].ended = true;
}

std::string Record::name_of(int group) {
  const std::lock_guard lock(lock_);
  return groups_[group].name;
}

std::vector<Recorded> Record::calls() {
  const std::lock_guard lock(lock_);
  const std::uint64_t kept = std::min<std::uint64_t>(made_, ring_.size());
  std::vector<Recorded> calls;
  for (std::uint64_t number = made_ - kept; number < made_; ++number) {
    calls.push_back(ring_[number % ring_.size()]);
  }
  return calls;
}

std::map<int, RecordedGroup> Record::groups() {
  const std::lock_guard lock(lock_);
  return groups_;
}

}  // namespace gdrx_torch

// SPDX-License-Identifier: Apache-2.0
// A group whose members change: PyTorch's reconfigure, from 2.14 on.
//
// A rank's handle has a unique id, by which the ranks meet if that rank becomes rank 0. So nobody
// needs the store for it, whose host may be among the dead.
#include <algorithm>
#include <array>
#include <cstring>
#include <set>
#include <thread>
#include <utility>

#include "backend.hpp"

namespace gdrx_torch {

std::shared_ptr<Engine> Engine::unmade(const Meeting& meeting, Milliseconds timeout) {
  std::shared_ptr<Engine> engine(new Engine(nullptr, meeting, timeout));
  engine->failure_ = "the group has no members yet, or no longer: call reconfigure";
  engine->gpu_->shutdown(Milliseconds(0));
  return engine;
}

std::shared_ptr<Engine> Engine::of(gdrxComm_t comm, const Meeting& meeting, Milliseconds timeout) {
  return enlist(std::shared_ptr<Engine>(new Engine(comm, meeting, timeout)));
}

void Engine::retire(const std::string& why) {
  {
    const std::lock_guard lock(mutex_);
    account_.close();
  }
  abort(why);
  shutdown(Milliseconds(0));
}

#ifdef C10D_BACKEND_HAS_RECONFIGURE

namespace {

constexpr std::chrono::milliseconds kBetweenAsks{1};
constexpr const char* kBegins = "gdrx:1:";
constexpr std::size_t kDigits =
    8;  // of a rank, so that handles sort as their ranks do, and of a number
constexpr std::size_t kIdDigits = 2 * sizeof(gdrxUniqueId{}.bytes);

class Reconfigured : public c10d::Work {
 public:
  explicit Reconfigured(int rank) : Work(rank, c10d::OpType::UNKNOWN, "gdrx:reconfigure") {
    finish();
  }
};

[[noreturn]] void refuse(const std::string& why) {
  C10_THROW_ERROR(DistBackendError, "gdrx: reconfigure: " + why);
}

std::string digits_of(const gdrxUniqueId& id) {
  std::string text;
  for (const char byte : id.bytes) {
    constexpr const char* kHex = "0123456789abcdef";
    const auto value = static_cast<unsigned char>(byte);
    text += {kHex[value >> 4], kHex[value & 15]};
  }
  return text;
}

std::string padded(std::string number) {
  return number.insert(0, kDigits - std::min(kDigits, number.size()), '0') + ":";
}

/// Of a handle that a user brought from somewhere.
gdrxUniqueId id_of(const std::string& handle) {
  const std::size_t at = std::strlen(kBegins) + 2 * (kDigits + 1);
  gdrxUniqueId id{};
  const std::string digits = handle.substr(std::min(at, handle.size()));
  if (!handle.starts_with(kBegins) || digits.size() != kIdDigits ||
      digits.find_first_not_of("0123456789abcdef") != std::string::npos) {
    refuse("what is no handle of a gdrx group of this version is among the handles");
  }
  for (std::size_t i = 0; i < sizeof id.bytes; ++i) {
    id.bytes[i] = static_cast<char>(std::stoi(digits.substr(2 * i, 2), nullptr, 16));
  }
  return id;
}

std::uint64_t digest_of(const std::vector<std::string>& handles) {
  std::uint64_t digest = 0xcbf29ce484222325;  // FNV-1a
  for (const std::string& handle : handles) {
    for (const char byte : handle) {
      digest = (digest ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
    }
  }
  return digest;
}

std::vector<std::string> in_order(const c10d::ReconfigureOptions& options) {
  if (const auto* list = std::get_if<std::vector<std::string>>(&options.handles)) return *list;
  const auto& set = std::get<std::unordered_set<std::string>>(options.handles);
  std::vector<std::string> sorted(set.begin(), set.end());
  std::sort(sorted.begin(), sorted.end());
  return sorted;
}

/// Waits until it is made. It is destroyed if that fails.
gdrxComm_t communicator(const Meeting& meeting, const gdrxUniqueId& id, Milliseconds timeout) {
  gdrxConfig_t config = config_of(meeting.wishes);
  config.timeout_seconds = -1;  // each call has a deadline of its own here
  gdrxComm_t comm = nullptr;
  const auto limit = Clock::now() + timeout;
  gdrxResult_t result = gdrxCommInitRankAsync(&comm, meeting.size, id, meeting.rank, &config);
  while (result == gdrxSuccess) {
    gdrxResult_t state = gdrxSuccess;
    result = gdrxCommGetAsyncError(comm, &state);
    if (result == gdrxSuccess) result = state;
    if (result == gdrxSuccess) return comm;
    if (result != gdrxInProgress) break;
    result = gdrxSuccess;
    if (Clock::now() >= limit) {
      gdrxCommDestroy(comm);
      refuse("not all " + std::to_string(meeting.size) + " ranks came within " +
             std::to_string(timeout.count()) + " ms");
    }
    std::this_thread::sleep_for(kBetweenAsks);
  }
  const std::string why = gdrxGetLastError(comm);
  if (comm != nullptr) gdrxCommDestroy(comm);
  refuse(why);
}

/// All ranks mean the same group: a rank that is late by a group, or was told another one, would
/// join ranks that do not expect it.
void compare(gdrxComm_t comm, const Meeting& meeting, std::array<std::uint64_t, 2> mine,
             Milliseconds timeout) {
  std::vector<std::array<std::uint64_t, 2>> all(static_cast<std::size_t>(meeting.size));
  gdrxCommSetTimeout(comm, std::chrono::duration<double>(timeout).count());
  const gdrxResult_t result =
      gdrxAllGather(mine.data(), all.data(), sizeof mine, gdrxByte, comm, gdrxStreamNone, nullptr);
  std::string why;
  if (result != gdrxSuccess) why = gdrxGetLastError(comm);
  for (std::size_t rank = 0; rank < all.size() && why.empty(); ++rank) {
    if (all[rank] == mine) continue;
    why = "rank " + std::to_string(rank) +
          (all[rank][0] == mine[0] ? " has other handles" : " has another uuid");
  }
  if (why.empty()) {
    gdrxCommSetTimeout(comm, -1);
    return;
  }
  gdrxCommDestroy(comm);
  refuse(why);
}

}  // namespace

c10d::ReconfigureHandle Backend::get_reconfigure_handle() const {
  const std::lock_guard lock(handle_lock_);
  if (!handle_.empty()) return handle_;
  if (!id_) {
    gdrxUniqueId id{};
    if (gdrxGetUniqueId(&id) != gdrxSuccess) refuse(gdrxGetLastError(nullptr));
    id_ = id;
  }
  return handle_ = kBegins + padded(std::to_string(getRank())) +
                   padded(std::to_string(handles_++)) + digits_of(*id_);
}

c10dWork Backend::reconfigure(const c10d::ReconfigureOptions& opts) {
  const std::vector<std::string> handles = in_order(opts);
  for (const std::string& handle : handles) static_cast<void>(id_of(handle));
  const auto mine = std::find(handles.begin(), handles.end(), get_reconfigure_handle());
  if (mine == handles.end()) {
    refuse("this rank's handle is not among the handles: it is another one after each reconfigure");
  }
  if (std::set<std::string>(handles.begin(), handles.end()).size() < handles.size()) {
    refuse("a handle is given twice");
  }
  const Milliseconds timeout = opts.timeout.value_or(engine_->timeout());
  TORCH_CHECK(timeout.count() > 0, "gdrx: reconfigure: a timeout of ", timeout.count(), " ms");
  const auto limit = Clock::now() + timeout;
  if (!uuids_.insert(opts.uuid).second) {
    refuse("the uuid " + std::to_string(opts.uuid) + " was used before");
  }
  Meeting next = engine_->gpu().meeting();
  next.name = "gdrx/reconfigured/" + std::to_string(opts.uuid);
  next.rank = static_cast<int>(mine - handles.begin());
  next.size = static_cast<int>(handles.size());
  const gdrxUniqueId id = id_of(handles.front());
  const Milliseconds lasting = engine_->timeout();
  {
    const std::lock_guard lock(handle_lock_);
    handle_.clear();
    if (next.rank == 0) id_.reset();  // else nobody has met by it: the next handle has it, too
  }
  // Who still waits for one of the old members hears of it.
  has_members_ = false;
  const auto before = std::exchange(engine_, Engine::unmade(next, lasting));
  before->retire("the group is reconfigured");
  gdrxComm_t comm = communicator(next, id, timeout);
  const auto left = std::chrono::ceil<Milliseconds>(limit - Clock::now());
  compare(comm, next, {static_cast<std::uint64_t>(opts.uuid), digest_of(handles)},
          std::max(left, Milliseconds(1)));
  engine_ = Engine::of(comm, next, lasting);
  has_members_ = true;
  rank_ = next.rank;
  size_ = next.size;
  barriers_ = 0;  // as a newcomer's
  std::vector<std::uint64_t> ranks(handles.size());
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) ranks[rank] = rank;
  named(options_->group_name, ranks);
  return c10::make_intrusive<Reconfigured>(next.rank);
}

#endif

}  // namespace gdrx_torch

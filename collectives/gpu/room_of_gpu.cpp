// SPDX-License-Identifier: Apache-2.0
#include "collectives/gpu/room_of_gpu.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "collectives/gpu/share_page.hpp"
#include "gdrx/log.hpp"

namespace gdrx::gpu {
namespace {

/// By folder and GPU, as long as this process has a row there.
struct Pages {
  /// As it is now: not of the parent of fork(), nor one whose file is gone. Null: no memory.
  std::shared_ptr<SharePage> at(const SharePageName& name) {
    std::shared_ptr<SharePage> found = all[name].lock();
    if (!found || !found->is_here() || found->is_gone()) {
      found = SharePage::open(name.first, name.second);
      all[name] = found;
    }
    return found;
  }

  std::mutex mutex;
  std::map<SharePageName, std::weak_ptr<SharePage>> all;
};
// Never destroyed: CUDA may tell of a graph's end after main().
Pages& pages() {
  static Pages& instance = *new Pages;
  return instance;
}

constexpr int kMostPages = 16;
constexpr std::size_t kSideBySide = 2;  // communicators that never keep each other out

bool has_more_communicators(std::span<const ShareRow> rows, std::size_t than) noexcept {
  std::array<std::uint64_t, kSideBySide> seen{};
  std::size_t count = 0;
  for (const ShareRow& row : rows) {
    const auto end = seen.begin() + static_cast<std::ptrdiff_t>(count);
    if (std::find(seen.begin(), end, row.communicator) != end) continue;
    if (count == than) return true;
    seen[count++] = row.communicator;
  }
  return false;
}

void say_that_none_is_free() {
  static std::once_flag said;
  std::call_once(said, [] {
    Log().warn(
        "a rank finds no row on the page of its GPU, as {} have one, or a stopped process keeps "
        "the page: it has one block until it finds one",
        kShareRows);
  });
}

}  // namespace

std::uint32_t share_of(std::span<const ShareRow> rows, int processors) noexcept {
  if (!has_more_communicators(rows, kSideBySide)) return 0;
  auto seen = static_cast<std::uint32_t>(std::max(processors, 2));
  for (const ShareRow& row : rows) {
    if (row.processors != 0) seen = std::clamp(row.processors, 2U, seen);
  }
  const std::uint64_t room = seen - 1;
  for (std::uint64_t share = room; share > 1; --share) {
    std::uint64_t all = 0;
    for (const ShareRow& row : rows) {
      all += std::max(share, std::min<std::uint64_t>(row.kept, room));
    }
    if (all <= room) return static_cast<std::uint32_t>(share);
  }
  return 1;
}

std::shared_ptr<GpuShare> GpuShare::take(const std::array<std::uint8_t, 16>& device, int processors,
                                         std::uint64_t communicator, const std::string& folder) {
  const SharePageName name{folder, device};
  // Before the row, so that memory that runs out leaves none; outside of the lock, which its end
  // takes.
  const std::shared_ptr<GpuShare> share(new GpuShare(name, nullptr, communicator, processors));
  const std::lock_guard lock(pages().mutex);
  for (int i = 0; i < kMostPages; ++i) {
    const std::shared_ptr<SharePage> page = pages().at(name);
    if (!page) return nullptr;
    const auto row = page->add(communicator, processors);
    if (!row && page->is_gone()) continue;  // between its opening and the row
    if (!row) say_that_none_is_free();
    share->page_ = page;
    share->row_ = row;
    return share;
  }
  return nullptr;
}

GpuShare::~GpuShare() {
  if (!page_ || !page_->is_here()) return;  // of the parent of fork(), as the mutex may be
  const std::lock_guard lock(pages().mutex);
  if (row_) page_->remove(*row_, processors_);
}

int GpuShare::most() noexcept {
  const std::uint32_t share = page_->share();
  return __builtin_expect(share == 0 && row_, 1) ? 0 : bounded();
}

// Nobody counts it until then: one block is what each rank has room for.
bool GpuShare::find_row() noexcept {
  const auto now = std::chrono::steady_clock::now();
  if (now - looked_ < std::chrono::seconds(1)) return false;
  looked_ = now;
  const std::lock_guard lock(pages().mutex);
  if (auto page = pages().at(name_)) page_ = std::move(page);
  row_ = page_->add(communicator_, processors_, std::chrono::milliseconds(0));
  if (row_) say_kept();
  return row_.has_value();
}

// Of those that were killed nobody tells: where the GPU is crowded it is looked for now and then.
int GpuShare::bounded() noexcept {
  if (!row_ && !find_row()) return 1;
  page_->count_now_and_then(processors_);
  const std::uint32_t share = page_->share();
  if (share == 0) return 0;
  const auto room = static_cast<std::uint32_t>(std::max(processors_ - 1, 1));
  return std::max(kept_, static_cast<int>(std::clamp(share, std::uint32_t{1}, room)));
}

// Who came since the call asked has counted without it.
void GpuShare::keep(int blocks) noexcept {
  if (blocks <= kept_) return;
  const std::lock_guard lock(pages().mutex);
  kept_ = blocks;
  say_kept();
}

void GpuShare::say_kept() noexcept {
  if (!row_) return;
  const int by_graph = by_graph_.empty() ? 0 : *by_graph_.rbegin();
  page_->say_kept(*row_, static_cast<std::uint32_t>(std::max(kept_, by_graph)), processors_);
}

void GpuShare::change(int before, int after) {
  const std::lock_guard lock(pages().mutex);
  if (after > 0) by_graph_.insert(after);
  if (const auto found = by_graph_.find(before); found != by_graph_.end()) by_graph_.erase(found);
  say_kept();
}

GpuShare::Kept::Kept(const std::shared_ptr<GpuShare>& share, int blocks)
    : share_(share), blocks_(blocks) {
  share->change(0, blocks_);
}

GpuShare::Kept::~Kept() {
  if (const auto share = share_.lock()) share->change(blocks_, 0);
}

void GpuShare::Kept::raise(int blocks) {
  if (blocks <= blocks_) return;
  const int before = std::exchange(blocks_, blocks);
  if (const auto share = share_.lock()) share->change(before, blocks);
}

}  // namespace gdrx::gpu

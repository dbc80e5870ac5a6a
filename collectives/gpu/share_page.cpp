// SPDX-License-Identifier: Apache-2.0
#include "collectives/gpu/share_page.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <mutex>
#include <thread>

#include "gdrx/clock.hpp"
#include "gdrx/log.hpp"

namespace gdrx::gpu {
namespace {

constexpr std::uint32_t kDoor = kShareRows;  // the byte that who changes the page locks
constexpr std::chrono::microseconds kBetweenKnocks{50};
constexpr std::chrono::nanoseconds kBetweenCounts = std::chrono::seconds(1);
constexpr int kMostOpenings = 16;

std::int64_t nanoseconds_now() noexcept {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::nanoseconds(now).count();
}

template <class T>
T load(T& at) noexcept {
  return std::atomic_ref(at).load(std::memory_order_relaxed);
}
template <class T>
void store(T& at, T value) noexcept {
  std::atomic_ref(at).store(value, std::memory_order_relaxed);
}

}  // namespace

/// Who has it changes the page. A process that is stopped there keeps it: nobody waits for long.
class SharePage::Door {
 public:
  /// Where a file system has no such locks nobody ever opens it.
  explicit Door(const SharePage& page, std::chrono::milliseconds most = SharePage::kDoorTime)
      : page_(page) {
    const Deadline end = Deadline::after(steady_clock(), most);
    int error = 0;
    while ((error = page.lock(kDoor, F_WRLCK)) == EAGAIN || error == EACCES) {
      if (most.count() == 0 || end.passed(steady_clock().now())) break;
      std::this_thread::sleep_for(kBetweenKnocks);
    }
    open_ = error == 0;
  }
  ~Door() {
    if (open_) page_.lock(kDoor, F_UNLCK);
  }
  Door(const Door&) = delete;
  Door& operator=(const Door&) = delete;
  bool is_open() const noexcept { return open_; }

 private:
  const SharePage& page_;
  bool open_ = false;
};

// Of the open file, which a child of fork() has not (see Unforked), and not of the process: another
// copy of this library in it is somebody else. A page of this process alone needs none.
int SharePage::lock(std::uint32_t byte, short type) const noexcept {
  if (!is_shared()) return 0;
  struct flock what {};
  what.l_type = type;
  what.l_whence = SEEK_SET;
  what.l_start = byte;
  what.l_len = 1;
  return fcntl(fd_, F_OFD_SETLK, &what) == 0 ? 0 : errno;
}

bool SharePage::is_locked(std::uint32_t byte) const noexcept {
  if (!is_shared()) return false;
  struct flock what {};
  what.l_type = F_WRLCK;
  what.l_whence = SEEK_SET;
  what.l_start = byte;
  what.l_len = 1;
  return fcntl(fd_, F_OFD_GETLK, &what) != 0 || what.l_type != F_UNLCK;
}

std::unique_ptr<SharePage> SharePage::open(const std::string& folder,
                                           const std::array<std::uint8_t, 16>& device) {
  if (folder.empty()) return make_private();
  std::string path = fmt::format("{}/gdrx-gpu.{}.", folder, geteuid());
  for (const std::uint8_t byte : device) path += fmt::format("{:02x}", byte);
  if (auto page = find(path)) return page;
  // Ranks that count on unequal pages may keep each other out.
  static std::once_flag said;
  std::call_once(said, [&] {
    Log().warn(
        "{} is not a file of this user in which the processes of a host divide a GPU: this process "
        "divides its GPUs among its own communicators alone, which may hang beside others",
        path);
  });
  return make_private();
}

// Who opens what is made already needs no door: each row that is added is.
std::unique_ptr<SharePage> SharePage::find(const std::string& path) {
  for (int i = 0; i < kMostOpenings; ++i) {
    auto page = open_file(path);
    if (!page || page->is_made()) return page;
    const Door door(*page);
    if (!door.is_open()) return nullptr;
    if (!page->is_linked()) continue;  // its last user was about to remove it
    return page->is_page() ? std::move(page) : nullptr;
  }
  return nullptr;
}

std::unique_ptr<SharePage> SharePage::open_file(const std::string& path) {
  std::unique_ptr<SharePage> page(new SharePage);
  page->fd_ = Unforked::open([&] {
    return ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
  });
  page->path_ = path;
  struct stat found {};
  if (page->fd_ < 0 || fstat(page->fd_, &found) != 0) return nullptr;
  constexpr mode_t kOfOthers = S_IRWXG | S_IRWXO;
  const bool ours = S_ISREG(found.st_mode) && found.st_uid == geteuid();
  if (!ours || (found.st_mode & kOfOthers) != 0) return nullptr;
  return page;
}

std::unique_ptr<SharePage> SharePage::make_private() {
  std::unique_ptr<SharePage> page(new SharePage);
  page->fd_ = Unforked::open([] { return memfd_create("gdrx-gpu", MFD_CLOEXEC); });
  if (page->fd_ < 0 || !page->is_page()) return nullptr;
  return page;
}

bool SharePage::is_linked() const noexcept {
  struct stat found {};
  return fstat(fd_, &found) == 0 && found.st_nlink > 0;
}

bool SharePage::map() noexcept {
  if (page_ != nullptr) return true;
  void* const at =
      mmap(nullptr, sizeof(SharePageLayout), PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
  if (at == MAP_FAILED) return false;
  page_ = static_cast<SharePageLayout*>(at);
  return true;
}

bool SharePage::is_made() noexcept {
  struct stat found {};
  if (fstat(fd_, &found) != 0 || found.st_size != sizeof(SharePageLayout) || !map()) return false;
  return load(page_->magic) == kSharePageMagic && load(page_->bytes) == sizeof(SharePageLayout);
}

// Memory for all of it: else a file system that is full ends the process at its first touch.
bool SharePage::is_page() noexcept {
  struct stat found {};
  if (fstat(fd_, &found) != 0) return false;
  constexpr off_t kBytes = sizeof(SharePageLayout);
  if (found.st_size != 0 && found.st_size != kBytes) return false;
  if (posix_fallocate(fd_, 0, kBytes) != 0 || !map()) return false;
  if (load(page_->magic) == 0) {  // new, or its maker died
    store(page_->bytes, static_cast<std::uint32_t>(kBytes));
    store(page_->magic, kSharePageMagic);
  }
  return load(page_->magic) == kSharePageMagic && load(page_->bytes) == kBytes;
}

SharePage::~SharePage() {
  if (page_ != nullptr) munmap(page_, sizeof(SharePageLayout));
  if (fd_ >= 0 && born_.here()) Unforked::close(fd_);
}

std::uint32_t SharePage::share() const noexcept { return load(page_->share); }

std::optional<std::uint32_t> SharePage::add(std::uint64_t communicator, int processors,
                                            std::chrono::milliseconds most) noexcept {
  const std::lock_guard here(mutex_);
  const Door door(*this, most);
  if (!door.is_open() || is_gone()) return {};
  for (std::uint32_t row = 0; row < kShareRows; ++row) {
    if (own_[row] || lock(row, F_WRLCK) != 0) continue;  // of somebody who lives
    own_[row] = true;
    store(page_->rows[row].kept, std::uint32_t{0});
    store(page_->rows[row].processors, static_cast<std::uint32_t>(std::max(processors, 1)));
    store(page_->rows[row].communicator, communicator);
    store(page_->share, count_rows(processors));
    return row;
  }
  return {};
}

void SharePage::remove(std::uint32_t row, int processors) noexcept {
  if (!born_.here()) return;  // a child's copy: the row is its parent's
  const std::lock_guard here(mutex_);
  own_[row] = false;
  const Door door(*this);
  store(page_->rows[row].communicator, std::uint64_t{0});
  lock(row, F_UNLCK);
  if (!door.is_open()) return;
  store(page_->share, count_rows(processors));
  if (!is_shared() || own_.any()) return;
  for (ShareRow& left : page_->rows) {
    if (load(left.communicator) != 0) return;
  }
  // Who opens it meanwhile waits at the door, and then sees that it is no longer linked.
  if (is_linked()) unlink(path_.c_str());
}

void SharePage::say_kept(std::uint32_t row, std::uint32_t blocks, int processors) noexcept {
  if (!born_.here()) return;
  const std::lock_guard here(mutex_);
  const Door door(*this);
  store(page_->rows[row].kept, blocks);
  if (door.is_open() && share() != 0) store(page_->share, count_rows(processors));
}

// A thread of a call. Where another counts, or a stopped process keeps the door, it goes on.
void SharePage::count_now_and_then(int processors) noexcept {
  const std::int64_t now = nanoseconds_now();
  std::int64_t before = counted_.load(std::memory_order_relaxed);
  if (now - before < kBetweenCounts.count() || !born_.here()) return;
  if (!counted_.compare_exchange_strong(before, now, std::memory_order_relaxed)) return;
  const std::unique_lock here(mutex_, std::try_to_lock);
  if (!here.owns_lock()) return;
  const Door door(*this, std::chrono::milliseconds(0));
  if (door.is_open()) store(page_->share, count_rows(processors));
}

std::uint32_t SharePage::count_rows(int processors) noexcept {
  counted_.store(nanoseconds_now(), std::memory_order_relaxed);
  std::array<ShareRow, kShareRows> live;
  std::size_t count = 0;
  for (std::uint32_t row = 0; row < kShareRows; ++row) {
    const std::uint64_t communicator = load(page_->rows[row].communicator);
    if (communicator == 0) continue;
    if (!own_[row] && !is_locked(row)) {
      store(page_->rows[row].communicator, std::uint64_t{0});
      continue;
    }
    live[count++] = {communicator, load(page_->rows[row].kept), load(page_->rows[row].processors)};
  }
  return share_of(std::span(live).first(count), processors);
}

}  // namespace gdrx::gpu

// SPDX-License-Identifier: Apache-2.0
// A GPU's rows, in memory that the processes of this host share. Who lives is told by locks on
// bytes of the file, which go with their process: a row whose byte nobody has locked is free.
#pragma once

#include <array>
#include <atomic>
#include <bitset>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "collectives/gpu/room_of_gpu.hpp"
#include "transport/bootstrap/fork.hpp"

namespace gdrx::gpu {

/// As it lies there. Every process of this user may write to it: what is read is bounded.
struct SharePageLayout {
  std::uint64_t magic;
  std::uint32_t bytes;
  std::uint32_t share;  // share_of() the rows
  ShareRow rows[kShareRows];
};
inline constexpr std::uint64_t kSharePageMagic = 0x3167'7068'7264'6764;

/// Of one process and GPU. Any thread.
class SharePage {
 public:
  static constexpr std::chrono::milliseconds kDoorTime{200};

  /// "/dev/shm/gdrx-gpu.1000.<UUID>"; without a folder, or where it will not do, a page of this
  /// process alone, which is said once. Null: no memory at all.
  static std::unique_ptr<SharePage> open(const std::string& folder,
                                         const std::array<std::uint8_t, 16>& device);
  ~SharePage();
  SharePage(const SharePage&) = delete;
  SharePage& operator=(const SharePage&) = delete;

  std::uint32_t share() const noexcept;
  bool is_shared() const noexcept { return !path_.empty(); }

  /// A free row, said to be the communicator's. Empty: there is none, another process keeps the
  /// page's door shut for so long, or the file is gone.
  std::optional<std::uint32_t> add(std::uint64_t communicator, int processors,
                                   std::chrono::milliseconds most = kDoorTime) noexcept;
  /// Who comes finds another file: the last that left this one removed it, or somebody did.
  bool is_gone() const noexcept { return is_shared() && !is_linked(); }
  void remove(std::uint32_t row, int processors) noexcept;
  /// Not in a child of fork(), which has neither the file nor the rows.
  bool is_here() const noexcept { return born_.here(); }
  /// Who comes at the same time counts it, or is counted here.
  void say_kept(std::uint32_t row, std::uint32_t blocks, int processors) noexcept;
  /// Frees the rows of the dead and works out the share, if nobody has here for a second, and waits
  /// for nobody.
  void count_now_and_then(int processors) noexcept;

 private:
  class Door;
  SharePage() = default;
  static std::unique_ptr<SharePage> open_file(const std::string& path);
  static std::unique_ptr<SharePage> find(const std::string& path);
  static std::unique_ptr<SharePage> make_private();
  bool map() noexcept;
  bool is_linked() const noexcept;
  bool is_made() noexcept;
  bool is_page() noexcept;  // made one if it is new; behind the door
  int lock(std::uint32_t byte, short type) const noexcept;  // an errno
  bool is_locked(std::uint32_t byte) const noexcept;
  std::uint32_t count_rows(int processors) noexcept;

  std::string path_;  // empty: of this process alone
  int fd_ = -1;
  SharePageLayout* page_ = nullptr;
  std::mutex mutex_;  // of own_, and of who goes through the door here
  std::bitset<kShareRows> own_;
  std::atomic<std::int64_t> counted_{0};  // when, by the steady clock
  Birthplace born_;
};

}  // namespace gdrx::gpu

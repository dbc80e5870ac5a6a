// SPDX-License-Identifier: Apache-2.0
// One reliable QP to a peer: what is posted on it in which order, what the peer has room for, and
// how much came. Knows no messages; a "fragment" is a send or a write with immediate, which takes
// one receive of the peer's.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>

#include "transport/verbs/rail.hpp"

namespace gdrx::verbs {

inline constexpr std::uint32_t kSends = 128;       // work requests posted on a QP
inline constexpr std::uint32_t kReceives = 64;     // receives posted on a QP: the peer's credits
inline constexpr std::uint32_t kReceiveBatch = 8;  // receives posted together
static_assert(kReceives % kReceiveBatch == 0);     // so that all of them come back
inline constexpr std::uint32_t kReserved = 4;      // sends that only credits and flushes may take
inline constexpr std::uint32_t kLongestFragment = kSends - kReserved;  // work requests
inline constexpr std::uint32_t kInlineBytes = 128;
inline constexpr std::size_t kReceiveSlot = 1088;
static_assert(kReceiveSlot >= kSendBytes);
inline constexpr QpLimits kChannelLimits{kSends, kReceives, kInlineBytes};

/// A fragment of a message; what is posted that is none has kNoFragment.
inline constexpr std::uint8_t kNoFragment = 0xff;
struct Fragment {
  std::uint64_t sequence = 0;
  Bytes bytes = 0;
  std::uint8_t index = kNoFragment;
};

/// Memory a QP channel uses, parts of the peer's block.
struct ChannelMemory {
  std::byte* receives = nullptr;  // kReceives * kReceiveSlot
  std::uint32_t lkey = 0;
  CreditWord* granted = nullptr;   // written by the peer's NIC
  CreditWord* granting = nullptr;  // source of our write into the peer's
};

struct PeerCredit {
  std::uint64_t address = 0;
  std::uint32_t rkey = 0;
};

class QpChannel {
 public:
  /// The QP is made, receives are posted; `id` comes back in every completion's wr_id.
  Result<void> open(Rail& rail, std::uint32_t id, const ChannelMemory& memory);
  /// `guarded`: what is posted may land twice, so a word is not written before the last one is
  /// acknowledged.
  Result<void> connect(const QpRoute& route, std::uint32_t receives, const PeerCredit& credit,
                       bool guarded);
  std::optional<ibv_ece> ece() const noexcept { return qp_.qp->ece(); }
  void set_ece(const ibv_ece& wanted) noexcept { qp_.qp->set_ece(wanted); }
  void to_error() noexcept;
  void close() noexcept;

  bool open() const noexcept { return qp_.qp != nullptr; }
  std::uint32_t number() const noexcept { return qp_.qp->number(); }
  std::uint32_t inline_bytes() const noexcept { return qp_.qp->inline_bytes(); }
  Bytes outstanding() const noexcept { return outstanding_; }
  bool idle() const noexcept { return posted_ == retired_; }
  std::uint32_t received() const noexcept { return received_; }
  /// In error: every receive has come back, so that received() is final.
  bool drained() const noexcept { return receives_left_ == 0; }
  /// May a fragment of so many work requests be posted now? Reads the credits that the peer has
  /// written.
  bool room(std::uint32_t requests = 1) noexcept;
  std::uint64_t peer_delivered() const noexcept;
  std::uint64_t peer_acknowledged() const noexcept;

  /// Posts a fragment. `soon`: somebody waits for its acknowledgement. 0 or errno; after an error
  /// this QP channel has to be quiesced, which tells whether the fragment, or a part of it, left
  /// after all. `before`: a write that is part of the fragment and takes no receive, posted
  /// together with it.
  int post(ibv_send_wr& request, const Fragment& fragment, bool soon,
           ibv_send_wr* before = nullptr) noexcept;
  /// Posts a part of `fragment`, which comes later. As post().
  int post_part(ibv_send_wr& request, const Fragment& fragment) noexcept {
    const int error = submit(request, Fragment{}, false);
    if (error != 0) doubt(fragment);
    return error;
  }
  /// Tells the peer how many receives were posted and messages delivered, when due.
  void grant(std::uint64_t delivered) noexcept;
  /// Tells the peer that all messages before this one are acknowledged. False: not now.
  bool confirm(std::uint64_t messages) noexcept;
  bool confirming() const noexcept { return under_way(confirm_end_); }
  /// Asks for a completion if what is posted would get none.
  void flush() noexcept;
  /// Neither of them has anything to do.
  bool nothing_due(std::uint64_t delivered) const noexcept {
    return !grant_is_due(delivered) && (unsignalled_ == 0 || signalled_ != 0);
  }

  /// A send completed: calls acked(Fragment) for it and all before it.
  template <class Acked>
  void retire(std::uint32_t index, Acked&& acked) noexcept {
    // Only what is posted can complete; anything else is not of this QP's epoch.
    if ((index - retired_) % kIndexSpan >= posted_ - retired_) return;
    const std::uint32_t end = retired_ + (index - retired_) % kIndexSpan + 1;
    if (signalled_ > 0) --signalled_;
    while (retired_ != end) take_oldest(acked);
  }
  /// The QP is gone; the peer got `count` fragments of it. Less: than were acknowledged. Greater:
  /// than were posted.
  template <class Acked, class Lost>
  std::strong_ordering reconcile(std::uint32_t count, Acked&& acked, Lost&& lost) noexcept {
    while (retired_ != posted_) {
      const Fragment& fragment = fifo_[retired_++ % kSends];
      if (fragment.index == kNoFragment) continue;
      outstanding_ -= fragment.bytes;
      if (acknowledged_ != count) {
        ++acknowledged_;
        acked(fragment);
      } else {
        lost(fragment);
      }
    }
    const auto all = count <=> acknowledged_;
    acknowledged_ = 0;
    return all;
  }

  const std::byte* receive_slot(std::uint32_t slot) const noexcept {
    return memory_.receives + slot * kReceiveSlot;
  }
  void count_received(std::uint64_t sequence, unsigned fragment) noexcept {
    seen_[received_++ % kSends] = key_of(sequence, fragment);
  }
  /// Of the fragments that its sender may still have posted: did this one come over this QP?
  bool saw(std::uint64_t sequence, unsigned fragment) const noexcept;
  void receive_ended() noexcept { --receives_left_; }
  /// Gives the slot back to the NIC, kReceiveBatch of them together. 0 or errno.
  int give_back(std::uint32_t slot) noexcept {
    returned_[returned_count_++] = slot;
    return returned_count_ < kReceiveBatch ? 0 : post_receives();
  }

  /// The same of one that took something that had come already. Its sender knows nothing of it.
  int give_back_repeated(std::uint32_t slot) noexcept {
    ++repeated_;
    return give_back(slot);
  }

  static constexpr std::uint32_t kIndexSpan = 1U << 24;

 private:
  template <class Each>
  void take_oldest(Each&& each) noexcept {
    const Fragment& fragment = fifo_[retired_ % kSends];
    ++retired_;
    if (fragment.index == kNoFragment) return;
    ++acknowledged_;
    outstanding_ -= fragment.bytes;
    each(fragment);
  }
  bool grant_is_due(std::uint64_t delivered) const noexcept;
  static std::uint32_t key_of(std::uint64_t sequence, unsigned fragment) noexcept {
    return static_cast<std::uint32_t>(sequence << 4 | fragment);
  }
  /// What was posted before `end` is not acknowledged.
  bool under_way(std::uint32_t end) const noexcept {
    return end != 0 && static_cast<std::int32_t>(end - retired_) > 0;
  }
  int write_word(const std::uint64_t* from, std::size_t bytes, bool signal) noexcept;
  int submit(ibv_send_wr& request, const Fragment& fragment, bool signal,
             ibv_send_wr* before = nullptr) noexcept;
  void book(const Fragment& fragment, bool signal) noexcept;
  int post_receives() noexcept;
  void doubt(const Fragment& fragment) noexcept;

  Rail* rail_ = nullptr;
  RailQp qp_;
  std::uint32_t id_ = 0;
  std::uint32_t epoch_ = 0;
  ChannelMemory memory_;
  PeerCredit credit_;
  std::array<Fragment, kSends> fifo_{};
  std::uint32_t posted_ = 0;  // work requests
  std::uint32_t retired_ = 0;
  std::uint32_t signalled_ = 0;    // that will complete by themselves
  std::uint32_t unsignalled_ = 0;  // after the last of those
  std::uint64_t fragments_ = 0;    // posted
  std::uint32_t acknowledged_ = 0;
  Bytes outstanding_ = 0;
  std::uint64_t granted_ = 0;  // receives of the peer, in all
  std::uint32_t received_ = 0;
  std::array<std::uint32_t, kSends> seen_{};  // by received_, the latest
  std::uint32_t repeated_ = 0;
  bool guarded_ = false;
  std::uint32_t grant_end_ = 0;  // posted_ behind the last of them
  std::uint32_t confirm_end_ = 0;
  std::uint32_t receives_left_ = 0;
  std::array<std::uint32_t, kReceiveBatch> returned_{};  // slots that are not posted yet
  std::uint32_t returned_count_ = 0;
  std::uint64_t receives_posted_ = 0;
  std::uint64_t told_receives_ = 0;
  std::uint64_t told_delivered_ = 0;

 public:
  /// What is in a wr_id.
  struct Mark {
    bool receive = false;
    std::uint32_t channel = 0;
    std::uint32_t epoch = 0;
    std::uint32_t index = 0;  // of the send, or the receive's slot
  };
  static Mark decode(std::uint64_t wr_id) noexcept {
    return {(wr_id >> 63) != 0, static_cast<std::uint32_t>(wr_id >> 40) & 0x7fff,
            static_cast<std::uint32_t>(wr_id >> 24) & 0xffff,
            static_cast<std::uint32_t>(wr_id) & (kIndexSpan - 1)};
  }
  bool current(const Mark& mark) const noexcept {
    return open() && mark.epoch == (epoch_ & 0xffff);
  }
  static constexpr std::uint32_t kMaxChannels = 1U << 15;

 private:
  std::uint64_t mark(bool receive, std::uint32_t index) const noexcept {
    return std::uint64_t{receive} << 63 | std::uint64_t{id_} << 40 |
           std::uint64_t{epoch_ & 0xffff} << 24 | (index & (kIndexSpan - 1));
  }
};

}  // namespace gdrx::verbs

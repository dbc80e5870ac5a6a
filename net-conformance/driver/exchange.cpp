// SPDX-License-Identifier: Apache-2.0
#include "net-conformance/driver/exchange.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "net-conformance/driver/verdict.hpp"

namespace gdrx::conformance {

std::size_t Exchange::send(const Message& message) {
  Transfer transfer;
  transfer.parts = {message};
  transfer.is_send = true;
  transfers_.push_back(std::move(transfer));
  return transfers_.size() - 1;
}

std::size_t Exchange::receive(std::vector<Message> group) {
  Transfer transfer;
  transfer.parts = std::move(group);
  transfers_.push_back(std::move(transfer));
  return transfers_.size() - 1;
}

std::size_t Exchange::receive_optional(const Message& message) {
  const std::size_t index = receive(message);
  transfers_[index].optional = true;
  return index;
}

Result<void> Exchange::post(Transfer& transfer) {
  transfer.sizes.fill(kPoison);
  if (transfer.is_send) {
    const Message& part = transfer.parts[0];
    transfer.request = nullptr;
    GDRX_TRY(succeeds(session_.net().isend(send_, part.data, part.size, part.tag, part.mhandle,
                                           &transfer.request),
                      "isend"));
    transfer.posted = transfer.request != nullptr;
    return {};
  }
  std::vector<void*> data, mhandles;
  std::vector<std::size_t> sizes;
  std::vector<int> tags;
  for (const Message& part : transfer.parts) {
    data.push_back(part.data);
    sizes.push_back(part.size);
    tags.push_back(part.tag);
    mhandles.push_back(part.mhandle);
  }
  void* const sentinel = reinterpret_cast<void*>(nccl::kOptionalRecvCompletion);
  transfer.request = transfer.optional ? sentinel : nullptr;
  GDRX_TRY(
      succeeds(session_.net().irecv(recv_, static_cast<int>(transfer.parts.size()), data.data(),
                                    sizes.data(), tags.data(), mhandles.data(), &transfer.request),
               "irecv"));
  if (transfer.optional && transfer.request == sentinel) {
    return broken("irecv left the optional-completion sentinel 0x1 in *request");
  }
  transfer.posted = transfer.request != nullptr;
  return {};
}

Result<void> Exchange::test(Transfer& transfer) {
  int done = 0;
  GDRX_TRY(succeeds(session_.net().test(transfer.request, &done, transfer.sizes.data()), "test"));
  transfer.done = done != 0;
  return {};
}

Result<void> Exchange::step() {
  const std::size_t budget[2] = {
      nccl::kMaxRequests,
      nccl::kMaxRequests * static_cast<std::size_t>(std::max(1, session_.max_recvs()))};
  bool may_test[2] = {true, true};
  bool may_post[2] = {true, true};  // receives, sends: what is refused holds up those behind it
  for (Transfer& transfer : transfers_) {
    const std::size_t kind = transfer.is_send ? 1 : 0;
    if (!transfer.posted && may_post[kind] && under_way(transfer.is_send) < budget[kind]) {
      GDRX_TRY(post(transfer));
      may_post[kind] = transfer.posted || (transfer.is_send && any_order_);
    }
    if (transfer.posted && !transfer.done && may_test[kind]) {
      GDRX_TRY(test(transfer));
      may_test[kind] = !oldest_only_;
    }
  }
  return {};
}

bool Exchange::done() const noexcept { return std::ranges::all_of(transfers_, &Transfer::done); }

std::size_t Exchange::under_way(bool sends) const noexcept {
  return static_cast<std::size_t>(std::ranges::count_if(transfers_, [&](const Transfer& transfer) {
    return transfer.is_send == sends && transfer.posted && !transfer.done;
  }));
}

Result<void> Exchange::finish(Duration limit) {
  const Deadline deadline = Deadline::after(steady_clock(), limit);
  while (!done()) {
    GDRX_TRY(step());
    std::this_thread::yield();  // as NCCL's threads do, for the other end's sake
    if (deadline.passed(steady_clock().now()) && !done()) {
      const auto left = [&](bool is_send) {
        return std::ranges::count_if(transfers_, [&](const Transfer& transfer) {
          return transfer.is_send == is_send && !transfer.done;
        });
      };
      return broken(fmt::format(
          "{} sends and {} receives of {} did not complete in {} ms", left(true), left(false),
          transfers_.size(), std::chrono::duration_cast<std::chrono::milliseconds>(limit).count()));
    }
  }
  return {};
}

Result<void> Exchange::until_posted(std::size_t index, Duration limit) {
  const Deadline deadline = Deadline::after(steady_clock(), limit);
  while (!transfers_[index].posted) {
    GDRX_TRY(step());
    if (deadline.passed(steady_clock().now()) && !transfers_[index].posted) {
      return broken("no request was yielded in time");
    }
  }
  return {};
}

}  // namespace gdrx::conformance

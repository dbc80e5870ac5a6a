// SPDX-License-Identifier: Apache-2.0
#include "collectives/exec/flows.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "collectives/reduce/reducer.hpp"

namespace gdrx::exec {
namespace {

// A message is cut so that writing one slice and reading another overlap, but not into slices whose
// own cost shows.
constexpr std::uint64_t kSlices = 16;
constexpr std::uint64_t kUncutBytes = 32 * 1024;

// Whether the bytes that come next may replace those that go.
bool may_take(const Flow& flow, std::uint64_t bytes) {
  const Flow* const before = flow.behind;
  if (before == nullptr) return true;
  return before->unfinished_writes == 0 && before->at >= flow.at + bytes;
}

}  // namespace

Flows::Flows(Links& links, const FlowLanes& lanes)
    : links_(links), lanes_(lanes), pairs_(links.shape().ranks) {
  active_.reserve(links.shape().ranks);
}

void Flows::Queue::push(Flow& flow) noexcept {
  flow.next = nullptr;
  (last == nullptr ? first : last->next) = &flow;
  last = &flow;
}

void Flows::Queue::pop() noexcept {
  first = first->next;
  if (first == nullptr) last = nullptr;
}

Result<void> Flows::post(Flow& flow) {
  Pair& with = pair(flow.peer);
  if (with.outbox == nullptr && flow.peer != links_.self()) {
    with.outbox = GDRX_TRY(links_.to(flow.peer));
    credits_.make_room(lanes_.count);
  }
  if (flow.send) {
    if (free_.empty()) {
      free_.reserve(writers_.size() + 1);
      writers_.push_back(nullptr);
      free_.push_back(static_cast<std::uint32_t>(writers_.size() - 1));
    }
    if (flow.bytes > 0) flow.registration = links_.registered({flow.buffer, flow.bytes});
    flow.cookie = free_.back();
    writers_[flow.cookie] = &flow;
    free_.pop_back();
  }
  const std::uint64_t most = links_.shape().slice;
  flow.slice = std::min(most, std::max(kUncutBytes, flow.bytes / kSlices));
  Queue& queue = flow.send ? with.sends : with.receives;
  if (flow.word.collective == Collective::send_recv) flow.word.sequence = queue.posted++;
  queue.push(flow);
  ++unfinished_;
  if (!with.active) active_.push_back(flow.peer);
  with.active = true;
  return {};
}

Result<bool> Flows::step() {
  if (credits_.owes()) GDRX_TRY(credits_.pay());
  bool moved = false;
  for (std::size_t i = 0; i < active_.size();) {
    const Rank peer = active_[i];
    if (GDRX_TRY(step(peer))) moved = true;
    if (!pair(peer).idle()) {
      ++i;
      continue;
    }
    pair(peer).active = false;
    active_[i] = active_.back();
    active_.pop_back();
  }
  return moved;
}

Result<bool> Flows::step(Rank peer) {
  Pair& with = pair(peer);
  if (peer == links_.self()) return to_itself(with);
  const bool sent = with.sends.first != nullptr && GDRX_TRY(send(with));
  const bool received = with.receives.first != nullptr && GDRX_TRY(receive(with, peer));
  return sent || received;
}

// "Both sides agree" is checked as between two ranks.
Result<bool> Flows::to_itself(Pair& self) {
  bool moved = false;
  while (self.sends.first != nullptr && self.receives.first != nullptr) {
    Flow& from = *self.sends.first;
    Flow& to = *self.receives.first;
    GDRX_TRY(check_word(from.word, links_.self(), to.word, links_.self()));
    if (to.bytes > 0 && to.buffer != from.buffer) reduce::copy(to.buffer, from.buffer, to.bytes);
    ++from.counters.sent;
    ++to.counters.received;
    end_of(self.sends, from);
    end_of(self.receives, to);
    moved = true;
  }
  return moved;
}

MessageHeader Flows::header_of(const Flow& flow, Rank source) const noexcept {
  MessageHeader header;
  header.word = flow.word;
  header.instance = static_cast<std::uint32_t>(flow.counters.slices);
  header.bytes = static_cast<std::uint32_t>(std::min(flow.slice, flow.bytes - flow.at));
  header.source = gdrx::index(source);
  header.count = flow.count;
  return header;
}

Result<bool> Flows::send(Pair& to) {
  bool moved = false;
  while (to.sends.first != nullptr) {
    Flow& flow = *to.sends.first;
    const MessageHeader header = header_of(flow, links_.self());
    const std::uint32_t lane = lane_of(to.sends.slices);
    const Progress posted = GDRX_TRY(to.outbox->send(
        lane, links_.inbox().credit(flow.peer, lane), header, {flow.buffer + flow.at, header.bytes},
        flow.registration ? flow.registration->region() : nullptr, flow.cookie | lanes_.mark));
    if (posted == Progress::pending) break;
    moved = true;
    ++to.sends.slices;
    ++flow.unfinished_writes;
    ++flow.counters.sent;
    ++flow.counters.slices;
    flow.at += header.bytes;
    if (flow.at == flow.bytes) end_of(to.sends, flow);
  }
  return moved;
}

Result<bool> Flows::receive(Pair& from, Rank peer) {
  bool moved = false;
  while (from.receives.first != nullptr) {
    Flow& flow = *from.receives.first;
    const std::uint32_t lane = lane_of(from.receives.slices);
    const MessageHeader* const theirs = links_.inbox().head(peer, lane);
    if (theirs == nullptr) break;
    const MessageHeader expected = header_of(flow, peer);
    GDRX_TRY(check_message(*theirs, peer, expected, links_.self()));
    if (!may_take(flow, expected.bytes)) break;
    reduce::copy(flow.buffer + flow.at, Inbox::payload(theirs), expected.bytes);
    moved = true;
    ++from.receives.slices;
    ++flow.counters.received;
    ++flow.counters.slices;
    flow.at += expected.bytes;
    GDRX_TRY(credits_.give_back(*from.outbox, lane, links_.inbox().consume(peer, lane)));
    if (flow.at == flow.bytes) end_of(from.receives, flow);
  }
  return moved;
}

void Flows::end_of(Queue& queue, Flow& flow) noexcept {
  queue.pop();
  flow.handed_over = true;
  end_if_done(flow);
}

// A sender has his buffer back when its last write is done.
void Flows::end_if_done(Flow& flow) noexcept {
  if (!flow.ended()) return;
  if (flow.send) {
    writers_[flow.cookie] = nullptr;
    free_.push_back(static_cast<std::uint32_t>(flow.cookie));  // has room
    flow.registration.reset();
  }
  --unfinished_;
  ended_.push(flow);
}

Flow* Flows::take_ended() noexcept {
  Flow* const flow = ended_.first;
  if (flow != nullptr) ended_.pop();
  return flow;
}

void Flows::on_write_done(std::uint64_t cookie) noexcept {
  const std::uint64_t writer = cookie & ~lanes_.mark;
  if (writer >= writers_.size() || writers_[writer] == nullptr) return;
  Flow& flow = *writers_[writer];
  --flow.unfinished_writes;
  end_if_done(flow);
}

void Flows::clear() noexcept {
  for (Pair& pair : pairs_) {
    pair.sends = pair.receives = {};
    pair.active = false;
  }
  active_.clear();
  credits_.clear();
  writers_.clear();
  free_.clear();
  unfinished_ = 0;
  ended_ = {};
}

std::string Flows::waiting_for(const Flow& flow) const {
  if (flow.handed_over) return "this rank's own writes to complete";
  return flow.send ? fmt::format("rank {} to take byte {}", index(flow.peer), flow.at)
                   : fmt::format("byte {} from rank {}", flow.at, index(flow.peer));
}

}  // namespace gdrx::exec

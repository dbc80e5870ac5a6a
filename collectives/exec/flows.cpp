// SPDX-License-Identifier: Apache-2.0
#include "collectives/exec/flows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "collectives/reduce/reducer.hpp"

namespace gdrx::exec {
namespace {

// A message is cut so that writing one slice and reading another overlap, but not into slices whose
// own cost shows.
constexpr std::uint64_t kSlices = 16;
constexpr std::uint64_t kUncutMessage = 32 * 1024;
// Of messages through a ring, before other peers and clocks have their turn: some tens of
// microseconds.
constexpr std::uint64_t kTurn = 512 * 1024;

// Where a core takes lines from the other at less than that rate (bytes a nanosecond), the kernel's
// one copy is faster. It depends on where the cores are, and machines move them: of so many slices
// one is timed, a few that take long are believed, and so many messages later copying is tried.
constexpr std::int64_t kLeastRate = 12;
constexpr std::uint32_t kTimeEvery = 16;
constexpr std::uint32_t kBelieved = 3;
constexpr std::uint32_t kLoans = 64;

// Whether the bytes that come next may replace those that go.
bool may_take(const Flow& flow, std::uint64_t bytes) {
  const Flow* const before = flow.behind;
  if (before == nullptr) return true;
  return before->unfinished_writes == 0 && before->at >= flow.at + bytes;
}

SliceHead slice_head(const MessageHeader& header) noexcept {
  return {.count = header.count, .instance = header.instance, .type = header.signature.type};
}

// What a cell has no room for is as expected: the place in the ring says it.
MessageHeader told_by(const SliceHead& head, const MessageHeader& expected) noexcept {
  MessageHeader theirs = expected;
  theirs.signature.type = head.type;
  theirs.signature.count = theirs.count = head.count;
  theirs.instance = head.instance;
  return theirs;
}

}  // namespace

Flows::Flows(Links& links, const FlowLanes& lanes, const Neighbours& here)
    : links_(links), lanes_(lanes), here_(here), pairs_(links.shape().ranks) {
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

Result<void> Flows::connect(Pair& pair, Rank peer) {
  if (pair.ring != nullptr || pair.send_ring != nullptr || peer == links_.self()) return {};
  if (here_.rings) {
    const int other = index(peer);
    const std::size_t room = here_.rings->room();
    pair.ring = std::make_unique<Ring>(RingSender(here_.rings->to(other), peer, room),
                                       RingReceiver(here_.rings->from(other), room));
    return {};
  }
  pair.send_ring = GDRX_TRY(links_.to(peer));
  credits_.make_room(lanes_.count);
  return {};
}

Result<void> Flows::post(Flow& flow) {
  Pair& with = pair(flow.peer);
  GDRX_TRY(connect(with, flow.peer));
  if (flow.send) {
    if (free_.empty()) {
      free_.reserve(writers_.size() + 1);
      writers_.push_back(nullptr);
      free_.push_back(static_cast<std::uint32_t>(writers_.size() - 1));
    }
    if (flow.bytes > 0 && !with.ring)
      flow.registration = links_.registered({flow.buffer, flow.bytes});
    flow.cookie = free_.back();
    writers_[flow.cookie] = &flow;
    free_.pop_back();
  }
  const std::uint64_t most = links_.shape().slice;
  flow.slice = with.ring ? here_.rings->cut()
                         : std::min(most, std::max(kUncutMessage, flow.bytes / kSlices));
  Queue& queue = flow.send ? with.sends : with.receives;
  if (flow.signature.collective == Collective::send_recv) flow.signature.sequence = queue.posted++;
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
    GDRX_TRY(check_signature(from.signature, links_.self(), to.signature, links_.self()));
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
  header.signature = flow.signature;
  header.instance = static_cast<std::uint32_t>(flow.counters.slices);
  header.bytes = static_cast<std::uint32_t>(std::min(flow.slice, flow.bytes - flow.at));
  header.source = gdrx::index(source);
  header.count = flow.count;
  return header;
}

Result<Progress> Flows::hand_over(Pair& to, const Flow& flow, const MessageHeader& header) {
  const std::span<const std::byte> bytes(flow.buffer + flow.at, header.bytes);
  if (to.ring) return copy_in(*to.ring, slice_head(header), bytes);
  const std::uint32_t lane = lane_of(to.sends.slices);
  return to.send_ring->send(lane, links_.receive_ring().credit(flow.peer, lane), header, bytes,
                            flow.registration ? flow.registration->region() : nullptr,
                            flow.cookie | lanes_.mark);
}

Result<Progress> Flows::copy_in(Ring& ring, const SliceHead& head,
                                std::span<const std::byte> bytes) const {
  const bool timed = bytes.size() > kRingSlice && !here_.processes.empty() &&
                     (ring.slow > 0 || ring.slices++ % kTimeEvery == 0);
  if (!timed) return ring.out.send(head, bytes);
  const auto began = std::chrono::steady_clock::now();
  const Progress sent = GDRX_TRY(ring.out.send(head, bytes));
  if (sent == Progress::pending) return sent;
  const std::chrono::nanoseconds took = std::chrono::steady_clock::now() - began;
  ring.slow =
      took.count() * kLeastRate > static_cast<std::int64_t>(bytes.size()) ? ring.slow + 1 : 0;
  if (ring.slow == kBelieved) {
    ring.loans = kLoans;
    ring.slow = ring.slices = 0;
  }
  return sent;
}

// False: it goes by slices. Else it is lent, or over: then it is handed over.
Result<bool> Flows::lend(Pair& to, Flow& flow) {
  if (!to.ring || flow.cut || flow.at > 0 || flow.bytes <= kRingSlice) return false;
  if (!flow.lent && !lends(*to.ring)) return false;
  if (!flow.lent) {
    const SliceHead head = slice_head(header_of(flow, links_.self()));
    flow.lent = GDRX_TRY(to.ring->out.lend(head, flow.buffer)) == Progress::done;
    return true;
  }
  const RingSender::Loan loan = GDRX_TRY(to.ring->out.loan());
  if (loan == RingSender::Loan::out) return true;
  flow.lent = false;
  if (to.ring->loans > 0) --to.ring->loans;
  flow.cut = loan == RingSender::Loan::refused;
  if (flow.cut) return false;
  ++flow.counters.sent;
  ++flow.counters.slices;
  flow.at = flow.bytes;
  return true;
}

Result<bool> Flows::send(Pair& to) {
  bool moved = false;
  for (std::uint64_t turn = 0; to.sends.first != nullptr && turn < kTurn;) {
    Flow& flow = *to.sends.first;
    if (GDRX_TRY(lend(to, flow))) {
      if (flow.at < flow.bytes) break;
      moved = true;
      end_of(to.sends, flow);
      continue;
    }
    const MessageHeader header = header_of(flow, links_.self());
    if (GDRX_TRY(hand_over(to, flow, header)) == Progress::pending) break;
    moved = true;
    ++to.sends.slices;
    if (!to.ring) ++flow.unfinished_writes;
    ++flow.counters.sent;
    ++flow.counters.slices;
    flow.at += header.bytes;
    if (to.ring) turn += header.bytes;
    if (flow.at == flow.bytes) end_of(to.sends, flow);
  }
  return moved;
}

bool Flows::read_loan(Ring& ring, Rank peer, Flow& flow) const noexcept {
  const std::uint64_t bytes = std::min(kTurn, flow.bytes - flow.at);
  const ProcessTicket& process = here_.processes[static_cast<std::size_t>(index(peer))];
  const Written read =
      read_process(process, ring.in.address() + flow.at, {flow.buffer + flow.at, bytes});
  // The mesh tells of either.
  if (read == Written::gone || !ring.in.still_lent()) return false;
  flow.at = read == Written::all ? flow.at + bytes : 0;
  if (read != Written::all) ring.in.refuse();
  if (flow.at == flow.bytes) ring.in.give_back();
  return true;
}

Result<bool> Flows::take_slice(Ring& ring, Rank peer, Flow& flow) {
  const SliceHead* const head = ring.in.head();
  if (head == nullptr) return false;
  const SliceHead theirs = *head;
  const MessageHeader expected = header_of(flow, peer);
  GDRX_TRY(check_message(told_by(theirs, expected), peer, expected, links_.self()));
  if (theirs.lent != 0 && !here_.processes.empty()) {
    if (!read_loan(ring, peer, flow)) return false;
    if (flow.at < flow.bytes) return true;
  } else {
    ring.in.take(flow.buffer + flow.at, expected.bytes);
    flow.at += expected.bytes;
  }
  ++flow.counters.received;
  ++flow.counters.slices;
  return true;
}

// True: something of the flow was there.
Result<bool> Flows::take(Pair& from, Rank peer, Flow& flow) {
  if (from.ring) return take_slice(*from.ring, peer, flow);
  const MessageHeader expected = header_of(flow, peer);
  const std::uint32_t lane = lane_of(from.receives.slices);
  const MessageHeader* const theirs = links_.receive_ring().head(peer, lane);
  if (theirs == nullptr) return false;
  GDRX_TRY(check_message(*theirs, peer, expected, links_.self()));
  if (!may_take(flow, expected.bytes)) return false;
  reduce::copy(flow.buffer + flow.at, ReceiveRing::payload(theirs), expected.bytes);
  ++from.receives.slices;
  ++flow.counters.received;
  ++flow.counters.slices;
  flow.at += expected.bytes;
  GDRX_TRY(credits_.give_back(*from.send_ring, lane, links_.receive_ring().consume(peer, lane)));
  return true;
}

Result<bool> Flows::receive(Pair& from, Rank peer) {
  bool moved = false;
  for (std::uint64_t turn = 0; from.receives.first != nullptr && turn < kTurn;) {
    Flow& flow = *from.receives.first;
    const std::uint64_t before = flow.at;
    if (!GDRX_TRY(take(from, peer, flow))) break;
    moved = true;
    if (from.ring) turn += std::max(flow.at, before) - before;
    if (flow.at == flow.bytes) end_of(from.receives, flow);
  }
  return moved;
}

bool Flows::run_now(const Message& what, int looks) {
  if (!by_ring(what.peer) || what.bytes > here_.rings->cut()) return false;
  Pair& with = pair(what.peer);
  Queue& queue = what.sends ? with.sends : with.receives;
  if (queue.first != nullptr || !connect(with, what.peer)) return false;
  Ring& ring = *with.ring;
  if (what.sends && what.bytes > kRingSlice && lends(ring)) return false;
  const SliceHead head{.count = what.count, .type = what.type};
  for (; looks > 0; --looks) {
    const Result<Progress> now =
        what.sends ? copy_in(ring, head, {what.from, what.bytes}) : receive_now(ring, what);
    if (!now) return false;
    if (*now == Progress::pending) continue;
    ++queue.posted;
    return true;
  }
  return false;
}

// What goes wrong here does so again in a flow, which says how.
Result<Progress> Flows::receive_now(Ring& ring, const Message& what) {
  const SliceHead* const head = ring.in.head();
  if (head == nullptr) return Progress::pending;
  if (*head != SliceHead{.count = what.count, .type = what.type}) return fail(Errc::mismatch, {});
  ring.in.take(what.to, what.bytes);
  return Progress::done;
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
    if (pair.sends.first != nullptr && pair.sends.first->lent) pair.ring->out.withdraw();
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

// SPDX-License-Identifier: Apache-2.0
// What comes from a peer, and what a NIC makes of it twice.
#include <fmt/format.h>

#include <algorithm>

#include "transport/verbs/peer.hpp"

namespace gdrx::verbs {

void Peer::on_receive(const ibv_wc& done, const QpChannel::Mark& mark, PortPair& pair,
                      QpChannel& channel) {
  pair.rail().count_landed();
  const bool send = done.opcode == IBV_WC_RECV;
  // No message is empty: soft-RoCE repeats the end of a send without its bytes.
  const bool ghost = send && done.byte_len == 0 && channel.received() > 0;
  auto came = ghost  ? Result<Incoming::Came>(Incoming::Came{0, kNoFragment, true})
              : send ? incoming_.on_send({channel.receive_slot(mark.index), done.byte_len})
                     : incoming_.on_signal(be32toh(done.imm_data), pair.guarded());
  if (!came) {
    return give_up(fmt::format("it sent {} ({} to qp {:#x}, fragment {} of it)", came.error().what,
                               pair.rail().name(), channel.number(), channel.received() + 1));
  }
  if (came->again) {
    on_repeated(*came, done, pair, channel);
  } else {
    channel.count_received(came->sequence, came->fragment);
  }
  if (pair.state() != PairState::connecting && pair.state() != PairState::up) return;
  const int error =
      came->again ? channel.give_back_repeated(mark.index) : channel.give_back(mark.index);
  if (error != 0) pair.fail("ibv_post_recv failed", core_.clock->now());
}

// A NIC may repeat what came over this QP: nobody else may. It does no harm in a receive's buffer,
// with bytes that nobody has been given yet (its source does not change before the
// acknowledgement), and where delivery waits for that. A NIC of which this is news gets QPs where
// it does.
void Peer::on_repeated(const Incoming::Came& came, const ibv_wc& done, PortPair& pair,
                       const QpChannel& channel) {
  const auto what = [&] {
    return fmt::format(
        "message {} again, of which part {} came when {} were delivered ({} to qp "
        "{:#x}, after fragment {} of it)",
        came.sequence, came.fragment, incoming_.delivered(), pair.rail().name(), channel.number(),
        channel.received());
  };
  if (came.fragment != kNoFragment && !channel.saw(came.sequence, came.fragment)) {
    return give_up("it sent " + what());
  }
  ++core_.counters.repeated;
  if (came.delivered && done.opcode != IBV_WC_RECV && !pair.guarded()) {
    return give_up("a NIC wrote " + what() + ": the memory may be another message's by now");
  }
  if (pair.guarded()) return;
  pair.rail().set_repeats();
  pair.fail("a NIC delivered a part of a message again", core_.clock->now());
}

// Where NICs may repeat what is not acknowledged, the sender tells its receiver what is.
void Peer::exchange_acknowledged() noexcept {
  std::uint64_t theirs = 0;
  const std::uint64_t ours = outgoing_.acknowledged();
  bool due = confirmed_ < outgoing_.to_confirm() && confirmed_ < ours;
  for (const auto& pair : pairs_) {
    for (QpChannel& channel : pair->channels()) {
      theirs = std::max(theirs, channel.peer_acknowledged());
      if (due && pair->state() == PairState::up && channel.confirm(ours)) {
        confirmed_ = ours;
        due = false;
      }
    }
  }
  if (theirs <= incoming_.acknowledged()) return;
  // What was repeated has landed, whether its completion has been polled or not.
  for (const auto& pair : pairs_) pair->rail().count_landed();
  if (auto done = incoming_.on_acknowledged(theirs); !done) {
    give_up("it sent " + done.error().what);
  }
}

}  // namespace gdrx::verbs

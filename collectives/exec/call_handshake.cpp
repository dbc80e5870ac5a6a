// SPDX-License-Identifier: Apache-2.0
#include "collectives/exec/call_handshake.hpp"

namespace gdrx::exec {
namespace {

constexpr std::uint32_t kLane = 0;

MessageHeader header_of(const CallSignature& signature, Rank source) {
  MessageHeader header;
  header.signature = signature;
  header.source = index(source);
  return header;
}

}  // namespace

Result<Handshake> Handshake::create(const CallSignature& signature, const std::vector<Rank>& peers,
                                    Links& links) {
  Handshake made(signature, links);
  for (const Rank rank : peers) {
    if (rank == links.self()) continue;
    SendRing* const send_ring = GDRX_TRY(links.to(rank));
    made.peers_.push_back({rank, send_ring});
  }
  made.credits_.make_room(made.peers_.size());
  return made;
}

Result<bool> Handshake::advance(Peer& peer) {
  bool advanced = false;
  ReceiveRing& receive_ring = links_->receive_ring();
  if (!peer.told) {
    const Progress sent = GDRX_TRY(
        peer.send_ring->send(kLane, receive_ring.credit(peer.rank, kLane),
                             header_of(signature_, links_->self()), {}, nullptr, kNoCookie));
    advanced = peer.told = sent == Progress::done;
  }
  if (!peer.heard) {
    const MessageHeader* header = receive_ring.head(peer.rank, kLane);
    if (header == nullptr) return advanced;
    GDRX_TRY(check_message(*header, peer.rank, header_of(signature_, peer.rank), links_->self()));
    GDRX_TRY(credits_.give_back(*peer.send_ring, kLane, receive_ring.consume(peer.rank, kLane)));
    advanced = peer.heard = true;
  }
  return advanced;
}

Result<Step> Handshake::step() {
  if (credits_.owes()) GDRX_TRY(credits_.pay());
  bool advanced = false;
  bool done = true;
  for (Peer& peer : peers_) {
    if (GDRX_TRY(advance(peer))) advanced = true;
    done = done && peer.told && peer.heard;
  }
  if (done && !credits_.owes()) return Step::done;
  return advanced ? Step::advanced : Step::idle;
}

Rank Handshake::missing() const noexcept {
  for (const Peer& peer : peers_) {
    if (!peer.told || !peer.heard) return peer.rank;
  }
  return links_->self();
}

}  // namespace gdrx::exec

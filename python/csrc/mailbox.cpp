// SPDX-License-Identifier: Apache-2.0
#include "mailbox.hpp"

#include <ATen/ATen.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace gdrx_torch {
namespace {

constexpr int kNobody = -1;  // no tag of anybody's

std::byte* memory(const at::Tensor& tensor) {
  return static_cast<std::byte*>(tensor.mutable_data_ptr());
}

std::string to_text(Milliseconds time) {
  return std::to_string(static_cast<double>(time.count()) / 1000).substr(0, 6) + " s";
}

}  // namespace

Mailbox::Mailbox(gdrxComm_t comm, int rank, int size)
    : comm_(comm), rank_(rank), peers_(static_cast<std::size_t>(size)) {}

Mailbox::~Mailbox() = default;

// True: it has ended.
bool Mailbox::test(gdrxRequest_t& request) {
  if (request == nullptr) return true;
  const gdrxResult_t result = gdrxTest(&request);
  if (result == gdrxInProgress) return false;
  if (result != gdrxSuccess && failure_.empty()) failure_ = gdrxGetLastError(comm_);
  return true;
}

void Mailbox::send(const WorkPtr& work, int peer, Key key, std::vector<WorkPtr>& ended) {
  Outgoing& out = outgoing_.emplace_back();
  out.tensor = work->call.inputs.front();
  out.packet.bytes = out.tensor.nbytes();
  out.packet.tag = key.tag;
  out.packet.purpose = key.purpose;
  const bool inside = out.packet.bytes <= kBody;
  out.packet.inside = inside ? 1 : 0;
  if (inside && out.packet.bytes > 0) {
    std::memcpy(out.packet.body.data(), memory(out.tensor), out.packet.bytes);
  }
  gdrxResult_t sent =
      gdrxSend(&out.packet, sizeof out.packet, gdrxByte, peer, comm_, nullptr, &out.requests[0]);
  if (sent == gdrxSuccess && !inside) {
    sent = gdrxSend(memory(out.tensor), out.packet.bytes, gdrxByte, peer, comm_, nullptr,
                    &out.requests[1]);
  }
  if (sent != gdrxSuccess) {
    const std::string why = gdrxGetLastError(comm_);
    if (out.requests[0] == nullptr) outgoing_.pop_back();
    C10_THROW_ERROR(DistBackendError, "gdrx: send: " + why);
  }
  if (inside) {  // the packet has the bytes: the tensor is the caller's again
    out.tensor = at::Tensor();
    ended.push_back(work);
  } else {
    out.work = work;
  }
}

void Mailbox::receive(const WorkPtr& work, int peer, Key key, std::vector<WorkPtr>& ended) {
  const auto come = std::find_if(arrivals_.begin(), arrivals_.end(), [&](const Arrival& arrival) {
    return !arrival.work && arrival.key == key && (peer == kAnySource || arrival.source == peer);
  });
  if (come != arrivals_.end()) {
    come->work = work;
    if (!come->arriving && deliver(*come, ended)) arrivals_.erase(come);
    return;
  }
  receipts_.push_back({work, peer, key});
  listen_to(peer);
}

void Mailbox::listen_to(int source) {
  if (source != kAnySource) return listen(source);
  for (int peer = 0; peer < static_cast<int>(peers_.size()); ++peer) {
    if (peer != rank_) listen(peer);
  }
}

void Mailbox::listen(int rank) {
  Peer& peer = peers_[static_cast<std::size_t>(rank)];
  if (peer.listening) return;
  const auto posted =
      gdrxRecv(&peer.packet, sizeof peer.packet, gdrxByte, rank, comm_, nullptr, &peer.request);
  if (posted != gdrxSuccess) {
    if (failure_.empty()) failure_ = gdrxGetLastError(comm_);
    return;
  }
  peer.listening = true;
  ++listening_;
}

bool Mailbox::wanted(int peer) const {
  return std::any_of(receipts_.begin(), receipts_.end(), [&](const Receipt& receipt) {
    return receipt.source == peer || receipt.source == kAnySource;
  });
}

// A packet of `rank` has come.
void Mailbox::open(int rank, std::vector<WorkPtr>& ended) {
  Peer& peer = peers_[static_cast<std::size_t>(rank)];
  peer.listening = false;
  --listening_;
  if (!failure_.empty()) return;
  const Packet& packet = peer.packet;
  Arrival& arrival = arrivals_.emplace_back();
  arrival.source = rank;
  arrival.key = {packet.tag, packet.purpose};
  arrival.bytes = packet.bytes;
  const auto match = std::find_if(receipts_.begin(), receipts_.end(), [&](const Receipt& wish) {
    return wish.key == arrival.key && (wish.source == rank || wish.source == kAnySource);
  });
  if (match != receipts_.end()) {
    arrival.work = std::move(match->work);
    receipts_.erase(match);
  }
  const bool fits = arrival.work && arrival.work->call.outputs.front().nbytes() == arrival.bytes &&
                    arrival.work->call.outputs.front().is_contiguous();
  if (packet.inside != 0) {
    const auto size = std::min<std::size_t>(arrival.bytes, kBody);
    arrival.body.assign(packet.body.begin(), packet.body.begin() + static_cast<long>(size));
  } else {
    if (fits) {
      arrival.tensor = arrival.work->call.outputs.front();
    } else {
      arrival.body.resize(arrival.bytes);
    }
    void* to = fits ? memory(arrival.tensor) : arrival.body.data();
    const auto posted =
        gdrxRecv(to, arrival.bytes, gdrxByte, rank, comm_, nullptr, &arrival.request);
    if (posted != gdrxSuccess && failure_.empty()) failure_ = gdrxGetLastError(comm_);
    arrival.arriving = true;
    ++arriving_;
  }
  if (!arrival.arriving && arrival.work && deliver(arrival, ended)) arrivals_.pop_back();
  if (wanted(rank)) listen(rank);
}

// It is whole, and somebody wants it. True: it has been handed over.
bool Mailbox::deliver(Arrival& arrival, std::vector<WorkPtr>& ended) {
  Work& work = *arrival.work;
  const at::Tensor& to = work.call.outputs.front();
  if (to.nbytes() != arrival.bytes) {
    work.error = std::string(work.call.title) + ": rank " + std::to_string(arrival.source) +
                 " sends " + std::to_string(arrival.bytes) + " bytes under tag " +
                 std::to_string(arrival.key.tag) + ", the tensor of rank " + std::to_string(rank_) +
                 " takes " + std::to_string(to.nbytes()) + ": both must be alike";
  } else if (!arrival.tensor.defined() && arrival.bytes > 0) {
    if (to.is_contiguous()) {
      std::memcpy(memory(to), arrival.body.data(), arrival.bytes);
    } else {  // later, without the lock
      auto body = std::make_shared<std::vector<std::byte>>(std::move(arrival.body));
      work.call.after = [to, body] {
        to.copy_(at::from_blob(body->data(), to.sizes(), to.options()));
      };
    }
  }
  work.source = arrival.source;
  ended.push_back(std::move(arrival.work));
  return true;
}

std::string Mailbox::late(const Work& work, const std::string& peer) const {
  return std::string(work.call.title) + " timed out: rank " + std::to_string(rank_) +
         " waits for " + peer + ", no message came within " + to_text(work.call.timeout);
}

void Mailbox::advance(std::vector<WorkPtr>& ended, Clock::time_point now) {
  if (listening_ > 0) {
    for (int rank = 0; rank < static_cast<int>(peers_.size()); ++rank) {
      Peer& peer = peers_[static_cast<std::size_t>(rank)];
      if (peer.listening && test(peer.request)) open(rank, ended);
    }
  }
  if (!outgoing_.empty()) advance_outgoing(ended, now);
  if (!arrivals_.empty()) advance_arrivals(ended, now);
  for (auto receipt = receipts_.begin(); receipt != receipts_.end();) {
    if (now < receipt->work->deadline) {
      ++receipt;
      continue;
    }
    receipt->work->error = late(*receipt->work, receipt->source == kAnySource
                                                    ? std::string("any rank")
                                                    : "rank " + std::to_string(receipt->source));
    ended.push_back(std::move(receipt->work));
    receipt = receipts_.erase(receipt);
  }
}

void Mailbox::advance_outgoing(std::vector<WorkPtr>& ended, Clock::time_point now) {
  for (auto out = outgoing_.begin(); out != outgoing_.end();) {
    const bool first = test(out->requests[0]);
    const bool gone = test(out->requests[1]) && first;
    if (!gone && out->work && now >= out->work->deadline) {
      // The message stays: it may be on its way, and the next must not overtake it.
      out->work->error = std::string(out->work->call.title) +
                         " timed out: the peer has not taken the message within " +
                         to_text(out->work->call.timeout);
      ended.push_back(std::move(out->work));
      out->work = {};
    }
    if (!gone) {
      ++out;
      continue;
    }
    if (out->work) {
      if (!failure_.empty()) out->work->error = failure_;
      ended.push_back(std::move(out->work));
    }
    out = outgoing_.erase(out);
  }
}

void Mailbox::advance_arrivals(std::vector<WorkPtr>& ended, Clock::time_point now) {
  for (auto arrival = arrivals_.begin(); arrival != arrivals_.end();) {
    if (arrival->arriving && test(arrival->request)) {
      arrival->arriving = false;
      --arriving_;
      const bool unwanted = arrival->key.tag == kNobody;
      if (unwanted || (arrival->work && failure_.empty() && deliver(*arrival, ended))) {
        arrival = arrivals_.erase(arrival);
        continue;
      }
    }
    if (arrival->arriving && arrival->work && now >= arrival->work->deadline) {
      arrival->work->error =
          late(*arrival->work, "the rest of a message of rank " + std::to_string(arrival->source));
      ended.push_back(std::move(arrival->work));
      arrival->work = {};
      arrival->key.tag = kNobody;  // what is left of it has to come, and goes
    }
    ++arrival;
  }
}

double Mailbox::oldest(Clock::time_point now) const {
  double oldest = 0;
  const auto look = [&](const WorkPtr& work) {
    if (work) oldest = std::max(oldest, work->age(now));
  };
  for (const auto& out : outgoing_) look(out.work);
  for (const auto& receipt : receipts_) look(receipt.work);
  for (const auto& arrival : arrivals_) look(arrival.work);
  return oldest;
}

void Mailbox::fail(const std::string& why, std::vector<WorkPtr>& ended) {
  if (failure_.empty()) failure_ = why;
  const auto end = [&](WorkPtr& work) {
    if (!work) return;
    work->error = std::string(work->call.title) + ": " + failure_;
    ended.push_back(std::move(work));
    work = {};
  };
  for (auto& out : outgoing_) end(out.work);
  for (auto& receipt : receipts_) end(receipt.work);
  for (auto& arrival : arrivals_) end(arrival.work);
  receipts_.clear();
}

void Mailbox::take_back() {
  const auto take = [](gdrxRequest_t& request) {
    if (request != nullptr) gdrxTest(&request);
  };
  for (auto& peer : peers_) take(peer.request);
  for (auto& out : outgoing_) {
    for (auto& request : out.requests) take(request);
  }
  for (auto& arrival : arrivals_) take(arrival.request);
  outgoing_.clear();
  arrivals_.clear();
  listening_ = 0;
  arriving_ = 0;
}

}  // namespace gdrx_torch

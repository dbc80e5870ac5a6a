// SPDX-License-Identifier: Apache-2.0
// Sends and receives that the GPUs of one host carry: those of a group are one kernel.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "collectives/comm/call.hpp"
#include "collectives/comm/operation.hpp"
#include "collectives/gpu/path.hpp"

namespace gdrx {

/// Whether a stream carries it, as both sides have to find alike: they give GPU memory and a
/// stream, or neither. Of a message without bytes the memory does not matter.
bool is_gpu_message(const Call& call, const Buffers& buffers = {});

/// A send or a receive of a group.
struct GroupMessage {
  Call call;
  bool waited = false;  // by the host: then it gets an operation
  std::shared_ptr<Operation> operation = nullptr;
};

/// What a rank sends to itself goes to its receives in their order: as many of both, or
/// Errc::invalid_argument. Errc::mismatch: two of them differ. Pure.
Result<gpu::Messages> messages_of(std::span<const Call* const> calls, Rank self);

/// For people: a message that the two sides do not call alike.
std::string told_of_messages(Rank from, Bytes sent, DataType type, Rank to, Bytes expected,
                             DataType of_type);

}  // namespace gdrx

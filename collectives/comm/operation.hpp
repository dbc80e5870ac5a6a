// SPDX-License-Identifier: Apache-2.0
// A posted call.
#pragma once

#include <chrono>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "collectives/comm/call.hpp"
#include "collectives/comm/ending.hpp"
#include "collectives/comm/staging.hpp"
#include "collectives/comm/tuner.hpp"
#include "collectives/exec/execution.hpp"
#include "collectives/exec/flows.hpp"
#include "collectives/gpu/path.hpp"
#include "gdrx/clock.hpp"
#include "gdrx/plan.hpp"

namespace gdrx {

/// What an operation was and what it cost: gdrxOpInfo_t.
struct OperationInfo {
  plan::Algorithm algorithm{};
  PathKind path{};
  double predicted_us = 0;  // by the tuner, of hosts the network's part; 0: none
  exec::Counters counters{};
  plan::Traffic planned{};
  Route route = Route::host;
  bool staged = false;      // GPU buffers went through the host
  bool registered = false;  // all buffers of the call were: nothing was copied to send it
};

/// What is about to be enqueued on the GPU: one kernel of a call, moves one after the other, or
/// the sends and receives of a group.
struct GpuLaunch {
  std::string_view kernel;  // a literal
  Bytes bytes = 0;
  plan::Algorithm algorithm = plan::Algorithm::one_shot;
  double predicted_us = 0;
  gpu::Work work = {};  // without what follows, as the next
  gpu::Shape shape = {};
  std::span<const gpu::Moves> moves = {};
  const gpu::Messages* messages = nullptr;
};

struct Operation;

/// The sends and receives of a group, on the pinned memory through which they are staged.
struct StagedMessages {
  std::vector<Call> calls;
  std::vector<std::shared_ptr<Operation>> waited;   // of requests, which end with all
  std::vector<std::shared_ptr<Operation>> running;  // as they run
  bool ended = false;                               // and the GPU takes what came
};

/// Shared by who runs it and its request.
struct Operation : std::enable_shared_from_this<Operation> {
  Operation(Call what, std::chrono::milliseconds most) : call(std::move(what)), timeout(most) {}
  /// Of what is its communicator's.
  void let_go() noexcept {
    execution.reset();
    staging.reset();
  }
  Call call;
  std::chrono::milliseconds timeout;           // from when it begins; 0: none
  std::unique_ptr<std::byte[]> scaled;         // the input of a premul_sum, if it needs memory
  std::unique_ptr<exec::Execution> execution;  // while it runs
  std::unique_ptr<gpu::Event> mark;            // behind a call that a GPU runs
  bool on_hosts = false;                       // GPUs and network run it, and a stream begins it
  bool staged = false;                         // on_hosts: by the host, on pinned memory
  std::unique_ptr<StagedMessages> messages;    // staged: a group; null: a collective
  bool begun = false;                          // on_hosts: the stream has come to it
  bool aside = false;                          // a thread of its own brings it to its end
  bool own = false;                            // the communicator's: nobody asks what it was
  std::unique_ptr<Staging> staging;            // null: nothing of it is GPU memory
  exec::Flow flow;                             // PointToPoint's, as the next
  std::list<std::shared_ptr<Operation>>::iterator place;
  OperationInfo info;
  Instant began{};  // meaningful with an execution, or of a send_recv that runs
  Deadline deadline = Deadline::never();
  std::optional<Error> error;  // published by its end
  Ending end;
  std::shared_ptr<Operation> next_ended;  // Endings'
};

}  // namespace gdrx

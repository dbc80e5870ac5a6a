// SPDX-License-Identifier: Apache-2.0
// A small call between the ranks of a host, from its beginning to its end in one go: without an
// operation, which takes memory, a place in the queue and a clock.
#include <algorithm>
#include <utility>

#include "collectives/comm/communicator.hpp"
#include "collectives/comm/parts.hpp"
#include "collectives/exec/one_block_execution.hpp"
#include "collectives/exec/parcel_execution.hpp"
#include "collectives/reduce/copy_few.hpp"
#include "transport/memory/surely_host.hpp"

namespace gdrx {
namespace {

using plan::Algorithm;

// Looks at the peers before the call becomes an operation: some microseconds where each rank has a
// core, for which nothing else is served.
constexpr int kLooksAlone = 1000;
constexpr int kLooksShared = 2;

Call call_of(const Asked& asked, const exec::BlockCall& block) {
  Call call;
  call.collective = asked.collective;
  call.type = static_cast<DataType>(asked.type);
  call.op = static_cast<ReduceOp>(asked.op);
  call.root = Rank{asked.root};
  call.input = block.input;
  call.output = block.output;
  call.count = asked.count;
  return call;
}

int looks_of(const Machine& machine) noexcept {
  return machine.share_cores() ? kLooksShared : kLooksAlone;
}

exec::Message message_of(const Call& call) noexcept {
  return {.peer = call.root,
          .type = call.type,
          .sends = call.sends,
          .count = call.count,
          .bytes = call.count * size_of(call.type),
          .from = call.input,
          .to = call.output};
}

}  // namespace

/// A thread that has the communicator for one small call. Whoever drives it for what is under way
/// gives way; then that goes on a step, as nobody else drives it while such calls are made.
class Communicator::Turn {
 public:
  explicit Turn(Communicator& comm) : lock_(comm.progress_lock_.mutex, std::try_to_lock) {
    if (!lock_.owns_lock() || !comm.idle()) {
      if (lock_.owns_lock()) lock_.unlock();
      driving_.emplace(comm);
      if (!comm.idle()) {
        const auto moved = comm.progress();
        if (!moved) return;
        comm.progress_lock_.pace.count(*moved);
      }
    }
    may_go_on_ = !comm.failure_.happened() && !comm.progress_lock_.suspicion.kept();
  }
  bool may_go_on() const noexcept { return may_go_on_; }

 private:
  std::unique_lock<std::mutex> lock_;
  std::optional<Driving> driving_;
  bool may_go_on_ = false;
};

Result<bool> Communicator::run_again(const Asked& asked, const std::byte* input,
                                     std::byte* output) {
  // Without a lock, as this may take the linker's.
  if (!has_quick() || !are_surely_host(input, output)) return false;
  std::shared_ptr<Operation> late;
  {
    const Turn turn(*this);
    if (!turn.may_go_on() || !is_quiet()) return false;
    const KnownCall* const known = choices_.calls.find(asked);
    if (known == nullptr || !known->bounds.are_there(input, output) ||
        !known->bounds.are_apart(input, output)) {
      return false;
    }
    const exec::BlockCall block{queue_.sequence.stage(), input, output};
    if (run_known(*known, block, nullptr, late)) return true;
  }
  if (!late) return false;
  GDRX_TRY(wait(*late));
  return true;
}

Result<void> Communicator::run(Call& call) {
  std::shared_ptr<Operation> late;
  if (call.collective == Collective::send_recv) {
    const Call* const one = &call;
    if (run_at_once({&one, 1}) == 1) return {};
  } else if (may_be_quick(call) && run_quickly(call, late)) {
    return {};
  }
  if (!late) late = GDRX_TRY(post(std::move(call)));
  return wait(*late);
}

// Whether any call may be.
bool Communicator::has_quick() const noexcept {
  return (memory_.seat || size() == 1) && !gpu_.path && !trace_.track();
}

// What needs nobody else's turn, no stream and no other memory.
bool Communicator::may_be_quick(const Call& call) const noexcept {
  const bool known =
      exec::has_one_block(call.collective) || call.collective == Collective::barrier ||
      call.collective == Collective::send_recv || exec::goes_by_parcels(call.collective, size());
  return known && has_quick() && call.stream == nullptr && !call.made &&
         are_surely_host(call.input, call.output);
}

bool Communicator::is_quiet() const noexcept {
  return !streams_.has_posted() && queue_.empty() && streams_.awaited.empty() && !streams_.messages;
}

// True: it has ended. Else `late` is what has become of it; null: nothing was begun.
bool Communicator::run_quickly(const Call& call, std::shared_ptr<Operation>& late) {
  const Turn turn(*this);
  if (!turn.may_go_on() || !is_quiet()) return false;
  if (exec::goes_by_parcels(call.collective, size())) return run_parcels(call, late);
  const std::optional<KnownCall> known = know(call);
  if (!known) return false;
  const std::vector<exec::Part>* const parts =
      plan::traits_of(call.collective).has_parts() ? &parts_alike(call) : nullptr;
  if (parts == nullptr) choices_.calls.keep(*known);
  return run_known(*known, {queue_.sequence.stage(), call.input, call.output, nullptr, parts},
                   &call, late);
}

// What was chosen for such a call, if it needs one block. Of parts: for this call alone.
std::optional<KnownCall> Communicator::know(const Call& call) {
  const Question question = choices_.question_of(call);
  const Ways::Way* const way = choices_.known(question);
  if (way == nullptr) return std::nullopt;
  KnownCall known{.asked = {call.collective, static_cast<int>(call.type), static_cast<int>(call.op),
                            index(call.root), call.count},
                  .bounds = bounds_of(call, rank_, size()),
                  .bytes = question.bytes,
                  .rooted = plan::traits_of(call.collective).rooted,
                  .signature = signature_of(call, way->chosen.algorithm)};
  known.info = {.algorithm = way->chosen.algorithm,
                .path = way->chosen.path,
                .predicted_us = way->chosen.predicted_us,
                .counters = {.slices = 1}};
  if (size() == 1) {
    if (!way->planned || question.bytes > choices_.machine.arena_block) return std::nullopt;
    known.info.planned = *way->planned;
    return known;
  }
  if (!is_one_block(question, way->chosen)) return std::nullopt;
  const bool has_parts = plan::traits_of(call.collective).has_parts();
  known.hop =
      exec::Hop(known.signature, has_parts ? &parts_alike(call) : nullptr, index(rank_), size());
  known.info.planned = known.hop.traffic;
  known.info.counters = known.hop.counters();
  return known;
}

// As run_quickly(). `call`: null where its buffers are all that it has.
bool Communicator::run_known(const KnownCall& known, const exec::BlockCall& block, const Call* call,
                             std::shared_ptr<Operation>& late) {
  if (network_.registrations().size() > 0 &&
      network_.registrations().find({block.input, known.bytes}) != nullptr) {
    return false;  // an operation says whether all of its buffers are
  }
  if (size() == 1) {
    queue_.sequence.skip();
    if (block.output != block.input) reduce::copy_few(block.output, block.input, known.bytes);
    end_quickly(known.info);
    return true;
  }
  memory_.seat->begin(queue_.sequence.begin(known.signature), known.rooted);
  exec::OneBlock running(*memory_.seat, known.hop, block);
  if (running.run(looks_of(choices_.machine))) {
    queue_.sequence.end_stage(running.end_stage());
    end_quickly(known.info);
    return true;
  }
  auto execution = std::make_unique<exec::OneBlockExecution>(running, nullptr);
  late = operation_of(call != nullptr ? *call : call_of(known.asked, block));
  late->execution = std::move(execution);
  late->info = known.info;
  late->info.counters = {};
  begin(*late);
  queue_.push(late);
  return false;
}

std::size_t Communicator::run_at_once(std::span<const Call* const> messages) {
  const auto may_be = [this](const Call* call) { return may_be_quick(*call); };
  if (!pairs_ || !std::all_of(messages.begin(), messages.end(), may_be)) return 0;
  const Turn turn(*this);
  if (!turn.may_go_on()) return 0;
  const int looks = looks_of(choices_.machine);
  std::size_t done = 0;
  for (const Call* call : messages) {
    if (!pairs_->flows().run_now(message_of(*call), looks)) break;
    ++done;
    end_quickly({.path = PathKind::shm,
                 .counters = call->sends ? exec::Counters{1, 1, 0} : exec::Counters{1, 0, 1}});
  }
  return done;
}

// As run_quickly(). Other ranks may send messages: then it becomes an operation.
bool Communicator::run_parcels(const Call& call, std::shared_ptr<Operation>& late) {
  if (network_.registrations().size() > 0)
    return false;  // an operation says whether its buffers are
  exec::Parcels parcels(*memory_.seat, begin_exchange(call), queue_.sequence.stage());
  const int most = looks_of(choices_.machine);
  for (int looks = parcels.by_messages() ? most : 0; looks < most; ++looks) {
    if (!parcels.ready()) continue;
    if (!parcels.all_here()) break;
    parcels.end();
    queue_.sequence.end_stage(parcels.end_stage());
    end_quickly({.algorithm = Algorithm::one_shot,
                 .path = PathKind::shm,
                 .counters = parcels.counters(),
                 .planned = parcels.traffic()});
    return true;
  }
  late = operation_of(call);
  // Others may send messages.
  late->info = {
      .algorithm = Algorithm::one_shot, .path = PathKind::fabric, .planned = parcels.traffic()};
  begin(*late);
  queue_.push(late);
  auto execution = exec::ParcelExecution::create(parcels, &pairs_->exchange());
  if (execution) {
    late->execution = std::move(*execution);
  } else {
    fail_by(std::move(execution).error());
  }
  return false;
}

void Communicator::end_quickly(const OperationInfo& info) noexcept {
  last_.was_host(info);
  progress_lock_.pace.stir();
}

}  // namespace gdrx

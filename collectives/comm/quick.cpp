// SPDX-License-Identifier: Apache-2.0
// A small call between the ranks of a host, from its beginning to its end in one go: without an
// operation, which takes memory, a place in the queue and a clock.
#include <utility>

#include "collectives/comm/communicator.hpp"
#include "collectives/exec/one_block_execution.hpp"
#include "collectives/exec/parcel_execution.hpp"
#include "transport/memory/cuda_memory.hpp"

namespace gdrx {
namespace {

using plan::Algorithm;

// Looks at the peers before the call becomes an operation: some microseconds where each rank has a
// core, for which nothing else is served.
constexpr int kLooksAlone = 1000;
constexpr int kLooksShared = 2;

void set_way(OperationInfo& info, const Candidate& chosen, const plan::Traffic& planned) {
  info.algorithm = chosen.algorithm;
  info.path = chosen.path;
  info.predicted_us = chosen.predicted_us;
  info.planned = planned;
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
  explicit Turn(Communicator& comm) : lock_(comm.driver_.mutex, std::try_to_lock) {
    if (!lock_.owns_lock() || !comm.idle()) {
      if (lock_.owns_lock()) lock_.unlock();
      driving_.emplace(comm);
      if (!comm.idle()) {
        const auto moved = comm.progress();
        if (!moved) return;
        comm.driver_.pace.count(*moved);
      }
    }
    may_go_on_ = !comm.failure_.happened() && !comm.driver_.suspicion.kept();
  }
  bool may_go_on() const noexcept { return may_go_on_; }

 private:
  std::unique_lock<std::mutex> lock_;
  std::optional<Driving> driving_;
  bool may_go_on_ = false;
};

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

// What needs nobody else's turn, no stream and no other memory.
bool Communicator::may_be_quick(const Call& call) const noexcept {
  const bool known =
      exec::has_one_block(call.collective) || call.collective == Collective::barrier ||
      call.collective == Collective::send_recv || exec::goes_by_parcels(call.collective, size());
  return known && (memory_.seat || size() == 1) && call.stream == nullptr && !call.made &&
         !gpu_.path && !trace_.track() && !cuda::is_loaded();
}

// True: it has ended. Else `late` is what has become of it; null: nothing was begun.
bool Communicator::run_quickly(const Call& call, std::shared_ptr<Operation>& late) {
  const Turn turn(*this);
  if (!turn.may_go_on() || streams_.has_posted() || !queue_.empty() || !streams_.awaited.empty() ||
      streams_.messages) {
    return false;
  }
  if (exec::goes_by_parcels(call.collective, size())) return run_parcels(call, late);
  const Question question = choices_.question_of(call);
  const Bytes bytes = question.bytes;
  if (network_.registrations().size() > 0 &&
      network_.registrations().find({call.input, bytes}) != nullptr) {
    return false;  // an operation says whether all of its buffers are
  }
  const Ways::Way* const way = choices_.known(question);
  if (way == nullptr) return false;
  if (size() == 1) {
    if (!way->planned || bytes > choices_.machine.arena_block) return false;
    queue_.sequence.skip();
    if (call.output != call.input) reduce::copy(call.output, call.input, bytes);
    set_way(last_.host(), way->chosen, *way->planned);
    end_quickly({.slices = 1});
    return true;
  }
  if (!is_one_block(question, way->chosen)) return false;
  const Candidate chosen = way->chosen;
  begin_word(call, chosen.algorithm);
  exec::OneBlock block(*memory_.seat, arena_call(call));
  const int most = looks_of(choices_.machine);
  for (int looks = 0; looks < most; ++looks) {
    if (!block.ready()) continue;
    if (!block.agrees()) break;  // an operation says how
    block.end();
    queue_.sequence.end_stage(block.end_stage());
    set_way(last_.host(), chosen, block.traffic());
    end_quickly(block.counters());
    return true;
  }
  auto execution = std::make_unique<exec::OneBlockExecution>(block, nullptr);
  late = operation_of(call);
  late->execution = std::move(execution);
  set_way(late->info, chosen, block.traffic());
  begin(*late);
  queue_.push(late);
  return false;
}

std::size_t Communicator::run_at_once(std::span<const Call* const> messages) {
  if (!pairs_ || !may_be_quick(*messages.front())) return 0;
  const Turn turn(*this);
  if (!turn.may_go_on()) return 0;
  const int looks = looks_of(choices_.machine);
  std::size_t done = 0;
  for (const Call* call : messages) {
    if (!pairs_->flows().run_now(message_of(*call), looks)) break;
    ++done;
    set_way(last_.host(), {Algorithm{}, PathKind::shm, 0}, {});
    end_quickly(call->sends ? exec::Counters{1, 1, 0} : exec::Counters{1, 0, 1});
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
    set_way(last_.host(), {Algorithm::one_shot, PathKind::shm, 0}, parcels.traffic());
    end_quickly(parcels.counters());
    return true;
  }
  late = operation_of(call);
  // Others may send messages.
  set_way(late->info, {Algorithm::one_shot, PathKind::fabric, 0}, parcels.traffic());
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

void Communicator::end_quickly(const exec::Counters& counters) noexcept {
  OperationInfo& info = last_.host();
  info.counters = counters;
  info.route = Route::host;
  info.staged = info.registered = false;
  last_.was_host();
  driver_.pace.stir();
}

}  // namespace gdrx

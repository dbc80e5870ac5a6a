// SPDX-License-Identifier: Apache-2.0
#include "collectives/exec/plan_execution.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gdrx::exec {
namespace {

// Below this a chunk is one message: cutting it further costs more than the overlap brings.
constexpr std::uint64_t kUncutBytes = 32 * 1024;
// A chunk is cut so that every lane has about this many slices to pipeline.
constexpr std::uint64_t kSlicesALane = 2;

}  // namespace

Result<std::unique_ptr<PlanExecution>> PlanExecution::create(PlanCall call, Links& links) {
  auto execution = std::unique_ptr<PlanExecution>(new PlanExecution(std::move(call), links));
  GDRX_TRY(execution->prepare());
  return execution;
}

void PlanExecution::choose_slices() {
  const RingShape& shape = links_.shape();
  std::uint64_t longest = 1;
  for (const Binding& buffer : call_.buffers) {
    longest = std::max(longest, buffer.partition.longest());
  }
  const auto channels = static_cast<std::uint64_t>(call_.program->channels.size());
  const std::uint64_t window = std::max<std::uint64_t>(1, shape.window / channels);
  const std::uint64_t bytes = longest * call_.element;
  const std::uint64_t wanted =
      std::clamp(bytes / (window * kSlicesALane), kUncutBytes, std::max(kUncutBytes, shape.slice));
  per_slice_ = std::max<std::uint64_t>(1, std::min(wanted, shape.slice) / call_.element);
  instances_ = (longest + per_slice_ - 1) / per_slice_;
  lane_step_ = std::min(window, instances_);
  counters_.slices = instances_;
  // A range of chunks is one run of memory only while nothing is cut, and must fit into a slot.
  const std::uint64_t widest = call_.program->widest_range * bytes;
  if (call_.program->by_chunk && (instances_ > 1 || widest > shape.slice)) {
    call_.program = call_.program->by_chunk;
  }
}

// Looked up once a call: what is found stays registered until the execution is gone.
Result<void> PlanExecution::find_memory() {
  for (Binding& buffer : call_.buffers) {
    const std::size_t bytes = buffer.partition.extent() * call_.element;
    if (buffer.base != nullptr && bytes > 0)
      buffer.registration = links_.registered({buffer.base, bytes});
  }
  scratch_bytes_ = call_.program->scratch_chunks * per_slice_ * call_.element;
  const std::size_t lanes = call_.program->channels.size() * lane_step_;
  if (scratch_bytes_ > 0) scratch_ = GDRX_TRY(links_.scratch(lanes * scratch_bytes_));
  return {};
}

bool PlanExecution::registered() const noexcept {
  return std::all_of(call_.buffers.begin(), call_.buffers.end(), [](const Binding& buffer) {
    return buffer.base == nullptr || buffer.partition.extent() == 0 || buffer.registration;
  });
}

Result<void> PlanExecution::prepare() {
  choose_slices();
  GDRX_TRY(find_memory());
  const Program& program = *call_.program;
  if (program.channels.size() > links_.shape().first_flow_lane()) {
    return fail(Errc::internal,
                fmt::format("the plan has {} channels and the communicator {} lanes",
                            program.channels.size(), links_.shape().first_flow_lane()));
  }
  send_rings_.assign(links_.shape().ranks, nullptr);
  for (std::uint32_t channel = 0; channel < program.channels.size(); ++channel) {
    for (const Instruction& instruction : program.channels[channel].code) {
      if (instruction.kind != Instruction::Kind::send) continue;
      SendRing*& send_ring = send_rings_[static_cast<std::size_t>(index(instruction.peer))];
      if (send_ring == nullptr) send_ring = GDRX_TRY(links_.to(instruction.peer));
    }
    for (const Source& source : program.channels[channel].sources) {
      if (source.local) continue;  // a credit goes back to whom we receive from
      SendRing*& send_ring = send_rings_[static_cast<std::size_t>(index(source.peer))];
      if (send_ring == nullptr) send_ring = GDRX_TRY(links_.to(source.peer));
    }
    for (std::uint64_t i = 0; i < lane_step_; ++i) {
      Lane lane;
      lane.number = static_cast<std::uint32_t>(channel * lane_step_ + i);
      lane.channel = channel;
      lane.instance = i;
      lane.scratch = lanes_.size() * scratch_bytes_;
      lanes_.push_back(lane);
    }
  }
  if (call_.track != nullptr) {
    for (std::uint32_t i = 0; i < lanes_.size(); ++i) {
      marks_.emplace_back(*call_.track, trace::lane_row(i));
    }
  }
  operands_.resize(program.widest_gather);
  credits_.make_room(lanes_.size() * send_rings_.size());
  return {};
}

Range PlanExecution::range_of(const Lane& lane, plan::ChunkRef chunk) const noexcept {
  if (chunk.buffer == plan::Buffer::scratch) {
    return call_.buffers[0].partition.slice(chunk.like, lane.instance, per_slice_);
  }
  const Binding& buffer = call_.buffers[static_cast<std::size_t>(chunk.buffer)];
  if (chunk.count > 1) return buffer.partition.chunks_from(chunk.chunk, chunk.count);
  return buffer.partition.slice(chunk.chunk, lane.instance, per_slice_);
}

std::byte* PlanExecution::address(const Lane& lane, plan::ChunkRef chunk) const noexcept {
  if (chunk.buffer == plan::Buffer::scratch) {
    return scratch_.bytes.data() + lane.scratch + chunk.chunk * per_slice_ * call_.element;
  }
  const auto buffer = static_cast<std::size_t>(chunk.buffer);
  return call_.buffers[buffer].base + range_of(lane, chunk).begin * call_.element;
}

const MemoryRegion* PlanExecution::region_of(plan::ChunkRef chunk) const noexcept {
  const RegistrationRef& found =
      chunk.buffer == plan::Buffer::scratch
          ? scratch_.registration
          : call_.buffers[static_cast<std::size_t>(chunk.buffer)].registration;
  return found != nullptr ? found->region() : nullptr;
}

MessageHeader PlanExecution::header_for(const Lane& lane, plan::ChunkRef chunk, std::uint32_t index,
                                        Rank source) const noexcept {
  MessageHeader header;
  header.signature = call_.signature;
  header.instance = static_cast<std::uint32_t>(lane.instance);
  header.index = index;
  header.bytes = static_cast<std::uint32_t>(range_of(lane, chunk).count * call_.element);
  header.source = gdrx::index(source);
  return header;
}

Result<Step> PlanExecution::step() {
  if (credits_.owes()) GDRX_TRY(credits_.pay());
  bool advanced = false;
  bool done = true;
  for (Lane& lane : lanes_) {
    if (lane.done) continue;
    if (GDRX_TRY(run(lane))) advanced = true;
    done = done && lane.done;
  }
  if (done && !credits_.owes()) return Step::done;
  return advanced ? Step::advanced : Step::idle;
}

Result<bool> PlanExecution::run(Lane& lane) {
  bool advanced = false;
  const std::vector<Instruction>& code = call_.program->channels[lane.channel].code;
  while (!lane.done) {
    if (auto* row = marks(lane); row != nullptr && !row->has_chunk()) {
      row->begin_chunk("chunk", lane.instance, per_slice_ * call_.element);
    }
    if (lane.pc == code.size()) {
      if (!end_of_instance(lane)) break;
    } else {
      if (!GDRX_TRY(execute(lane, code[lane.pc]))) break;
      ++lane.pc;
    }
    advanced = true;
  }
  return advanced;
}

bool PlanExecution::end_of_instance(Lane& lane) {
  const bool last = lane.instance + lane_step_ >= instances_;
  // The scratch belongs to the next instance now, and the caller's buffers to him after the last.
  if ((last || scratch_bytes_ > 0) && lane.unfinished_writes > 0) {
    return waits(lane, "wait for own writes", Rank{trace::kNobody});
  }
  if (auto* row = marks(lane)) row->end_chunk();
  if (last) {
    lane.done = true;
  } else {
    lane.instance += lane_step_;
    lane.pc = 0;
  }
  return true;
}

Result<bool> PlanExecution::execute(Lane& lane, const Instruction& instruction) {
  switch (instruction.kind) {
    case Instruction::Kind::send:
      return send(lane, instruction);
    case Instruction::Kind::gather:
      return gather(lane, instruction);
    // Waiting for all of the lane's writes is more than asked for, and as good: a write completes
    // without any further step of this program.
    case Instruction::Kind::wait:
      if (lane.unfinished_writes > 0)
        return waits(lane, "wait for own writes", Rank{trace::kNobody});
      if (auto* row = marks(lane)) row->goes_on();
      return true;
  }
  return fail(Errc::internal, "an instruction of no kind");
}

// Nothing can be done on the lane: false, for the caller to return.
bool PlanExecution::waits(const Lane& lane, std::string_view what, Rank peer) noexcept {
  if (auto* row = marks(lane)) {
    row->waits(what, gdrx::index(peer), per_slice_ * call_.element);
  }
  return false;
}

Result<bool> PlanExecution::send(Lane& lane, const Instruction& instruction) {
  const MessageHeader header =
      header_for(lane, instruction.chunk, instruction.index, links_.self());
  SendRing& send_ring = *send_rings_[static_cast<std::size_t>(index(instruction.peer))];
  const auto cookie = static_cast<std::uint64_t>(&lane - lanes_.data());
  const Progress sent = GDRX_TRY(send_ring.send(
      lane.number, links_.receive_ring().credit(instruction.peer, lane.number), header,
      {address(lane, instruction.chunk), header.bytes}, region_of(instruction.chunk), cookie));
  if (sent == Progress::pending) return waits(lane, "wait for room at", instruction.peer);
  if (auto* row = marks(lane)) {
    row->goes_on();
    row->step("send to", {header.bytes, index(instruction.peer), instruction.index, {}});
  }
  ++lane.unfinished_writes;
  ++counters_.sent;
  return true;
}

Result<const std::byte*> PlanExecution::message(Lane& lane, const Source& source,
                                                const Instruction& into) {
  const MessageHeader* header = links_.receive_ring().head(source.peer, lane.number);
  if (header == nullptr) return nullptr;
  GDRX_TRY(check_message(*header, source.peer,
                         header_for(lane, into.chunk, source.index, source.peer), links_.self()));
  return ReceiveRing::payload(header);
}

Result<bool> PlanExecution::gather(Lane& lane, const Instruction& instruction) {
  const std::span<const Source> sources =
      std::span(call_.program->channels[lane.channel].sources)
          .subspan(instruction.first_source, instruction.source_count);
  for (std::size_t i = 0; i < sources.size(); ++i) {
    if (sources[i].local) {
      operands_[i] = address(lane, sources[i].chunk);
      continue;
    }
    const std::byte* payload = GDRX_TRY(message(lane, sources[i], instruction));
    if (payload == nullptr) return waits(lane, "wait for", sources[i].peer);
    operands_[i] = payload;
  }
  if (auto* row = marks(lane)) row->goes_on();
  combine(lane, instruction, std::span(operands_).first(sources.size()));
  for (const Source& source : sources) {
    if (source.local) continue;
    SendRing& send_ring = *send_rings_[static_cast<std::size_t>(index(source.peer))];
    const std::uint64_t consumed = links_.receive_ring().consume(source.peer, lane.number);
    GDRX_TRY(credits_.give_back(send_ring, lane.number, consumed));
    ++counters_.received;
  }
  return true;
}

void PlanExecution::combine(Lane& lane, const Instruction& instruction,
                            std::span<const void* const> operands) {
  std::byte* target = address(lane, instruction.chunk);
  const std::uint64_t count = range_of(lane, instruction.chunk).count;
  const CallSignature& signature = call_.signature;
  const int finish = instruction.finish && signature.op == ReduceOp::avg ? call_.finish_over : 0;
  trace::Span step;
  if (auto* row = marks(lane)) {
    step = row->step(operands.size() > 1 ? "reduce" : "copy",
                     {count * call_.element, trace::kNobody, instruction.chunk.chunk, {}});
  }
  if (operands.size() > 1 && call_.user != nullptr) {
    reduce::reduce_by(*call_.user, target, operands, count, signature.type);
  } else if (operands.size() > 1 || finish > 0) {
    reduce::reduce(target, operands, count, signature.type, signature.op, finish);
  } else if (operands[0] != target) {
    reduce::copy(target, operands[0], count * call_.element);
  }
}

// Over all lanes. Who lacks a message to pass on does not wait for its receiver.
std::vector<Rank> PlanExecution::awaited() const {
  std::vector<Rank> ranks;
  for (const Lane& lane : lanes_) {
    const ChannelProgram& program = call_.program->channels[lane.channel];
    if (lane.done || lane.pc >= program.code.size()) continue;
    const Instruction& instruction = program.code[lane.pc];
    const std::size_t before = ranks.size();
    for (std::uint32_t i = 0; i < instruction.source_count; ++i) {
      const Source& source = program.sources[instruction.first_source + i];
      if (source.local || links_.receive_ring().head(source.peer, lane.number) != nullptr) continue;
      ranks.push_back(source.peer);
    }
    const bool has_all = ranks.size() == before;
    if (has_all && instruction.kind == Instruction::Kind::send) ranks.push_back(instruction.peer);
  }
  return ranks;
}

std::string PlanExecution::waiting_for() const {
  for (const Lane& lane : lanes_) {
    const ChannelProgram& program = call_.program->channels[lane.channel];
    if (lane.done || lane.pc >= program.code.size()) continue;
    const Instruction& instruction = program.code[lane.pc];
    if (instruction.kind == Instruction::Kind::send) {
      return fmt::format("rank {} to take message {} of slice {}", index(instruction.peer),
                         instruction.index, lane.instance);
    }
    for (std::uint32_t i = 0; i < instruction.source_count; ++i) {
      const Source& source = program.sources[instruction.first_source + i];
      if (source.local || links_.receive_ring().head(source.peer, lane.number) != nullptr) continue;
      return fmt::format("message {} of slice {} from rank {}", source.index, lane.instance,
                         index(source.peer));
    }
  }
  return "this rank's own writes to complete";
}

void PlanExecution::on_write_done(std::uint64_t cookie) noexcept {
  if (cookie < lanes_.size()) --lanes_[cookie].unfinished_writes;
}

}  // namespace gdrx::exec

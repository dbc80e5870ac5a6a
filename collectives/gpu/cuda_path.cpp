// SPDX-License-Identifier: Apache-2.0
#include "collectives/gpu/cuda_path.hpp"

#include <fmt/format.h>
#include <sys/random.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <new>

#include "collectives/gpu/capture.hpp"
#include "collectives/gpu/cuda_timer.hpp"
#include "collectives/gpu/error.hpp"
#include "collectives/gpu/exportable_memory.hpp"
#include "collectives/gpu/kernel_report.hpp"
#include "collectives/gpu/lowering.hpp"
#include "collectives/gpu/on_device.hpp"
#include "collectives/gpu/preload.hpp"
#include "collectives/gpu/signature.hpp"
#include "collectives/gpu/stream_event.hpp"
#include "collectives/kernels/copy.hpp"
#include "collectives/kernels/launch.hpp"

namespace gdrx::gpu {
namespace {

// Process ids repeat between containers; this does not.
std::uint64_t process_id() {
  static const std::uint64_t id = [] {
    std::uint64_t value = 0;
    while (value == 0 && getrandom(&value, sizeof value, 0) != sizeof value) {
    }
    return value;
  }();
  return id;
}

class OwnedMemory final : public Memory {
 public:
  explicit OwnedMemory(std::shared_ptr<const ExportableMemory> memory)
      : memory_(std::move(memory)) {}
  std::byte* data() const noexcept override { return memory_->data(); }

 private:
  std::shared_ptr<const ExportableMemory> memory_;
};

constexpr std::string_view kStages[] = {
    "entering the call", "reducing", "gathering results", "leaving the call",
    "comparing buffers", "sending",  "receiving"};

}  // namespace

Result<std::unique_ptr<Path>> CudaPath::create(int device, std::uint64_t timeout_ns) {
  int devices = 0;
  GDRX_TRY(check(cudaGetDeviceCount(&devices), "cudaGetDeviceCount"));
  if (device < 0 || device >= devices) {
    return fail(Errc::invalid_argument,
                fmt::format("GPU {} is none of the {} that this process sees", device, devices));
  }
  std::unique_ptr<CudaPath> path(new CudaPath);
  path->device_ = device;
  path->wait_ = GDRX_TRY(DeviceWait::create(device));
  path->held_ = std::make_unique<Held>(device);
  const OnDevice here(device);
  const AnyCapture beside;
  cudaDeviceProp properties{};
  GDRX_TRY(check(cudaGetDeviceProperties(&properties, path->device_), "cudaGetDeviceProperties"));
  path->gpu_.name = properties.name;
  path->gpu_.pci_folder =
      fmt::format("/sys/bus/pci/devices/{:04x}:{:02x}:{:02x}.0", properties.pciDomainID,
                  properties.pciBusID, properties.pciDeviceID);
  GDRX_TRY(load_kernels());
  path->held_->own = GDRX_TRY(OwnArena::borrow());
  path->held_->shared = GDRX_TRY(PooledMemory::borrow_pinned(sizeof(Flags) + sizeof(Report)));
  path->held_->flags = new (path->held_->shared.data()) Flags{};
  path->held_->report = new (path->held_->flags + 1) Report{};
  GDRX_TRY(check(cudaEventCreateWithFlags(&path->held_->order, cudaEventDisableTiming),
                 "cudaEventCreate"));
  GDRX_TRY(check(cudaEventCreateWithFlags(&path->held_->staged, cudaEventDisableTiming),
                 "cudaEventCreate"));
  GDRX_TRY(check(cudaEventCreateWithFlags(&path->held_->never, cudaEventDisableTiming),
                 "cudaEventCreate"));
  // Not when it is first needed: a kernel of another rank in this process may be waiting then.
  GDRX_TRY(check(cudaStreamCreateWithFlags(&path->held_->own_stream, cudaStreamNonBlocking),
                 "cudaStreamCreate"));
  Ticket& ticket = path->ticket_;
  ticket.process = process_id();
  ticket.pointer = reinterpret_cast<std::uintptr_t>(path->held_->own->data());
  ticket.lease = path->held_->own->lease();
  static_assert(sizeof(cudaIpcMemHandle_t) == sizeof ticket.handle);
  std::memcpy(ticket.handle.data(), &path->held_->own->handle(), sizeof ticket.handle);
  std::memcpy(ticket.device.data(), properties.uuid.bytes, sizeof ticket.device);
  ticket.processors = properties.multiProcessorCount;
  const PeerProcess self = this_process();
  ticket.pid = self.pid;
  ticket.names = self.names;
  ticket.bus = bus_place(properties.pciDomainID, properties.pciBusID, properties.pciDeviceID);
  path->call_.report = path->held_->report;
  path->call_.timeout_ns = path->timeout_ns_ = timeout_ns;
  return path;
}

Result<void> CudaPath::connect(std::span<const Ticket> tickets, Rank self) {
  const OnDevice here(device_);
  const AnyCapture beside;
  call_.rank = held_->peers.front().self = index(self);
  call_.owner = held_->guard().owner;
  call_.ranks = static_cast<std::int32_t>(tickets.size());
  const std::vector<std::int32_t> positions = positions_of(tickets);
  call_.ring = GDRX_TRY(ring_place(positions, self));
  for (int tree = 0; tree < 2; ++tree) {
    call_.trees[tree] = GDRX_TRY(tree_place(positions, self, tree));
  }
  sharing_ =
      static_cast<int>(std::count_if(tickets.begin(), tickets.end(), [&](const Ticket& ticket) {
        return ticket.device == ticket_.device;
      }));
  std::vector<std::uint64_t> processes;
  for (const Ticket& ticket : tickets) processes.push_back(ticket.process);
  held_->windows.connect(std::move(processes), process_id(), call_.rank);
  for (std::size_t rank = 0; rank < tickets.size(); ++rank) {
    const Ticket& ticket = tickets[rank];
    if (static_cast<std::int32_t>(rank) == call_.rank) {
      call_.arena[rank] = held_->own->data();
      continue;
    }
    held_->processes.push_back({ticket.pid, ticket.names, static_cast<int>(rank)});
    std::unique_ptr<PeerArena> arena;
    if (ticket.process == process_id()) {
      arena =
          GDRX_TRY(PeerArena::reach(reinterpret_cast<std::uint8_t*>(ticket.pointer), ticket.lease));
    } else {
      cudaIpcMemHandle_t handle{};
      std::memcpy(&handle, ticket.handle.data(), sizeof handle);
      arena = GDRX_TRY(PeerArena::open(handle, ticket.lease));
    }
    call_.arena[rank] = arena->data();
    held_->peers.front().all.push_back(std::move(arena));
  }
  join_gpu(tickets);
  return {};
}

std::uint64_t CudaPath::timeout_of(
    const std::optional<std::chrono::milliseconds>& timeout) const noexcept {
  if (!timeout) return timeout_ns_;
  return static_cast<std::uint64_t>(std::chrono::nanoseconds(*timeout).count());
}

// Kernels of one arena must not overlap: a stream waits for the one that was used before it. What
// is captured is ordered inside its graph alone; whoever launches the graph orders it. A capture
// between two calls that are not captured changes nothing between these.
Result<CudaPath::Last*> CudaPath::follow(cudaStream_t stream, unsigned long long capture) {
  if (const Last* ahead = GDRX_TRY(ahead_of(stream, capture))) {
    GDRX_TRY(
        check(cudaEventRecord(held_->order, ahead->stream), "cudaEventRecord on the last stream"));
    GDRX_TRY(check(cudaStreamWaitEvent(stream, held_->order, 0), "cudaStreamWaitEvent"));
  }
  if (capture != 0) GDRX_TRY(watch(stream, capture));
  Last& last = capture == 0 ? eager_ : captured_;
  if (!last.launched || last.stream != stream || last.capture != capture) {
    last = {stream, capture, true, EarlyStarts(sharing_, ticket_.processors), {}};
  }
  if (capture == 0) ++launches_;
  return &last;
}

Result<CudaPath::Last*> CudaPath::follow(cudaStream_t stream) {
  return follow(stream, GDRX_TRY(capture_of(stream)));
}

// A stream of ours that is in a capture and does nothing tells when that ends, and is no node of
// the graph (seen on an H100). The user's may be gone by then: to ask that would end the process.
// One capture is watched; of two, a graph may have come.
Result<void> CudaPath::watch(cudaStream_t stream, unsigned long long capture) {
  if (captured_.launched && captured_.capture == capture) return {};
  if (captured_.launched) whole_device_ = true;
  if (whole_device_) return {};
  const AnyCapture beside;
  if (held_->watch == nullptr) {
    GDRX_TRY(
        check(cudaStreamCreateWithFlags(&held_->watch, cudaStreamNonBlocking), "cudaStreamCreate"));
  }
  GDRX_TRY(check(cudaEventRecord(held_->order, stream), "cudaEventRecord in a capture"));
  return check(cudaStreamWaitEvent(held_->watch, held_->order, 0), "cudaStreamWaitEvent");
}

// Before its capture has ended there is no graph.
bool CudaPath::has_graphs() const noexcept {
  if (!captured_.launched) return false;
  const OnDevice here(device_);
  auto status = cudaStreamCaptureStatusNone;
  if (cudaStreamGetCaptureInfo(held_->watch, &status) != cudaSuccess) {
    cudaGetLastError();  // not the user's next call's
  }
  return status == cudaStreamCaptureStatusNone;
}

Result<const CudaPath::Last*> CudaPath::ahead_of(cudaStream_t stream,
                                                 unsigned long long capture) const {
  const Last& last = capture == 0 ? eager_ : captured_;
  if (!last.launched || stream == last.stream || capture != last.capture) return nullptr;
  if (GDRX_TRY(capture_of(last.stream)) == capture) return &last;
  return fail(Errc::unsupported,
              "the stream of the call before is being captured: end its capture first");
}

Result<void> CudaPath::check_launch(void* to) const {
  const OnDevice here(device_);
  auto* const stream = static_cast<cudaStream_t>(to);
  GDRX_TRY(ahead_of(stream, GDRX_TRY(capture_of(stream))));
  return {};
}

// Of one rank. Large ones by the copy engine: it leaves the multiprocessors alone. But not those of
// a graph: it would write to memory that the network had, after the communicator's end, too.
Result<void> CudaPath::copy(const void* input, void* output, std::uint64_t bytes,
                            const Last& place) {
  if (input == output || bytes == 0) return {};
  const bool captured = place.capture != 0;
  if (!captured && !is_small_copy(output, input, bytes)) {
    return check(cudaMemcpyAsync(output, input, bytes, cudaMemcpyDefault, place.stream),
                 "cudaMemcpyAsync");
  }
  const Guard guard = captured ? held_->guard() : Guard{};
  return check(launch_copy(output, input, bytes, guard, place.stream), "kernel launch");
}

Result<void> CudaPath::launch(const Work& what, const Shape& shape, void* stream) {
  if (what.bytes == 0) return {};
  const bool blocks = shape.kernel == Kernel::reduce_scatter || shape.kernel == Kernel::all_gather;
  if (!fits(shape, call_.ranks, packs_of(blocks ? what.block : what.bytes))) {
    return fail(Errc::internal, fmt::format("a kernel of {} x {} threads does not fit {} bytes",
                                            shape.blocks, shape.threads, what.bytes));
  }
  if (shape.kernel == Kernel::direct &&
      !held_->windows.fill(call_, what.input, what.output, what.bytes)) {
    return fail(Errc::internal, "a direct call's buffers are not registered");
  }
  const OnDevice here(device_);
  Last* const last = GDRX_TRY(follow(static_cast<cudaStream_t>(stream)));
  const bool divides = what.op == ReduceOp::avg && what.finish;
  if (call_.ranks == 1) {
    return copy(what.input, what.output, what.bytes, *last);
  }
  call_.op = static_cast<std::int32_t>(what.op);
  call_.finish_over = divides ? call_.ranks : 0;
  call_.type = static_cast<std::int32_t>(what.type);
  // What is read for a barrier is of no meaning.
  call_.input = what.input != nullptr ? what.input : held_->own->data();
  call_.output = what.output;
  call_.bytes = what.bytes;
  call_.block = what.block;
  call_.timeout_ns = timeout_of(what.timeout);
  const Run stores = what.stores.value_or(Run{0, what.bytes});
  call_.before = stores.at;
  call_.behind = what.bytes - stores.at - stores.bytes;
  call_.first = packs_of(stores.at);
  call_.signature =
      signature_of(call_, shape, shape.kernel == Kernel::direct ? call_.place : what.parts,
                   what.collective, what.root);
  call_.op = static_cast<std::int32_t>(added_by(what.op));
  const Taken taken = take_share(shape.blocks, 1, *last);
  if (taken.blocks < shape.blocks) {
    return check(launch_in_turns(call_, shape, taken.blocks, last->stream), "kernel launch");
  }
  Shape placed = shape;
  placed.early = !taken.crowded && last->starts.next(shape);
  const Launch launch = launch_of(call_);
  return check(launch(call_, placed, static_cast<cudaStream_t>(stream)), "kernel launch");
}

Result<bool> CudaPath::is_captured(void* stream) const {
  const OnDevice here(device_);
  return GDRX_TRY(capture_of(static_cast<cudaStream_t>(stream))) != 0;
}

Result<void> CudaPath::check_mark(void* stream) const {
  if (!GDRX_TRY(is_captured(stream))) return {};
  return fail(Errc::unsupported,
              "a request cannot be waited for while its stream is captured: "
              "pass NULL for the request");
}

Result<std::unique_ptr<Event>> CudaPath::mark(void* stream) {
  GDRX_TRY(check_mark(stream));
  const OnDevice here(device_);
  auto* const behind = static_cast<cudaStream_t>(stream);
  const bool last = eager_.launched && behind == eager_.stream;
  return StreamEvent::create(behind, device_, last ? launches_ : 0, ended_);
}

Result<void> CudaPath::synchronize(void* stream) {
  const OnDevice here(device_);
  return check(cudaStreamSynchronize(static_cast<cudaStream_t>(stream)), "cudaStreamSynchronize");
}

// What maps memory is refused while this thread captures, and would leave the ranks divided. The
// user's stream is not known here; that this thread captures one shows in any call that is refused
// then. A relaxed capture refuses none, and is not disturbed.
Result<void> CudaPath::check_capture() const {
  const cudaError_t status = cudaEventQuery(held_->never);
  if (status == cudaErrorStreamCaptureUnsupported) {
    cudaGetLastError();
    return fail(Errc::unsupported,
                "memory is not registered while a stream is captured: do it before");
  }
  if (status != cudaSuccess && status != cudaErrorNotReady) return check(status, "cudaEventQuery");
  return check(cudaFree(nullptr), "cudaFree");  // this thread may have had no context yet
}

Result<std::unique_ptr<ExportedMemory>> CudaPath::offer(void* memory, std::uint64_t bytes) {
  const OnDevice here(device_);
  GDRX_TRY(check_capture());
  return held_->windows.offer(memory, bytes);
}

Result<WindowId> CudaPath::open_window(std::span<const Blob> tickets, Deadline deadline) {
  const OnDevice here(device_);
  GDRX_TRY(check_capture());
  return held_->windows.open(tickets, deadline);
}

void CudaPath::close_window(WindowId window) noexcept {
  const OnDevice here(device_);
  held_->windows.close(window);
}

bool CudaPath::reaches(const void* input, const void* output, std::uint64_t bytes) const noexcept {
  return call_.ranks > 1 && held_->windows.reach(input, output, bytes);
}

Result<std::unique_ptr<Memory>> CudaPath::allocate(std::uint64_t bytes) {
  const OnDevice here(device_);
  GDRX_TRY(check_capture());
  auto made = GDRX_TRY(ExportableMemory::create(bytes));
  whole_device_ = true;  // for finish(): the end of it does not wait for the user's own kernels
  return std::make_unique<OwnedMemory>(std::move(made));
}

KernelError CudaPath::kernel_error() const noexcept {
  if (!has_given_up(*held_->report)) return {};
  const Report& report = *held_->report;
  const std::uint32_t stage = report.stage < std::size(kStages) ? report.stage : 0;
  return {true,
          Rank{static_cast<std::int32_t>(report.peer)},
          report.call,
          kStages[stage],
          report.slot,
          std::chrono::milliseconds(report.timeout_ms),
          report.stage == static_cast<std::uint32_t>(Stage::disagreeing),
          called_of({report.mine.low, report.mine.high}),
          called_of({report.theirs.low, report.theirs.high})};
}

KernelWaits CudaPath::kernel_waits() const noexcept {
  KernelWaits waits;
  Report& report = *held_->report;
  // relaxed: kernels may be telling of the next call, and only people read it
  const auto read = [](std::uint64_t& from) {
    return std::atomic_ref(from).load(std::memory_order_relaxed);
  };
  for (std::size_t peer = 0; peer < waits.of.size(); ++peer) {
    const std::uint64_t word = read(report.waits[peer]);
    if (word == 0) continue;
    const auto stage = static_cast<std::uint32_t>(word >> 28) % 16;
    waits.of[peer] = {static_cast<std::uint32_t>(word >> 32),
                      std::chrono::milliseconds((word % (1U << 28) << 20) / 1'000'000),
                      kStages[stage < std::size(kStages) ? stage : 0]};
  }
  waits.doing = called_of({read(report.doing.low), read(report.doing.high)});
  return waits;
}

Result<std::unique_ptr<Timer>> CudaPath::timer(std::uint32_t slots) {
  const OnDevice here(device_);
  return CudaTimer::create(slots, held_->own_stream, [this](cudaStream_t stream) -> Result<void> {
    GDRX_TRY(follow(stream));
    return {};
  });
}

void CudaPath::abort() noexcept { held_->fail(); }

}  // namespace gdrx::gpu

const gdrx::gpu::Module* gdrx_cuda_v1() {
  static const gdrx::gpu::Module module{gdrx::gpu::kModuleAbi, &gdrx::gpu::CudaPath::create};
  return &module;
}

// SPDX-License-Identifier: Apache-2.0
// The direct path between GPUs of one host: kernels that write into each other's arenas. Abstract,
// so that libgdrx.so needs no CUDA; libgdrx-cuda.so implements it.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/gpu/signature.hpp"
#include "collectives/kernels/flags.hpp"
#include "collectives/kernels/moved_messages.hpp"
#include "collectives/kernels/scaling.hpp"
#include "collectives/kernels/shape.hpp"
#include "gdrx/bootstrap.hpp"
#include "gdrx/clock.hpp"
#include "gdrx/result.hpp"
#include "gdrx/types.hpp"

namespace gdrx::gpu {

/// One rank's offer to its peers: where its arena is. Goes over the wire; nothing in it is trusted
/// beyond what the CUDA driver checks.
struct Ticket {
  std::uint64_t process = 0;              // random, one a process; 0: no GPU here
  std::uint64_t pointer = 0;              // for ranks of the same process
  std::array<std::uint8_t, 64> handle{};  // CUDA IPC
  std::array<std::uint8_t, 16> device{};  // the GPU's UUID
  std::int32_t processors = 0;            // multiprocessors of the GPU
  std::uint32_t bus = 0;                  // its place: PCI domain, bus and device, high to low
  std::int32_t pid = 0;
  std::uint32_t lease = 0;  // of its arena: tells this communicator from earlier ones
  std::uint64_t names = 0;  // of process ids: the inode of the namespace
};

/// What is multiplied before it is added has room in so many bytes at once.
inline constexpr std::uint64_t kProductBytes = 16 << 20;
/// By what a kernel adds: products have been made before.
constexpr ReduceOp added_by(ReduceOp op) noexcept {
  return op == ReduceOp::premul_sum ? ReduceOp::sum : op;
}

/// What a kernel is to do; which collective it is its Shape says. Memory that this GPU reaches, at
/// any alignment.
struct Work {
  const void* input = nullptr;  // all_gather: this rank's block
  void* output = nullptr;       // reduce_scatter: this rank's block; may be where the input lies
  std::uint64_t bytes = 0;      // of the vector
  DataType type{};
  ReduceOp op{};
  std::uint64_t block = 0;  // reduce_scatter, all_gather: bytes of a rank's part; the last may lack
  bool finish = true;       // avg: divides by the ranks; false: leaves the sum
  /// By a kernel of allReduce: reduce; reduce_scatter_v; barrier, that has no `input` either.
  Collective collective = Collective::all_reduce;
  Rank root{};
  std::optional<Run> stores = std::nullopt;  // of the vector, in `output`; empty: all of it
  std::uint64_t parts = 0;                   // a digest of what each rank stores, if ranks know it
  /// How long a kernel waits for a peer, 0: for ever; empty: as the path does.
  std::optional<std::chrono::milliseconds> timeout = std::nullopt;
};

/// A call that moves bytes: what each rank gets of `input`, and where in `output` its bytes
/// go; one each, its own too. Two ranks give as many bytes for each other, or both are told. A
/// buffer of which no byte is moved may be null. Where ranks add up what they get, each sends the
/// same bytes, from the beginning: to all above it, or to one rank; and to itself, unless its own
/// are not to be added.
struct Moves {
  Collective collective{};  // as the peers' calls are compared with it, and type and root
  DataType type{};
  Rank root{};
  const void* input = nullptr;
  void* output = nullptr;
  std::array<Run, kMaxRanks> sends{}, receives{};
  std::optional<ReduceOp> adds = std::nullopt;
  /// What comes from the root goes on to all others: their runs from here are the same bytes.
  bool passes_on = false;
  std::optional<std::chrono::milliseconds> timeout = std::nullopt;  // as Work's
};

/// Messages of this rank, in the order of their calls: those of a pair of ranks, one way, are
/// matched in it. What a rank sends to itself has been matched.
struct Messages {
  struct One {
    Rank peer{};
    void* at = nullptr;  // a send's is only read
    std::uint64_t bytes = 0;
    DataType type{};
  };
  struct Copy {
    const void* from = nullptr;
    void* to = nullptr;
    std::uint64_t bytes = 0;
  };
  std::vector<One> sends, receives;
  std::vector<Copy> copies;
  /// Each was given some of them; all are behind what they had before, and before what they get
  /// later. All in one capture, or in none; the first has the kernel.
  std::vector<void*> streams;
  std::optional<std::chrono::milliseconds> timeout = std::nullopt;  // as Work's
};

/// A call that the host makes on pinned memory, between what the stream has before it and what
/// comes behind it.
struct Staged {
  std::vector<Messages::Copy> in;   // before the host's part
  std::vector<Messages::Copy> out;  // behind it
  CallRecord record;
  std::vector<void*> streams;  // as Messages'
  std::uint64_t capture = 0;   // capture_of_all() them
};

/// Why a kernel stopped waiting.
struct KernelError {
  bool happened = false;
  Rank peer{};  // it waited for
  std::uint32_t call = 0;
  std::string_view stage;
  std::uint32_t slot = 0;
  std::chrono::milliseconds timeout{};  // how long it waited
  bool disagrees = false;               // not waited for: the peer entered another call
  Called mine, theirs;                  // then
};

/// What kernels last told of their long waits. They tell again while these last, and do not say
/// when they are over.
struct KernelWaits {
  struct One {
    std::uint32_t told = 0;  // another one each time
    std::chrono::milliseconds waited{};
    std::string_view stage;  // empty: nothing was told
  };
  std::array<One, kMaxRanks> of;  // by the rank that is waited for
  Called doing;                   // which call told last
};

/// A place in a stream.
class Event {
 public:
  virtual ~Event() = default;
  /// Whether everything before it has ended. Errc::system: the GPU has failed.
  virtual Result<bool> reached() = 0;
  /// What `stream` is given from now on waits for everything before the mark. Enqueues.
  virtual Result<void> hold(void* stream) = 0;
};

/// Memory that all ranks have registered together.
enum class WindowId : std::uint64_t {};

/// Memory of this rank on its way into a window. Peers map it while this lives: until every rank's
/// open_window() has returned.
class ExportedMemory {
 public:
  virtual ~ExportedMemory() = default;
  /// What travels to the others; nothing in theirs is trusted.
  virtual const Blob& ticket() const noexcept = 0;
};

/// Memory of Path::allocate(), until the object goes and no window of this process holds it.
class Memory {
 public:
  virtual ~Memory() = default;
  virtual std::byte* data() const noexcept = 0;
};

/// When work ran on the GPU, by the host's monotonic clock. Times what lies between begin() and
/// end(); who calls these knows which slots are in use. Any thread, one at a time; ends before its
/// path.
class Timer {
 public:
  virtual ~Timer() = default;
  /// Enqueues, behind the launch before even if that was on another stream. False: this is not
  /// timed, as the stream is captured.
  virtual bool begin(std::uint32_t slot, void* stream) noexcept = 0;
  /// Enqueues. False: there is nothing to read.
  virtual bool end(std::uint32_t slot, void* stream) noexcept = 0;
  struct Times {
    std::optional<Instant> begin;  // empty: the GPU is not there yet
    std::optional<Instant> end;
  };
  /// Never waits for the GPU.
  virtual Times read(std::uint32_t slot) noexcept = 0;
  /// What all times may be off by, either way, when it was made.
  virtual Duration precision() const noexcept = 0;
};

/// What a path asks of its GPU's streams. Threads as Path's.
class Streams {
 public:
  virtual ~Streams() = default;
  /// A stream of the path's own that waits for no other.
  virtual void* own_stream() const noexcept = 0;
  virtual Result<bool> is_captured(void* stream) const = 0;
  /// For stage(): the capture that all the streams are in, 0: none. Errc::unsupported if only some
  /// are, or the call before is in one.
  virtual Result<std::uint64_t> capture_of_all(std::span<void* const> streams) const = 0;
  /// Whether mark() will do: Errc::unsupported while the stream is captured.
  virtual Result<void> check_mark(void* stream) const = 0;
  /// Errc::unsupported while the stream is captured.
  virtual Result<std::unique_ptr<Event>> mark(void* stream) = 0;
  /// Waits for the stream. Errc::unsupported while it is captured.
  virtual Result<void> synchronize(void* stream) = 0;
  /// Before the first launch. Its begin() is a launch in whatever launch() says of threads and
  /// order.
  virtual Result<std::unique_ptr<Timer>> timer(std::uint32_t slots) = 0;
};

/// Memory that a path has, maps or lets others map. Threads as Path's.
class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;
  /// kProductBytes of this GPU's memory for scale(), until the path goes: the same ones each time.
  /// Blocks for CUDA alone, the first time.
  virtual Result<std::byte*> products() = 0;
  /// Errc::invalid_argument: this GPU does not reach one of them. Both are GPU memory, or null.
  virtual Result<void> check_buffers(const void* input, const void* output) const = 0;
  /// After connect(). Memory of this path's GPU, from cudaMalloc or mapped by cuMemMap.
  /// Errc::unsupported: memory that peers cannot map, with what to do; or a stream is captured.
  virtual Result<std::unique_ptr<ExportedMemory>> offer(void* memory, std::uint64_t bytes) = 0;
  /// Maps the peers' memory, or counts one owner more of a window that all have already. `tickets`:
  /// one a rank, its own too. Blocks, on peers' processes until the deadline at most.
  virtual Result<WindowId> open_window(std::span<const Blob> tickets, Deadline deadline) = 0;
  /// One owner less; the last unmaps. No kernel of this rank that uses it may run. Blocks.
  virtual void close_window(WindowId window) noexcept = 0;
  /// Whether both lie in open windows, aligned to a pack: Kernel::direct may run. The same on all
  /// ranks, or the call fails.
  /// Allocates nothing.
  virtual bool reaches(const void* input, const void* output,
                       std::uint64_t bytes) const noexcept = 0;
  /// Memory of this path's GPU that offer() takes and every peer can map: at least `bytes`, more
  /// than 0, not cleared. Its end waits for no kernel: finish() does. Errc::unsupported while a
  /// stream is captured.
  virtual Result<std::unique_ptr<Memory>> allocate(std::uint64_t bytes) = 0;
  /// Memory of this GPU for NICs to write, zero at first, until the path goes: of the arena, which
  /// only kernels of Host::rail may use from then on. Errc::unsupported: over kRailBytes.
  virtual Result<std::span<std::byte>> rail_memory(std::uint64_t bytes) = 0;
  /// Pinned memory for what stage() copies, at least `bytes` of it, until the path goes, as what
  /// was given before. Blocks for CUDA alone.
  virtual Result<std::span<std::byte>> staging(std::uint64_t bytes) = 0;
  /// The same, for whoever has asked alone.
  virtual Result<std::span<std::byte>> pinned(std::uint64_t bytes) = 0;
  /// GPU memory that this path holds, bytes.
  virtual std::uint64_t memory() const noexcept = 0;
};

/// What moves and adds. One a communicator. Any thread, one at a time, but kernel_error(),
/// kernel_waits() and abort(): those from any.
class Path : public Streams, public DeviceMemory {
 public:
  virtual const Ticket& ticket() const noexcept = 0;
  /// Maps the peers' arenas. `tickets`: one a rank, each with process != 0.
  virtual Result<void> connect(std::span<const Ticket> tickets, Rank self) = 0;
  /// Before the first launch: every rank has connected.
  virtual void all_connected() noexcept = 0;
  /// After finish(): that of every rank has ended. Else the path's memory waits for their ends.
  virtual void all_left() noexcept = 0;
  /// Enqueues on a stream of this path's GPU (nullptr: the legacy default stream); nothing blocks,
  /// and it may be captured into a graph. Calls of all ranks come in the same order. Work goes in
  /// order of calls even when the stream changes; the stream of the call before must still exist.
  virtual Result<void> launch(const Work& what, const Shape& shape, void* stream) = 0;
  /// As launch(), over at most so many multiprocessors, the same on all ranks and in all calls of
  /// a communicator, exchange()'s too: large runs share its rings.
  virtual Result<void> move(const Moves& what, int blocks, void* stream) = 0;
  /// Enqueues as launch() does, for what launch() or move() reads next in the same stream. Memory
  /// that check_buffers() lets through. Errc::unsupported: as launch(), and nothing was enqueued.
  virtual Result<void> scale(const Scaling& what, void* stream) = 0;
  /// As move(), but only ranks that have messages for each other call it: each whenever it has.
  virtual Result<void> exchange(const Messages& what, int blocks) = 0;
  /// Whether launch() would put work into the stream: Errc::unsupported while that of the call
  /// before is captured.
  virtual Result<void> check_launch(void* stream) const = 0;
  /// Waits until everything that was launched here has ended. Where no graph was made: for nothing
  /// if the last call's Event was reached, and for stage()'s own work if it was the last. Else for
  /// all that this process runs on the GPU.
  /// Errc::timeout, also when abort() comes meanwhile. Unless it waits for nothing, no thread may
  /// capture a stream of the GPU meanwhile: CUDA spoils it.
  virtual Result<void> finish(Deadline deadline) = 0;
  /// After finish(), and nothing is launched any more: what graphs hold of this path does nothing
  /// from now on.
  virtual void close() noexcept = 0;
  virtual KernelError kernel_error() const noexcept = 0;
  virtual KernelWaits kernel_waits() const noexcept { return {}; }
  /// Ends every wait of every kernel, running or to come. Never blocks.
  virtual void abort() noexcept = 0;
  /// Enqueues a kernel that waits for nobody, between two stops: these are what finish() waits for.
  virtual Result<void> combine(const HostSum& what, void* stream) = 0;
  /// Enqueues as launch() does: tells this process and waits for it, until abort() at most: who
  /// answers has a deadline of its own.
  virtual Result<void> step_flags(const FlagStep& step, void* stream) = 0;
  /// All of a call between hosts: as Kernel::reduce_scatter into `between.part` and, after the
  /// network, Kernel::all_gather from there. `what.finish` is not looked at. False, on all ranks of
  /// the host: it is too large for one block, and nothing was enqueued.
  virtual Result<bool> relay(const Work& what, const Relay& between, void* stream) = 0;
  /// Enqueues as launch() does: copies in, tells this process that all lies there, waits for it as
  /// step_flags(), copies out and tells it that. Errc::unsupported: nothing was enqueued.
  virtual Result<void> stage(const Staged& what) = 0;
  /// This process's side of them.
  virtual Flags& flags() noexcept = 0;
  /// "NVIDIA H200".
  virtual const std::string& device_name() const noexcept = 0;
  /// Its GPU's folder in sysfs. Empty: not known.
  virtual std::string pci_folder() const { return {}; }
};

/// `timeout_ns`: how long a kernel waits for a peer, 0 for ever. What is current on this thread
/// stays so.
using CreatePath = Result<std::unique_ptr<Path>> (*)(int device, std::uint64_t timeout_ns);

/// The one symbol of libgdrx-cuda.so.
inline constexpr int kModuleAbi = 25;
inline constexpr const char* kModuleFile = "libgdrx-cuda.so";
inline constexpr const char* kModuleSymbol = "gdrx_cuda_v1";
struct Module {
  int abi = kModuleAbi;
  CreatePath create = nullptr;
};

}  // namespace gdrx::gpu

extern "C" __attribute__((visibility("default"))) const gdrx::gpu::Module* gdrx_cuda_v1();

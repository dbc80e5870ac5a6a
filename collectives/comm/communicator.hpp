// SPDX-License-Identifier: Apache-2.0
// The communicator: a queue of operations, each run by an Execution, driven by whoever waits.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "collectives/comm/both_ways.hpp"
#include "collectives/comm/call.hpp"
#include "collectives/comm/call_trace.hpp"
#include "collectives/comm/choices.hpp"
#include "collectives/comm/endings.hpp"
#include "collectives/comm/failure.hpp"
#include "collectives/comm/gpu_messages.hpp"
#include "collectives/comm/heritage.hpp"
#include "collectives/comm/last_call.hpp"
#include "collectives/comm/memory_held.hpp"
#include "collectives/comm/memory_share.hpp"
#include "collectives/comm/network.hpp"
#include "collectives/comm/own_gpu.hpp"
#include "collectives/comm/point_to_point.hpp"
#include "collectives/comm/progress_lock.hpp"
#include "collectives/comm/queue.hpp"
#include "collectives/comm/settings.hpp"
#include "collectives/comm/stream_calls.hpp"
#include "collectives/comm/waiting.hpp"
#include "collectives/exec/partition.hpp"
#include "collectives/exec/plan_execution.hpp"
#include "gdrx/bootstrap.hpp"
#include "gdrx/config.hpp"
#include "gdrx/log.hpp"
#include "gdrx/traits.hpp"
#include "gdrx/transport.hpp"
#include "transport/bootstrap/control_mesh.hpp"

namespace gdrx {

class Communicator final {
 public:
  struct Options {
    Config config;
    Log log;
    std::function<void(const Error&)> on_error;
    std::optional<int> gpu;  // CUDA's number of it; empty: this thread's, if it has one
    bool needs_gpu = false;  // it is an error if that cannot be used
  };
  /// Collective over the bootstrap, which is not kept. Ends by config.init_timeout. `gpu`: a
  /// test's, instead of a path on this thread's GPU.
  static Result<std::unique_ptr<Communicator>> create(Bootstrap& bootstrap, Options options,
                                                      std::unique_ptr<gpu::Path> gpu = nullptr);
  /// The same, of ranks of another one, by whose connections they met.
  static Result<std::unique_ptr<Communicator>> create(std::unique_ptr<ControlMesh> mesh,
                                                      Options options, const Heritage& heritage);
  /// What communicators of its ranks need not find out again, if they have this configuration.
  Heritage heritage(const Config& config) const noexcept;
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  Rank rank() const noexcept { return rank_; }
  int size() const noexcept { return choices_.machine.ranks; }
  bool share_cores() const noexcept { return choices_.machine.share_cores(); }
  /// Why no rank can make this call now, which then leaves the communicator as it is. What goes
  /// wrong with a call after this ends the communicator, and with it what peers wait for.
  Result<void> check(const Call& call) const;
  Result<void> check_wait(const Call& call) const;  // its stream is captured: no host can wait
  /// Whether calls of host memory may be done at once: no GPU has a part in any.
  bool has_quick() const noexcept;
  /// Starts the call when those before it are done; what runs_in_stream() is enqueued at once.
  Result<std::shared_ptr<Operation>> post(Call call);
  Route route_of(const Call& call, const Buffers& buffers = {}) const;  // its own, if it has one
  /// That of such a call, without its buffers: in a stream if they are a GPU's.
  Route route_of(Call shape, MemoryKind memory) const;
  /// Whether a stream carries it from its beginning to its end: then launch() does the same as
  /// post() without an operation to wait for, and may be captured.
  bool runs_in_stream(const Call& call) const { return row_of(route_of(call)).in_stream; }
  Result<void> launch(const Call& call);
  /// The same for the sends and receives of a group that streams carry: all start at once.
  Result<void> start_messages(std::span<GroupMessage> all);
  /// Whether the messages of a group keep one order, those of host memory among them.
  bool orders_messages() const noexcept { return gpu_.rails.hierarchy().has_value(); }
  /// Of a message to oneself: a stream may, in a group that has as many sends of these as receives.
  bool keeps_own(const Call& call) const;
  /// Of sends and receives that are waited for: so many, the first of them, are done at once.
  std::size_t run_at_once(std::span<const Call* const> messages);
  Result<void> run(Call& call);  // post() and wait(); `call` is moved from
  /// The same for a call on buffers of the host that was made before, without its checks. False:
  /// nothing was done, it is one for run().
  Result<bool> run_again(const Asked& asked, const std::byte* input, std::byte* output);
  /// Drives the queue until `operation` is done.
  Result<void> wait(Operation& operation);
  Result<Progress> test(Operation& operation);
  /// The same, for who waits: not for ever for what a stream does not come to.
  Result<Progress> test(Operation& operation, StreamPatience& patience);
  /// Once an operation: `handler` is called when it is done, at once if it is. Not under a lock.
  Result<void> on_done(Operation& operation, Ending::Handler handler);
  /// If it has not ended by itself. Then, however it ended, its handler is called.
  void end(Operation& operation, const Result<void>& ended) noexcept;
  /// Waits for everything posted. From then on graphs that hold calls do nothing. A failed
  /// communicator returns its failure. `hook`: of who waits.
  Result<void> drain(WaitHook hook = {});
  /// After drain(): until every rank is as far, none leaves while another still needs its memory,
  /// its connections or its answers. Waits for leave_time().
  Result<void> leave();
  Duration leave_time() const noexcept;
  Result<Progress> leave_within(Duration most);  // pending: not all are as far; again, to go on
  /// All are as far, or that is not to be hoped for, and the log says why.
  bool has_left(Deadline deadline) noexcept;
  /// All that ends with the other ranks: drain(), then leave(), and nobody is missed any more.
  Result<void> finalize(WaitHook hook);
  /// To be brought to its end() by a thread that calls finalize().
  std::shared_ptr<Operation> operation_aside() const;
  WaitHook wait_hook;  // of the program's threads; set before the first call
  /// on_error is not called any more; returns when a call under way has ended. Any thread.
  void mute() { failure_.handler.mute(); }
  void abort();  // any thread
  /// Of calls that are posted later and have none of their own. 0: none. Any thread.
  void set_timeout(std::chrono::milliseconds timeout) noexcept { settings_.timeout = timeout; }
  /// An exception has passed through a call: no operation goes on, as its caller has the buffers.
  void fail_for_memory() noexcept;
  std::optional<Error> failure() const noexcept;
  /// And of kernels that have ended: once a stream was waited for, what failed in it is known.
  /// Any thread.
  std::optional<Error> async_error() noexcept;
  Blame blame() const noexcept { return failure_.blame(); }  // after failure()
  ControlMesh& mesh() noexcept { return *mesh_; }            // after a failure, too

  /// Memory for products on this GPU, if its kernels multiply. Later a launch would have to take
  /// it.
  Result<void> reserve_products();
  /// Memory from which is sent without a copy, until release_memory(). It stays the caller's.
  Result<RegistrationRef> register_memory(std::span<std::byte> memory);
  Result<void> release_memory(const Registration* registration);
  /// Collective, behind what was posted.
  Result<std::vector<Blob>> gather(std::span<const std::byte> mine);
  /// Collective: what every rank has to say. If it went wrong on any, the first such rank's error,
  /// the same on every rank.
  Result<std::vector<Blob>> agree(const Result<Blob>& mine);

  /// Whether gdrxRegister of this memory is for the GPUs, and then collective.
  bool shares(const void* memory) const;
  /// GPU memory that every rank reaches, until close_window(). Collective, as that.
  Result<const Window*> open_window(std::span<std::byte> memory);
  bool has_windows() const noexcept { return !gpu_.windows.empty(); }
  /// Null: the handle is none of them.
  const Window* window_of(const void* handle) const noexcept { return gpu_.windows.of(handle); }
  /// Of memory that allocate_gpu_memory() gave: freed, too.
  Result<void> close_window(const Window* window);
  /// GPU memory in a window, until close_window(window_with(it)). Collective; null: of 0 bytes.
  Result<std::byte*> allocate_gpu_memory(std::size_t bytes);
  /// Null: it is not from allocate_gpu_memory().
  const Window* window_with(const void* memory) const noexcept { return gpu_.windows.with(memory); }
  /// Registered pages, zero at first, until free_memory().
  Result<std::byte*> allocate_memory(std::size_t bytes);
  Result<void> free_memory(const std::byte* memory);

  OperationInfo last_operation() const;
  std::string_view path_name(PathKind path) const {
    return gdrx::path_name(choices_.machine, path);
  }
  /// Whether a call of this shape can be made at all.
  Result<void> check_shape(const Call& call, MemoryKind memory) const;
  Result<std::string> explain(Bytes bytes) const;
  Result<std::string> explain(const Call& call, MemoryKind memory) const;  // and its route
  /// What it is predicted to take by itself, by measured times or the model's. For messages that
  /// start together: in all of them this rank sends and gets so much.
  double predicted_us(const Call& call) const;
  double predicted_us(const BothWays& messages) const;
  std::string describe() const;
  /// Any thread. Errc::timeout: who drives the communicator is busy.
  Result<Waiting> waiting();
  MemoryHeld memory_held() const;
  /// Null where nobody watches.
  trace::Track* track() const noexcept { return trace_.track(); }

 private:
  friend class CommunicatorBuilder;
  friend class Explanation;
  Communicator() = default;

  /// Holds progress_lock_.mutex for a caller's thread, to which the mesh's thread gives way.
  class Driving {
   public:
    explicit Driving(const Communicator& comm);
    ~Driving();
    /// Calls the handlers of what has ended, without the lock.
    void tell();
    Driving(const Driving&) = delete;
    Driving& operator=(const Driving&) = delete;

   private:
    const Communicator& comm_;
    std::unique_lock<std::mutex> lock_;
  };
  class Turn;  // of a small call

  Result<std::shared_ptr<Operation>> post_staged(std::shared_ptr<Operation> operation);
  std::string explain_ways(const Call& call, MemoryKind memory) const;
  double host_us(const Call& call) const;
  double kernel_us(const Call& call) const;
  double between_hosts_us(Bytes bytes) const;
  void make_flows();
  void start_pair(
      const std::shared_ptr<Operation>& operation);  // progress_lock_ held, as for the next
  bool step_pairs();
  Result<void> look_at_pairs_clock() const;
  bool idle() const noexcept;
  Result<std::vector<std::byte>> gather_equal(std::span<const std::byte> mine);
  Result<Window*> share(
      std::uint64_t bytes,
      const std::function<Result<std::unique_ptr<gpu::ExportedMemory>>()>& make_offer);
  Result<void> check_gpu_memory() const;
  Result<void> check_sole_use(const Window& window) const;
  void close_windows() noexcept;
  bool on_gpu(const Call& call, const Buffers& buffers) const;
  /// Of the vector, what this rank is given of a call that its GPU runs.
  gpu::Run stored_here(const Call& call) const;
  static bool is_empty(const Call& call) noexcept;
  std::optional<WhyStaged> why_staged(const Call& call) const;
  bool runs_on_gpu(const Call& call, const Buffers& buffers) const;
  void say_why_staged(const Call& call);  // progress_lock_ held
  Result<void> reach(const void* input, const void* output);
  bool runs_on_hosts(const Call& call, const Buffers& buffers) const;
  Result<void> launch_on_gpu(const Call& call, void* stream);
  Result<void> scale(const Call& call, std::uint64_t first, std::uint64_t count, std::byte* to,
                     void* stream);
  Result<void> launch_scaled(const Call& call, void* stream);
  Result<void> launch_moves(const Call& call, void* stream);
  Result<void> launch_messages(std::span<const Call* const> calls);
  Result<void> stage_messages(std::span<GroupMessage> all, std::span<const Call* const> calls);
  Result<void> launch_barrier(const Call& call, void* stream);
  Result<void> enqueue_launch(const GpuLaunch& what, void* stream);
  Result<void> launch_on_hosts(const Call& call);
  Result<std::shared_ptr<Operation>> post_on_hosts(Call call);
  Result<std::shared_ptr<Operation>> queue_on_hosts(Call call);
  Result<void> enqueue_on_hosts(const Call& call, bool captured);
  Pieces pieces_of(Bytes bytes) const { return gpu_.rails.cut(bytes, gpu_.host.ranks); }
  bool expects_streams() const noexcept;
  bool is_staged_in_stream(const Call& call, const Buffers& buffers) const;
  /// Null: it is captured.
  Result<std::shared_ptr<Operation>> stage(std::span<const Call* const> calls, bool is_waited_for,
                                           std::vector<std::shared_ptr<Operation>> waited = {});
  Result<std::unique_ptr<exec::Execution>> make_staged(Operation& operation);
  void begin_messages(std::shared_ptr<Operation> group);  // progress_lock_ held, as for the next
  bool step_messages();
  void fail_awaited() noexcept;
  void take_posted();
  void hear_streams();
  void end_of_stream_call(const Operation& operation) noexcept;
  Result<std::shared_ptr<Operation>> post_on_gpu(Call call);
  gpu::Prediction gpu_choice(const Call& call) const;
  Result<std::unique_ptr<exec::Execution>> make_hierarchical(Operation& operation);
  Result<std::unique_ptr<exec::Execution>> make_hierarchical_direct(Operation& operation);
  Result<std::unique_ptr<exec::PlanExecution>> make_rail_execution(OperationInfo& info,
                                                                   exec::CallSignature signature,
                                                                   std::span<std::byte> part);
  Result<std::byte*> pinned_of(std::uint64_t bytes);
  Machine rail_machine() const;
  Result<bool> reached(Operation& operation);
  void finish(Operation& operation) noexcept;
  Result<void> wait_on_gpu(Operation& operation);
  void look_at_gpu();
  Error disagreement(const gpu::KernelError& failure, Rank other) const;
  Result<void> start(Operation& operation);
  Result<void> make_start(Operation& operation);
  Result<void> scale_input(Operation& operation);
  Result<std::unique_ptr<exec::Execution>> make_execution(Operation& operation);
  static exec::CallSignature signature_of(const Call& call, plan::Algorithm algorithm) noexcept;
  void begin_signature(const Call& call, plan::Algorithm algorithm) noexcept;
  bool is_one_block(const Question& question, const Candidate& chosen) const noexcept;
  exec::ArenaCall arena_call(const Call& call) noexcept;
  bool may_be_quick(const Call& call) const noexcept;
  bool is_quiet() const noexcept;  // progress_lock_ held, as for the next
  bool run_quickly(const Call& call, std::shared_ptr<Operation>& late);
  std::optional<KnownCall> know(const Call& call);
  bool run_known(const KnownCall& known, const exec::BlockCall& block, const Call* call,
                 std::shared_ptr<Operation>& late);
  bool run_parcels(const Call& call, std::shared_ptr<Operation>& late);
  exec::ExchangeCall begin_exchange(const Call& call) noexcept;
  void end_quickly(const OperationInfo& info) noexcept;  // progress_lock_ held
  Result<std::unique_ptr<exec::Execution>> make_exchange(Operation& operation);
  exec::Partition cut_of(const Call& call, plan::Extent extent, std::uint32_t chunks) const;
  Result<std::unique_ptr<exec::Execution>> make_plan_execution(Operation& operation);
  Result<void> wait(Operation& operation, WaitHook hook);
  Result<void> drive_to_end_of(const Operation& operation, WaitHook hook);
  Result<bool> progress();  // true if something moved; progress_lock_ held
  Result<bool> make_progress();
  bool step_front(Operation& front);
  Result<void> poll_device();  // progress_lock_ held
  void serve_fabric();         // progress_lock_ held
  Waiting look_at_waiting();   // progress_lock_ held, as for the next
  void answer_question() noexcept;
  Result<void> look_at_clock(const Operation& front);
  /// How often a waiting thread looks at the clock, and for calls that do not match: in rounds.
  static constexpr std::uint64_t kClockEvery = 128;
  std::shared_ptr<Operation> operation_of(Call call) const;
  static void begin(Operation& operation);                              // its time runs from now on
  static Deadline waiters_deadline(std::chrono::milliseconds timeout);  // for what a stream begins
  const Operation* behind_stream(const Operation& operation) const noexcept;  // progress_lock_ held
  void look_at_stream(const Operation& operation, StreamPatience& patience);
  void look_at_mark(Operation& operation, StreamPatience& patience);
  Result<void> look_for_strays();
  void finish_front();
  /// The communicator fails; returns why it really did.
  Error stop(Error error, bool announce) noexcept {
    return stop(std::move(error), announce, {index(rank_)});
  }
  Error stop(Error error, bool announce, Blame blame) noexcept;
  Error stop_late(const Operation& operation, std::string_view what) noexcept;
  Error left_alone() const;
  void tell_failure();  // the mesh's thread
  bool still_suspected(const Error& error);
  void fail_by(
      Error error);  // progress_lock_ held; of a peer that is lost, once the mesh had its say
  void fail_operation(Operation& operation) noexcept;
  void fail_queue();               // and the sends and receives
  void end_for_memory() noexcept;  // progress_lock_ held
  void on_notice(const FailureNotice& notice);
  Duration on_tick();
  Duration tick();
  void watch_peers();  // starts the mesh's thread

  Settings settings_;
  Rank rank_{};
  Choices choices_;
  Failure failure_;
  ProgressLock progress_lock_;
  Queue queue_;
  StreamCalls streams_;
  mutable Endings endings_;
  LastCall last_;
  CallTrace trace_;

  // In this order: the mesh's thread stops before what it uses is gone.
  HostMemory memory_;
  Network network_{failure_};
  std::optional<PointToPoint> pairs_;  // with an receive_ring
  OwnGpu gpu_;
  std::unique_ptr<ControlMesh> mesh_;
};

}  // namespace gdrx

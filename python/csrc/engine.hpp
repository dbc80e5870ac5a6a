// SPDX-License-Identifier: Apache-2.0
// The communicator of a group, and what is in flight on it.
//
// A communicator takes one thread at a time; PyTorch calls from several: the program's, those of
// autograd, a callback's. So a lock stands before it, held for single steps only: calls are posted
// as requests, and whoever waits tests them in turns. A call with async_op that nobody waits for is
// driven by the group's thread, which is made at the first such call and ends futures.
#pragma once

#include <gdrx/gdrx.h>

#include <unistd.h>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "account.hpp"
#include "gpu.hpp"
#include "mailbox.hpp"
#include "record.hpp"
#include "work.hpp"

namespace gdrx_torch {

/// Throws with the communicator's last error.
void check(gdrxResult_t result, gdrxComm_t comm, const char* call);
/// The communicator's last error. One that came of a deadline says so in PyTorch's words.
std::string why(gdrxResult_t result, gdrxComm_t comm);
/// Collective: rank 0 makes the id, and puts it into the store.
gdrxUniqueId exchange_id(const c10::intrusive_ptr<c10d::Store>& store, const std::string& name,
                         int rank);

/// What a group has done, and whom it waits for.
struct Stats : Waits {
  std::map<std::string, Counted> calls;  // by the name that a profiler shows
  std::map<int, double> waited;          // seconds for which calls have waited for a rank, in looks
  std::uint64_t gpu_memory = 0;          // bytes of the GPU that the group holds
};

class Engine : public std::enable_shared_from_this<Engine> {
 public:
  /// Collective over the ranks of `store`: rank 0 puts the unique id there.
  /// `before`: the group's until now, whose place and numbers it takes.
  static std::shared_ptr<Engine> create(const Meeting& meeting, Milliseconds timeout,
                                        const Engine* before = nullptr);
  /// The same without these ranks, of the ranks that stay, and they alone call it. This one is then
  /// of no more use, and whoever still waits in it has an error.
  std::shared_ptr<Engine> without(const std::vector<int>& ranks);
  /// Without a communicator, until its group is reconfigured: every call raises.
  static std::shared_ptr<Engine> unmade(const Meeting& meeting, Milliseconds timeout);
  /// Takes the communicator.
  static std::shared_ptr<Engine> of(gdrxComm_t comm, const Meeting& meeting, Milliseconds timeout);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  WorkPtr post(Call call, const Poster& poster);
  WorkPtr send(Call call, int peer, Key key);
  WorkPtr receive(Call call, int peer, Key key);
  /// Microseconds that such a call is predicted to take. Nothing starts.
  double predict(Call call, const Poster& poster);
  /// Between the two nobody waits; what was begun there is returned as one.
  void start_coalescing();
  c10::intrusive_ptr<c10d::Work> end_coalescing();
  /// What is not of CPU tensors.
  Gpu& gpu() { return *gpu_; }

  /// One step of all that is in flight.
  void turn();
  /// False: `timeout` was over first; 0: until the call's own deadline ends it.
  bool wait_for(const Work& work, Milliseconds timeout);
  void abort(const std::string& why);
  /// Aborts and frees it, as its user wants.
  void retire(const std::string& why);
  /// Waits for the other ranks, at most `grace`, then frees the communicator; for all but the
  /// first moments of that in a thread of its own. 0: aborts, and frees it at once.
  void shutdown(Milliseconds grace);

  Milliseconds timeout() const { return Milliseconds(timeout_.load()); }
  void set_timeout(Milliseconds timeout) { timeout_ = timeout.count(); }
  /// For calls from now on, until the first of them has ended.
  void extend_timeout(Milliseconds by) { extended_ += by.count(); }
  Milliseconds extended() const { return Milliseconds(extended_.load()); }
  void end_extension(Milliseconds by) { extended_ -= std::min(by.count(), extended_.load()); }
  /// For one call whose end nobody sees.
  Milliseconds take_extended() { return Milliseconds(extended_.exchange(0)); }
  std::uint64_t sequence() const { return sequence_.load(); }
  std::uint64_t next_number() { return ++sequence_; }
  /// Why the group has failed; empty: it has not.
  std::string failure();
  std::string describe(std::size_t bytes);
  Stats stats();
  /// Whether calls hang, and on whom. By the thread that watches, from time to time.
  Seen look(Clock::time_point now);
  int number() const { return gpu_->number(); }
  bool is_mine() const { return getpid() == process_; }
  const Wishes& wishes() const { return gpu_->meeting().wishes; }
  int rank() const { return gpu_->meeting().rank; }
  int size() const { return gpu_->meeting().size; }

 private:
  Engine(gdrxComm_t comm, const Meeting& meeting, Milliseconds timeout,
         const Engine* before = nullptr);
  WorkPtr begin(Call call, const std::function<void(const WorkPtr&, std::vector<WorkPtr>&)>& start,
                std::uint64_t number, Peer peer);
  void advance(std::vector<WorkPtr>& ended);
  bool advance(Work& work);
  bool busy() const;
  Waits ask_waiting();
  void look_for_failure();
  void say_last_word();
  void check_process(const char* call) const;
  void check_usable(const char* call) const;
  void fail(const std::string& why);
  void drive();
  void wake_driver();
  bool stop_driver();
  bool meet(Clock::time_point until, Clock::time_point limit);
  void part(bool met, std::vector<WorkPtr> ended);

  gdrxComm_t comm_;
  const std::shared_ptr<Gpu> gpu_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::thread driver_;
  bool leaving_ = false;
  gdrxRequest_t departure_ = nullptr;  // the barrier in which all leave
  int waiting_ = 0;                    // threads in wait_for: they drive
  std::deque<WorkPtr> collectives_;
  Mailbox mailbox_;
  std::optional<std::vector<WorkPtr>> coalesced_;
  std::string failure_;
  Account account_;
  std::atomic<std::int64_t> timeout_, extended_{0};
  std::atomic<std::uint64_t> sequence_;
  const int process_;  // a forked child owns nothing of this
};

/// Remembers a group for the end of the process.
std::shared_ptr<Engine> enlist(std::shared_ptr<Engine> group);
/// Those that live.
std::vector<std::shared_ptr<Engine>> all_groups();
/// What the thread that watches hears of all groups; of those that have failed and were destroyed,
/// once.
std::vector<Seen> look_at_groups();
/// The process ends: shuts all groups down, and waits for those that are on their way out, too.
/// False: not all are out.
bool leave_all(Milliseconds grace, Milliseconds most);

}  // namespace gdrx_torch

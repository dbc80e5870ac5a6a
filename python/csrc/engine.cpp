// SPDX-License-Identifier: Apache-2.0
#include "engine.hpp"

#include <c10/util/Exception.h>
#include <sched.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace gdrx_torch {
namespace {

// The group's thread naps between steps that moved nothing: those are shorter than this.
constexpr std::chrono::microseconds kIdleStep{3};
constexpr std::chrono::microseconds kNap{20}, kLongestNap{200};
// A waiting thread spins so often before it yields, if there are processors to spare.
constexpr unsigned kSpins = 100;

void pause(unsigned turns) {
  static const bool spare = std::thread::hardware_concurrency() > 2;
  if (spare && turns < kSpins) {
    __builtin_ia32_pause();
  } else {
    sched_yield();
  }
}

// The deadline of calls that are posted while it lives.
class TimeLimit {
 public:
  TimeLimit(gdrxComm_t comm, Milliseconds limit) : comm_(comm) {
    gdrxCommSetTimeout(comm, std::chrono::duration<double>(limit).count());
  }
  ~TimeLimit() { gdrxCommSetTimeout(comm_, -1); }
  TimeLimit(const TimeLimit&) = delete;
  TimeLimit& operator=(const TimeLimit&) = delete;

 private:
  gdrxComm_t comm_;
};

}  // namespace

void check(gdrxResult_t result, gdrxComm_t comm, const char* call) {
  if (result == gdrxSuccess) return;
  C10_THROW_ERROR(DistBackendError, std::string("gdrx: ") + call + ": " + gdrxGetLastError(comm));
}

// A deadline that has passed is told by these words, as PyTorch's own backends tell it.
std::string why(gdrxResult_t result, gdrxComm_t comm) {
  return (result == gdrxTimeout ? "its timeout has passed: " : "") +
         std::string(gdrxGetLastError(comm));
}

gdrxUniqueId exchange_id(const c10::intrusive_ptr<c10d::Store>& store, const std::string& name,
                         int rank) {
  const std::string key = name + "/unique_id";
  gdrxUniqueId id{};
  if (rank == 0) {
    const auto made = gdrxGetUniqueId(&id);
    TORCH_CHECK(made == gdrxSuccess, "gdrx: no unique id: ", gdrxGetLastError(nullptr));
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(id.bytes);
    store->set(key, std::vector<std::uint8_t>(bytes, bytes + sizeof id.bytes));
    return id;
  }
  const std::vector<std::uint8_t> bytes = store->get(key);
  TORCH_CHECK(bytes.size() == sizeof id.bytes, "gdrx: rank 0 put ", bytes.size(),
              " bytes into the store for a unique id: all ranks need the same gdrx");
  std::memcpy(id.bytes, bytes.data(), bytes.size());
  return id;
}

std::shared_ptr<Engine> Engine::create(const Meeting& meeting, Milliseconds timeout,
                                       const Engine* before) {
  const gdrxUniqueId id = exchange_id(meeting.store, meeting.name, meeting.rank);
  gdrxConfig_t config = config_of(meeting.wishes);
  config.timeout_seconds = -1;  // each call has a deadline of its own here
  gdrxComm_t comm = nullptr;
  const auto made = gdrxCommInitRank(&comm, meeting.size, id, meeting.rank, &config);
  if (made != gdrxSuccess) {
    C10_THROW_ERROR(DistBackendError,
                    std::string("gdrx: no communicator: ") + gdrxGetLastError(nullptr));
  }
  return enlist(std::shared_ptr<Engine>(new Engine(comm, meeting, timeout, before)));
}

Engine::Engine(gdrxComm_t comm, const Meeting& meeting, Milliseconds timeout, const Engine* before)
    : comm_(comm),
      gpu_(std::make_shared<Gpu>(
          meeting, before != nullptr ? before->number()
                                     : Record::of_process().add_group(meeting.rank, meeting.size))),
      mailbox_(comm, rank(), size()),
      timeout_(timeout.count()),
      sequence_(before != nullptr ? before->sequence() : 0),
      process_(getpid()) {}

std::shared_ptr<Engine> Engine::without(const std::vector<int>& ranks) {
  gdrxComm_t made = nullptr;
  Meeting left = gpu_->meeting();
  check_process("shrink");
  {
    const std::lock_guard lock(mutex_);
    TORCH_CHECK(comm_ != nullptr && !leaving_, "gdrx: shrink: the group was shut down");
    check(gdrxCommShrink(comm_, ranks.data(), static_cast<int>(ranks.size()), &made, nullptr),
          comm_, "shrink");
    gdrxCommUserRank(made, &left.rank);
    gdrxCommCount(made, &left.size);
    account_.close();
    fail("the group was shrunk: use the new one");
  }
  turn();
  gpu_->abort();
  left.name += "/without";
  for (const int rank : ranks) left.name += " " + std::to_string(rank);
  return enlist(std::shared_ptr<Engine>(new Engine(made, std::move(left), timeout())));
}

Engine::~Engine() { shutdown(Milliseconds(0)); }

// Before the lock is taken: a thread that held it when the process forked is not here to let go.
void Engine::check_process(const char* call) const {
  TORCH_CHECK(getpid() == process_, "gdrx: ", call,
              ": the process was forked: a group belongs to the process that made it");
}

void Engine::check_usable(const char* call) const {
  if (!failure_.empty()) C10_THROW_ERROR(DistBackendError, std::string(call) + ": " + failure_);
  TORCH_CHECK(comm_ != nullptr && !leaving_, "gdrx: ", call, ": the group was shut down");
}

WorkPtr Engine::begin(Call call,
                      const std::function<void(const WorkPtr&, std::vector<WorkPtr>&)>& start,
                      std::uint64_t number, Peer peer) {
  bool async = call.async;
  auto work = c10::make_intrusive<Work>(shared_from_this(), rank(), std::move(call), number);
  std::vector<WorkPtr> ended;
  check_process(work->call.title);
  {
    const std::lock_guard lock(mutex_);
    check_usable(work->call.title);
    account_.begin(work->call);
    work->recorded = Record::of_process().begin(this->number(), work->call, number, peer, false);
    start(work, ended);
    if (coalesced_) {
      coalesced_->push_back(work);
      async = true;
    }
    if (async && !work->done()) wake_driver();
  }
  for (const WorkPtr& one : ended) one->complete();
  if (!async) work->wait();
  return work;
}

WorkPtr Engine::post(Call call, const Poster& poster) {
  return begin(std::move(call),
               [&](const WorkPtr& work, std::vector<WorkPtr>&) {
                 // Of messages the mailbox keeps time: a packet may be waited for without end.
                 const TimeLimit limit(comm_, work->call.timeout);
                 try {
                   poster({comm_, gdrxStreamNone, work.get()});
                 } catch (...) {
                   // What was posted before runs all the same, on memory that must stay.
                   work->error = "gdrx: a part of the call was refused";
                   collectives_.push_back(work);
                   throw;
                 }
                 collectives_.push_back(work);
               },
               next_number(), {});
}

WorkPtr Engine::send(Call call, int peer, Key key) {
  return begin(std::move(call),
               [&](const WorkPtr& work, std::vector<WorkPtr>& ended) {
                 mailbox_.send(work, peer, key, ended);
               },
               sequence_.load(), {peer, true});
}

WorkPtr Engine::receive(Call call, int peer, Key key) {
  return begin(std::move(call),
               [&](const WorkPtr& work, std::vector<WorkPtr>& ended) {
                 mailbox_.receive(work, peer, key, ended);
               },
               sequence_.load(), {peer < 0 ? Peer::kAny : peer, false});
}

void Engine::start_coalescing() {
  const std::lock_guard lock(mutex_);
  if (!coalesced_) coalesced_.emplace();
  gpu_->start_coalescing();
}

c10::intrusive_ptr<c10d::Work> Engine::end_coalescing() {
  std::vector<WorkPtr> works;
  {
    const std::lock_guard lock(mutex_);
    TORCH_CHECK(coalesced_, "gdrx: endCoalescing without startCoalescing");
    works.swap(*coalesced_);
    coalesced_.reset();
  }
  std::vector<c10::intrusive_ptr<c10d::Work>> all = gpu_->end_coalescing();
  if (works.empty() && all.size() == 1) return all.front();
  all.insert(all.end(), works.begin(), works.end());
  return c10::make_intrusive<AllWork>(rank(), std::move(all));
}

bool Engine::busy() const { return !collectives_.empty() || !mailbox_.quiet(); }

// True: all its requests have ended.
bool Engine::advance(Work& work) {
  while (work.tested < work.requests.size()) {
    const gdrxResult_t result = gdrxTest(&work.requests[work.tested]);
    if (result == gdrxInProgress) return false;
    if (result != gdrxSuccess) {
      if (failure_.empty()) failure_ = why(result, comm_);
      work.error = std::string(work.call.title) + " (call " + std::to_string(work.sequence) +
                   " of its group): " + failure_;
    }
    ++work.tested;
  }
  return true;
}

void Engine::fail(const std::string& why) {
  if (failure_.empty()) failure_ = why;
  if (comm_ != nullptr) gdrxCommAbort(comm_);
}

void Engine::advance(std::vector<WorkPtr>& ended) {
  if (comm_ == nullptr || !busy()) return;
  const std::size_t before = ended.size();
  while (!collectives_.empty() && advance(*collectives_.front())) {
    ended.push_back(std::move(collectives_.front()));
    collectives_.pop_front();
  }
  const auto now = Clock::now();
  mailbox_.advance(ended, now);
  if (!mailbox_.failure().empty() && failure_.empty()) failure_ = mailbox_.failure();
  if (!failure_.empty()) mailbox_.fail(failure_, ended);
  for (std::size_t i = before; i < ended.size(); ++i) {
    account_.end(ended[i]->call, ended[i]->age(now));
  }
}

void Engine::turn() {
  std::vector<WorkPtr> ended;
  {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock()) return;  // another drives
    advance(ended);
  }
  for (const WorkPtr& work : ended) work->complete();
}

bool Engine::wait_for(const Work& work, Milliseconds timeout) {
  {
    const std::lock_guard lock(mutex_);
    ++waiting_;
  }
  const auto limit = Clock::now() + timeout;
  bool in_time = true;
  for (unsigned turns = 0; !work.done(); ++turns) {
    turn();
    if (work.done()) break;
    if (timeout.count() > 0 && Clock::now() >= limit) {
      in_time = false;
      break;
    }
    pause(turns);
  }
  const std::lock_guard lock(mutex_);
  if (--waiting_ == 0 && driver_.joinable() && busy()) wake_.notify_one();
  return in_time;
}

void Engine::wake_driver() {
  if (!driver_.joinable() && !leaving_)
    driver_ = std::thread([self = shared_from_this()] { self->drive(); });
  if (waiting_ == 0) wake_.notify_one();
}

void Engine::drive() {
  pthread_setname_np(pthread_self(), "gdrx-torch");
  prctl(PR_SET_TIMERSLACK, 1000UL);
  std::unique_lock lock(mutex_);
  std::chrono::microseconds nap = kNap;
  for (;;) {
    wake_.wait(lock, [&] { return leaving_ || (waiting_ == 0 && busy()); });
    if (leaving_) return;
    std::vector<WorkPtr> ended;
    const auto begun = Clock::now();
    advance(ended);
    const bool moved = !ended.empty() || Clock::now() - begun > kIdleStep;
    lock.unlock();
    for (const WorkPtr& work : ended) work->complete();
    ended.clear();  // their tensors may be the last of their kind: not under the lock
    nap = moved ? kNap : std::min(nap * 2, kLongestNap);
    if (moved) {
      sched_yield();
    } else {
      std::this_thread::sleep_for(nap);
    }
    lock.lock();
  }
}

void Engine::abort(const std::string& why) {
  check_process("abort");
  {
    const std::lock_guard lock(mutex_);
    if (comm_ == nullptr) return;
    fail("rank " + std::to_string(rank()) + ": " + why);
  }
  gpu_->abort();
  turn();
}

std::string Engine::failure() {
  check_process("failure");
  if (std::string of_gpu = gpu_->failure(); !of_gpu.empty()) return of_gpu;
  const std::lock_guard lock(mutex_);
  look_for_failure();
  return failure_;
}

// One that no call has told.
void Engine::look_for_failure() {
  gdrxResult_t result = gdrxSuccess;
  if (failure_.empty() && comm_ != nullptr &&
      gdrxCommGetAsyncError(comm_, &result) == gdrxSuccess && result != gdrxSuccess) {
    failure_ = gdrxGetLastError(comm_);
  }
}

std::string Engine::describe(std::size_t bytes) {
  check_process("explain");
  const std::lock_guard lock(mutex_);
  check_usable("explain");
  std::vector<char> text(16384);
  check(gdrxCommExplain(comm_, bytes, text.data(), text.size()), comm_, "explain");
  return text.data();
}

// With the lock held, and a communicator.
Waits Engine::ask_waiting() {
  Waits waits = waits_of(comm_, size());
  std::erase_if(waits.late, [&](int rank) { return mailbox_.only_listens_to(rank); });
  const auto now = Clock::now();
  double oldest = mailbox_.oldest(now);
  if (!collectives_.empty()) oldest = std::max(oldest, collectives_.front()->age(now));
  waits.seconds = std::min(waits.seconds, oldest);
  return waits;
}

Stats Engine::stats() {
  check_process("stats");
  Stats stats;
  stats.add(gpu_->waits());
  const auto on_gpu = gpu_->counts();
  stats.gpu_memory = gpu_->memory();
  const std::lock_guard lock(mutex_);
  stats.calls = account_.calls();
  stats.waited = account_.waited();
  for (const auto& [title, seen] : on_gpu) stats.calls[title].add(seen);
  if (comm_ != nullptr) stats.add(ask_waiting());
  return stats;
}

Seen Engine::look(Clock::time_point now) {
  Seen seen{.group = number(), .rank = rank()};
  seen.failure = gpu_->failure();
  Waits waits = gpu_->waits();
  const std::lock_guard lock(mutex_);
  if (account_.closed()) seen.failure.clear();  // the group goes on by another engine
  if (comm_ == nullptr || leaving_) return seen;
  look_for_failure();
  if (seen.failure.empty() && !account_.closed()) seen.failure = failure_;
  if (busy() && failure_.empty()) waits.add(ask_waiting());
  if (account_.look(waits.late, waits.seconds, now)) {
    seen.late = std::move(waits.late);
    seen.text = std::move(waits.text);
  }
  return seen;
}

}  // namespace gdrx_torch

// SPDX-License-Identifier: Apache-2.0
#include "tests/memory_order/model.hpp"

#include <fmt/format.h>
#include <ucontext.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <tuple>

#include "tests/memory_order/history.hpp"

namespace gdrx::model {
namespace {

constexpr std::size_t kStack = 256 * 1024;  // of a thread
constexpr const char* kFenceOfGpu = "fence_system";
constexpr std::string_view kForEver = "a thread waits for ever";

struct Thread {
  View now;
  View pending;   // what an acquire fence would learn
  View released;  // what a relaxed store publishes, since a release fence
  ucontext_t context{};
  bool ended = false;
  bool newest = false;  // its next load takes the newest value
  int waits = 0;        // since anything was stored
};

class Run {
 public:
  Run(const Scenario& scenario, const Limits& limits, const Weakened* weakened)
      : scenario_(scenario), limits_(limits), weakened_(weakened) {}

  Outcome all() {
    do {
      one();
      ++outcome_.runs;
    } while (outcome_.wrong.empty() && outcome_.runs < limits_.runs && choices_.next());
    outcome_.whole = !outcome_.wrong.empty() || outcome_.runs < limits_.runs;
    for (const auto& [key, known] : sites_) outcome_.sites.push_back(known.site);
    return std::move(outcome_);
  }

  View& now() { return threads_[current_].now; }
  std::size_t self() const { return current_; }
  Event happen() { return {current_, ++now().events[current_]}; }
  bool knows(const Event& event) { return now().events[event.thread] >= event.number; }

  void require(bool holds, std::string_view what) {
    if (holds) return;
    outcome_.wrong = what;
    leave();
  }

  void wait() {
    Thread& self = threads_[current_];
    ++self.waits;
    self.newest = true;
    const Others others = runnable_but_self();
    require(others.count != 0 || !sleeps(self), kForEver);
    if (others.count != 0) go_to(others.after(current_));
  }

  // Before each operation another thread may have its turn. Nothing on the heap is held over that:
  // a run that ends early forgets its stacks.
  std::memory_order begin(const char* operation, std::memory_order order,
                          const std::source_location& from) {
    const Known& site = known(operation, order, from);
    const Others others = runnable_but_self();
    if (preemptions_ < limits_.preemptions && others.count != 0) {
      const std::size_t choice = choices_.take(others.count + 1);
      if (choice != 0) {
        ++preemptions_;
        go_to(others.at[choice - 1]);
      }
    }
    return site.weak ? weakened_->order : order;
  }

  std::uint64_t load(void* at, std::uint64_t first, std::memory_order order) {
    const std::size_t location = location_of(at, first);
    Thread& self = threads_[current_];
    if (order == std::memory_order_seq_cst) self.now.join(all_);
    const auto& messages = messages_[location];
    const std::size_t last = messages.size() - 1;
    std::size_t back = 0;
    const bool free = !self.newest && stale_ < limits_.stale;
    if (free) back = choices_.take(last - self.now.of(location) + 1);
    if (back != 0) ++stale_;
    self.newest = false;
    const Message& message = messages[last - back];
    self.now.of(location) = static_cast<std::uint32_t>(last - back);
    (acquires(order) ? self.now : self.pending).join(message.view);
    if (order == std::memory_order_seq_cst) all_.join(self.now);
    return message.value;
  }

  void store(void* at, std::uint64_t first, std::uint64_t value, std::memory_order order) {
    const std::size_t location = location_of(at, first);
    append(location, value, order, nullptr);
  }

  std::uint64_t exchange(void* at, std::uint64_t first,
                         const std::function<std::uint64_t(std::uint64_t)>& next,
                         std::memory_order order) {
    const std::size_t location = location_of(at, first);
    Thread& self = threads_[current_];
    if (order == std::memory_order_seq_cst) self.now.join(all_);
    const Message read = messages_[location].back();
    (acquires(order) ? self.now : self.pending).join(read.view);
    append(location, next(read.value), order, &read.view);
    return read.value;
  }

  // Looks at the newest value alone, also where it is another.
  std::uint64_t compare(void* at, std::uint64_t first, std::uint64_t expected, std::uint64_t next,
                        std::memory_order order, std::memory_order failure) {
    const std::size_t location = location_of(at, first);
    if (messages_[location].back().value == expected) {
      return exchange(
          at, first, [next](std::uint64_t) { return next; }, order);
    }
    threads_[current_].newest = true;
    return load(at, first, failure);
  }

  void fence(std::memory_order order) {
    Thread& self = threads_[current_];
    if (acquires(order)) self.now.join(self.pending);
    if (order == std::memory_order_seq_cst) {
      self.now.join(all_);
      all_.join(self.now);
    }
    if (releases(order)) self.released = self.now;
  }

 private:
  void one() {
    locations_.clear();
    messages_.clear();
    all_ = {};
    preemptions_ = stale_ = 0;
    left_ = false;
    threads_.clear();
    threads_.resize(scenario_.threads.size());
    scenario_.begin();
    for (std::size_t i = 0; i < threads_.size(); ++i) {
      ucontext_t& context = threads_[i].context;
      getcontext(&context);
      context.uc_stack = {stacks_.get() + i * kStack, 0, kStack};
      context.uc_link = nullptr;
      makecontext(&context, body, 0);
    }
    current_ = choices_.take(threads_.size());
    swapcontext(&main_, &threads_[current_].context);
    if (!left_ && scenario_.end) {
      ended_ = true;
      scenario_.end();
      ended_ = false;
    }
  }

  static void body();
  void run_body() {
    scenario_.threads[current_]();
    threads_[current_].ended = true;
    const Others others = runnable_but_self();
    if (others.count == 0) {
      for (const Thread& thread : threads_) require(thread.ended, kForEver);
      setcontext(&main_);
    }
    current_ = others.at[choices_.take(others.count)];
    setcontext(&threads_[current_].context);
  }

  // The run ends here; what is on the threads' stacks is forgotten.
  void leave() {
    left_ = true;
    if (!ended_) setcontext(&main_);
  }

  void go_to(std::size_t other) {
    const std::size_t self = current_;
    current_ = other;
    swapcontext(&threads_[self].context, &threads_[other].context);
  }

  // It has looked again since anything was stored, and it was no old value that it saw.
  bool sleeps(const Thread& thread) const { return thread.waits > 1 + stale_; }

  struct Others {
    std::array<std::size_t, kThreads> at{};
    std::size_t count = 0;

    std::size_t after(std::size_t thread) const {
      for (std::size_t i = 0; i < count; ++i) {
        if (at[i] > thread) return at[i];
      }
      return at[0];
    }
  };
  Others runnable_but_self() const {
    Others others;
    for (std::size_t i = 0; i < threads_.size(); ++i) {
      if (i != current_ && !threads_[i].ended && !sleeps(threads_[i]))
        others.at[others.count++] = i;
    }
    return others;
  }

  struct Known {
    Site site;
    bool weak = false;  // in this exploration
  };
  const Known& known(const char* operation, std::memory_order order,
                     const std::source_location& from) {
    const auto [entry, is_new] = sites_.try_emplace({from.file_name(), from.line(), operation});
    if (!is_new) return entry->second;
    const std::string_view path = from.file_name();
    const std::string where =
        fmt::format("{}:{} {}", path.substr(path.rfind('/') + 1), from.line(), operation);
    entry->second = {{where, order}, weakened_ != nullptr && weakened_->where == where};
    return entry->second;
  }

  std::size_t location_of(void* at, std::uint64_t first) {
    const auto [found, is_new] = locations_.emplace(at, messages_.size());
    if (is_new) messages_.push_back({Message{first, {}}});
    return found->second;
  }

  // `read`: by the same operation, which changes that.
  void append(std::size_t location, std::uint64_t value, std::memory_order order,
              const View* read) {
    Thread& self = threads_[current_];
    if (order == std::memory_order_seq_cst) self.now.join(all_);
    auto& messages = messages_[location];
    const std::size_t place = read != nullptr ? messages.size() : place_in(location);
    if (place != messages.size()) make_room(location, place);
    self.now.of(location) = static_cast<std::uint32_t>(place);
    Message message{value, releases(order) ? self.now : self.released, read != nullptr};
    message.view.of(location) = static_cast<std::uint32_t>(place);
    if (read != nullptr) message.view.join(*read);  // of a release sequence
    const bool is_news = value != messages.back().value;
    messages.insert(messages.begin() + static_cast<std::ptrdiff_t>(place), std::move(message));
    for (Thread& thread : threads_) {
      if (is_news) thread.waits = 0;
    }
    if (order == std::memory_order_seq_cst) all_.join(self.now);
  }

  // At the end, or before what others have stored and this thread does not know.
  std::size_t place_in(std::size_t location) {
    const auto& messages = messages_[location];
    const std::size_t end = messages.size();
    const std::size_t least = threads_[current_].now.of(location) + 1;
    if (stale_ == limits_.stale || least == end) return end;
    const auto place = least + choices_.take(end - least + 1);
    if (place == end || messages[place].changes) return end;
    ++stale_;
    return place;
  }
  void make_room(std::size_t location, std::size_t place) {
    const auto move = [&](View& view) {
      if (view.of(location) >= place) ++view.of(location);
    };
    for (Thread& thread : threads_) move(thread.now), move(thread.pending), move(thread.released);
    for (auto& messages : messages_) {
      for (Message& message : messages) move(message.view);
    }
    move(all_);
  }

  const Scenario& scenario_;
  Limits limits_;
  const Weakened* weakened_;
  Outcome outcome_;
  Choices choices_;
  std::map<std::tuple<const char*, std::uint_least32_t, std::string_view>, Known> sites_;
  std::map<void*, std::size_t> locations_;
  std::vector<std::vector<Message>> messages_;
  View all_;  // of the seq_cst operations so far
  std::vector<Thread> threads_;
  std::unique_ptr<char[]> stacks_ = std::make_unique_for_overwrite<char[]>(kThreads * kStack);
  std::size_t current_ = 0;
  int preemptions_ = 0;
  int stale_ = 0;
  bool left_ = false;
  bool ended_ = false;
  ucontext_t main_{};
};

Run* run = nullptr;

void Run::body() { run->run_body(); }

}  // namespace

std::string to_string(std::memory_order order) {
  switch (order) {
    case std::memory_order_relaxed:
      return "relaxed";
    case std::memory_order_consume:
    case std::memory_order_acquire:
      return "acquire";
    case std::memory_order_release:
      return "release";
    case std::memory_order_acq_rel:
      return "acq_rel";
    case std::memory_order_seq_cst:
      return "seq_cst";
  }
  return "?";
}

std::vector<std::memory_order> weaker(std::string_view operation, std::memory_order order) {
  if (operation == kFenceOfGpu) return {std::memory_order_relaxed};
  const bool reads = operation != "store";
  const bool writes = operation != "load";
  if (order == std::memory_order_seq_cst && reads && writes) return {std::memory_order_acq_rel};
  if (order == std::memory_order_seq_cst) {
    return {reads ? std::memory_order_acquire : std::memory_order_release};
  }
  if (order == std::memory_order_acq_rel) {
    return {std::memory_order_acquire, std::memory_order_release};
  }
  if (order == std::memory_order_relaxed) return {};
  return {std::memory_order_relaxed};
}

Outcome explore(const Scenario& scenario, const Limits& limits, const Weakened* weakened) {
  Run all(scenario, limits, weakened);
  run = &all;
  Outcome outcome = all.all();
  run = nullptr;
  return outcome;
}

std::size_t self() { return run->self(); }
Event happen() { return run->happen(); }
bool knows(const Event& event) { return run->knows(event); }
void require(bool holds, std::string_view what) { run->require(holds, what); }
void wait() { run->wait(); }

std::uint64_t load(void* at, std::uint64_t first, std::memory_order order,
                   std::source_location from) {
  return run->load(at, first, run->begin("load", order, from));
}
void store(void* at, std::uint64_t first, std::uint64_t value, std::memory_order order,
           std::source_location from) {
  run->store(at, first, value, run->begin("store", order, from));
}
std::uint64_t exchange(void* at, std::uint64_t first,
                       const std::function<std::uint64_t(std::uint64_t)>& next,
                       std::memory_order order, std::source_location from, const char* operation) {
  return run->exchange(at, first, next, run->begin(operation, order, from));
}
std::uint64_t compare(void* at, std::uint64_t first, std::uint64_t expected, std::uint64_t next,
                      std::memory_order order, std::memory_order failure,
                      std::source_location from) {
  return run->compare(at, first, expected, next, run->begin("compare", order, from), failure);
}
void fence(std::memory_order order, std::source_location from) {
  run->fence(run->begin("fence", order, from));
}
void fence_of_gpu(std::source_location from) {
  run->fence(run->begin(kFenceOfGpu, std::memory_order_acq_rel, from));
}

}  // namespace gdrx::model

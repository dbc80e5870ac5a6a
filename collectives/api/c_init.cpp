// SPDX-License-Identifier: Apache-2.0
// gdrxCommInit*: from an id, all ranks of a process, or somebody's all-gather.
#include "collectives/api/c_init.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <mutex>
#include <new>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/own_thread.hpp"
#include "base/thread_cpus.hpp"
#include "collectives/api/c_struct.hpp"
#include "collectives/comm/function_bootstrap.hpp"
#include "collectives/gpu/load.hpp"
#include "gdrx/cancel.hpp"
#include "transport/bootstrap/tcp_bootstrap.hpp"
#include "transport/bootstrap/thread_bootstrap.hpp"
#include "transport/bootstrap/unique_id.hpp"

namespace gdrx::c_api {
namespace {

Result<void> apply(const gdrxConfig_t& given, Communicator::Options& options) {
  // The table's own parsers check the values: one rule for environment and API.
  const auto set = [&](std::string_view name, const char* value) -> Result<void> {
    if (value == nullptr) return {};
    for (const Variable& variable : config_table()) {
      if (variable.env != name) continue;
      if (auto parsed = variable.parse(options.config, value); !parsed) {
        return fail(Errc::invalid_argument,
                    fmt::format("config: '{}': {}", value, parsed.error().what));
      }
    }
    return {};
  };
  GDRX_TRY(set("GDRX_ALGO", given.algorithm));
  GDRX_TRY(set("GDRX_TRANSPORT", given.transport));
  const std::string blocks = std::to_string(given.gpu_blocks);
  if (given.gpu_blocks != 0) GDRX_TRY(set("GDRX_GPU_BLOCKS", blocks.c_str()));
  const std::string reproducible = std::to_string(given.reproducible);
  if (given.reproducible != 0) GDRX_TRY(set("GDRX_REPRODUCIBLE", reproducible.c_str()));
  const auto timeout = GDRX_TRY(timeout_of(given.timeout_seconds, "config: timeout_seconds"));
  if (timeout) options.config.timeout = *timeout;
  if (given.on_error != nullptr) {
    options.on_error = [handler = given.on_error, user = given.on_error_user](const Error& error) {
      handler(to_c(error.code), describe(error).c_str(), user);
    };
  }
  return {};
}

Result<void> check_handle(gdrxComm_t* comm) {
  if (comm == nullptr) return fail(Errc::invalid_argument, "comm is NULL");
  *comm = nullptr;
  return {};
}

Result<void> check_place(int nranks, int rank) {
  if (nranks < 1 || rank < 0 || rank >= nranks) {
    return fail(Errc::invalid_argument, fmt::format("rank {} of {} is impossible", rank, nranks));
  }
  return {};
}

Result<void> check_place(gdrxComm_t* comm, int nranks, int rank) {
  GDRX_TRY(check_handle(comm));
  return check_place(nranks, rank);
}

// Threads that make a communicator each have no GPU of their own: as the list says, or the
// caller's.
void choose_gpus(const gdrxConfig_t* config, std::span<Communicator::Options> ranks) {
  const bool listed = ranks[0].needs_gpu;
  const std::optional<int> current = listed ? std::nullopt : gpu::current_device();
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    ranks[rank].gpu = listed ? config->gpus[rank] : current;
  }
}

// Before there is a communicator there is no trace file: for NVTX.
trace::Span init_mark(std::string_view name) {
  return {trace::Track::process(), trace::Row::calls, trace::Kind::call, name};
}

UniqueId from_c(const gdrxUniqueId& id) {
  static_assert(sizeof(UniqueId) == sizeof id);
  return std::bit_cast<UniqueId>(id);
}

}  // namespace

// The same range as GDRX_TIMEOUT's; more is as good as no deadline.
Result<std::optional<std::chrono::milliseconds>> timeout_of(double seconds, const char* name) {
  constexpr double kLongest = 1e7;
  if (std::isnan(seconds)) {
    return fail(Errc::invalid_argument, fmt::format("{} is not a number", name));
  }
  if (seconds == 0) return std::nullopt;
  const bool never = seconds < 0 || seconds > kLongest;
  return std::chrono::milliseconds(never ? 0 : static_cast<std::int64_t>(seconds * 1000) + 1);
}

Result<void> keep(gdrxComm_t* comm, Result<std::unique_ptr<Communicator>> made,
                  const Communicator::Options& options) {
  std::unique_ptr<Communicator> impl = GDRX_TRY(std::move(made));
  try {
    auto whole = std::make_unique<gdrxComm>();
    whole->options = options;
    whole->impl = std::move(impl);
    *comm = whole.release();
  } catch (const std::bad_alloc&) {  // the others have theirs, and would wait for this rank
    impl->mute();
    impl->fail_for_memory();
    throw;
  }
  return {};
}

Result<void> init(gdrxComm_t* comm, Bootstrap& bootstrap, const Communicator::Options& options) {
  return keep(comm, Communicator::create(bootstrap, options), options);
}

Result<Communicator::Options> make_options(const gdrxConfig_t* config) {
  LoadedConfig loaded = GDRX_TRY(load_config(process_environment()));
  GDRX_TRY(check_thread_cpus(loaded.config.thread_cpus));
  Communicator::Options options;
  options.config = std::move(loaded.config);
  options.log = Log(options.config.log_level, stderr_sink());
  static std::once_flag warned;
  std::call_once(warned, [&] {
    for (const std::string& warning : loaded.warnings) options.log.warn("{}", warning);
  });
  if (config == nullptr) return options;
  constexpr std::size_t kFirst = offsetof(gdrxConfig_t, gpus);
  const gdrxConfig_t full = GDRX_TRY(in_full(config, GDRX_CONFIG_INITIALIZER, kFirst, "config",
                                             "gdrxConfig_t", "GDRX_CONFIG_INITIALIZER"));
  GDRX_TRY(apply(full, options));
  if (full.gpus == nullptr) return options;
  options.gpu = full.gpus[0];
  options.needs_gpu = true;
  return options;
}

}  // namespace gdrx::c_api

using namespace gdrx;         // NOLINT: this file is the C API's implementation
using namespace gdrx::c_api;  // NOLINT

gdrxResult_t gdrxGetUniqueId(gdrxUniqueId* id) {
  return guarded(nullptr, [&]() -> Result<void> {
    if (id == nullptr) return fail(Errc::invalid_argument, "id is NULL");
    const Communicator::Options options = GDRX_TRY(make_options(nullptr));
    const UniqueId made = GDRX_TRY(make_unique_id(
        options.config.socket_ifname, options.log,
        GDRX_TRY(Secret::load(options.config.secret_file)), options.config.port_range));
    std::memcpy(id, &made, sizeof *id);
    return {};
  });
}

namespace {

/// What a rank needs to join the others.
struct Joining {
  UniqueId id;
  Rank rank;
  int ranks;
  Communicator::Options options;
};

Result<std::unique_ptr<Bootstrap>> meet(const Joining& joining) {
  const Communicator::Options& options = joining.options;
  const Deadline deadline = Deadline::after(steady_clock(), options.config.init_timeout);
  return TcpBootstrap::create(joining.id, joining.rank, joining.ranks, options.log, deadline,
                              GDRX_TRY(Secret::load(options.config.secret_file)));
}

// By a thread that has no GPU of its own, for the one that calls this.
Result<Joining> joining_by_a_thread(const gdrxUniqueId& id, int nranks, int rank,
                                    const gdrxConfig_t* config) {
  Communicator::Options options = GDRX_TRY(make_options(config));
  Joining joining{from_c(id), Rank{rank}, nranks, std::move(options)};
  choose_gpus(config, std::span(&joining.options, 1));
  return joining;
}

Result<void> init_rank(gdrxComm_t* comm, const Joining& joining) {
  const auto bootstrap = GDRX_TRY(meet(joining));
  return init(comm, *bootstrap, joining.options);
}

// Without this rank there is no communicator: the id's root, if it is here, serves nobody.
gdrxResult_t retired_if_failed(const UniqueId& id, gdrxResult_t result) noexcept {
  if (result != gdrxSuccess && result != gdrxInvalidArgument) retire_unique_id(id);
  return result;
}
Result<void> retired_if_failed(const UniqueId& id, Result<void> ended) noexcept {
  retired_if_failed(id, ended ? gdrxSuccess : to_c(ended.error().code));
  return ended;
}

// The thread of `starting`.
void start(gdrxComm* comm, const Joining& joining) {
  Starting& starting = *comm->starting;
  const Result<void> ended =
      retired_if_failed(joining.id, contained([&]() -> Result<void> {
                          const Cancellable here(starting.cancelled);
                          const auto bootstrap = GDRX_TRY(meet(joining));
                          comm->impl = GDRX_TRY(Communicator::create(*bootstrap, joining.options));
                          return {};
                        }));
  if (!ended) {
    starting.error = ended.error();
    if (starting.cancelled) {
      starting.error = Error{Errc::aborted, "the communicator was aborted while it was made", 0};
    }
    starting.state = Starting::State::failed;
    return;
  }
  starting.state = Starting::State::made;
  if (starting.cancelled) comm->impl->abort();  // whoever did it may have seen no communicator yet
}

}  // namespace

gdrxResult_t gdrxCommInitRank(gdrxComm_t* comm, int nranks, gdrxUniqueId id, int rank,
                              const gdrxConfig_t* config) {
  const auto result = guarded_call(nullptr, [&]() -> Result<void> {
    const trace::Span mark = init_mark("gdrxCommInitRank");
    GDRX_TRY(check_place(comm, nranks, rank));
    if (!in_group()) {
      Communicator::Options options = GDRX_TRY(make_options(config));
      return init_rank(comm, {from_c(id), Rank{rank}, nranks, std::move(options)});
    }
    const auto joining = GDRX_TRY(joining_by_a_thread(id, nranks, rank, config));
    make_in_group(nullptr, [comm, joining] {
      return retired_if_failed(joining.id, contained([&] { return init_rank(comm, joining); }));
    });
    return {};
  });
  return retired_if_failed(from_c(id), result);
}

gdrxResult_t gdrxCommInitRankAsync(gdrxComm_t* comm, int nranks, gdrxUniqueId id, int rank,
                                   const gdrxConfig_t* config) {
  const auto result = guarded(nullptr, [&]() -> Result<void> {
    const trace::Span mark = init_mark("gdrxCommInitRankAsync");
    GDRX_TRY(check_place(comm, nranks, rank));
    const auto joining = GDRX_TRY(joining_by_a_thread(id, nranks, rank, config));
    auto made = std::make_unique<gdrxComm>();
    made->options = joining.options;
    made->starting = std::make_unique<Starting>();
    GDRX_TRY(contained([&]() -> Result<void> {
      made->starting->thread =
          OwnThread("gdrx-init", [comm = made.get(), joining] { start(comm, joining); });
      return {};
    }));
    *comm = made.release();
    return {};
  });
  return retired_if_failed(from_c(id), result);
}

gdrxResult_t gdrxCommInitAll(gdrxComm_t* comms, int nranks, const gdrxConfig_t* config) {
  return guarded(nullptr, [&]() -> Result<void> {
    const trace::Span mark = init_mark("gdrxCommInitAll");
    if (comms == nullptr || nranks < 1) {
      return fail(Errc::invalid_argument, "comms is NULL or nranks is not positive");
    }
    std::fill_n(comms, nranks, nullptr);
    std::vector<Communicator::Options> options(static_cast<std::size_t>(nranks),
                                               GDRX_TRY(make_options(config)));
    choose_gpus(config, options);
    std::vector<std::unique_ptr<Bootstrap>> bootstraps = ThreadBootstrap::create_all(nranks);
    std::vector<Result<void>> results(static_cast<std::size_t>(nranks));
    auto siblings = std::make_shared<Siblings>();
    siblings->alive = bootstraps.size();
    siblings->destroyed.reserve(bootstraps.size());
    const auto make = [&](std::size_t rank) {
      results[rank] =
          contained([&] { return init(&comms[rank], *bootstraps[rank], options[rank]); });
      if (!results[rank]) bootstraps[rank].reset();  // nobody waits for it
    };
    const auto start_each = [&](std::vector<OwnThread>& threads) -> Result<void> {
      threads.reserve(bootstraps.size());
      for (std::size_t rank = 0; rank < bootstraps.size(); ++rank) {
        threads.emplace_back("gdrx-init", [&make, rank] { make(rank); });
      }
      return {};
    };
    Result<void> started;
    {
      std::vector<OwnThread> threads;  // each rank waits for the others while it is made
      started = contained([&] { return start_each(threads); });
      for (std::size_t rank = threads.size(); rank < bootstraps.size(); ++rank) {
        bootstraps[rank].reset();
      }
    }
    if (!started) results.front() = started;  // why the others have failed
    for (Result<void>& result : results) {
      if (result) continue;
      for (int rank = 0; rank < nranks; ++rank) {
        delete comms[rank];
        comms[rank] = nullptr;
      }
      return std::move(result);
    }
    for (int rank = 0; rank < nranks; ++rank) comms[rank]->siblings = siblings;
    return {};
  });
}

gdrxResult_t gdrxCommInitAllGather(gdrxComm_t* comm, int nranks, int rank,
                                   gdrxAllGatherFunction all_gather, void* user,
                                   const gdrxConfig_t* config) {
  return guarded(nullptr, [&]() -> Result<void> {
    const trace::Span mark = init_mark("gdrxCommInitMPI");
    GDRX_TRY(check_place(nranks, rank));
    FunctionBootstrap bootstrap(Rank{rank}, nranks,
                                [=](const void* mine, void* all, std::size_t bytes) {
                                  return all_gather(mine, all, bytes, user);
                                });
    auto made = contained([&]() -> Result<void> {
      GDRX_TRY(check_handle(comm));
      return init(comm, bootstrap, GDRX_TRY(make_options(config)));
    });
    if (!made) bootstrap.give_up(made.error());
    return made;
  });
}

gdrxResult_t gdrxCommOnWait(gdrxComm_t comm, gdrxWaitFunction on_wait, void* user) {
  if (!is_made(comm)) return gdrxInvalidArgument;
  comm->impl->wait_hook = {on_wait, user};
  return gdrxSuccess;
}

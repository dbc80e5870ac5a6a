// SPDX-License-Identifier: Apache-2.0
// gdrxCommInit*: from an id, all ranks of a process, or somebody's all-gather.
#include "collectives/comm/c_init.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "collectives/comm/function_bootstrap.hpp"
#include "collectives/gpu/load.hpp"
#include "transport/bootstrap/tcp_bootstrap.hpp"
#include "transport/bootstrap/thread_bootstrap.hpp"
#include "transport/bootstrap/unique_id.hpp"

namespace gdrx::c_api {
namespace {

// The same range as GDRX_TIMEOUT's; more is as good as no deadline.
constexpr double kLongestTimeout = 1e7;

Result<void> set_timeout(double seconds, Config& config) {
  if (std::isnan(seconds)) {
    return fail(Errc::invalid_argument, "config: timeout_seconds is not a number");
  }
  if (seconds == 0) return {};
  const bool never = seconds < 0 || seconds > kLongestTimeout;
  config.timeout =
      std::chrono::milliseconds(never ? 0 : static_cast<std::int64_t>(seconds * 1000) + 1);
  return {};
}

// Programs that were compiled with another gdrx.h know less, or more, of the struct.
Result<gdrxConfig_t> in_full(const gdrxConfig_t* given) {
  constexpr std::size_t kFirst = offsetof(gdrxConfig_t, gpus);  // of the first version
  constexpr std::size_t kMost = 1024;
  std::size_t size = 0;
  std::memcpy(&size, given, sizeof size);
  if (size < kFirst || size > kMost || size % alignof(gdrxConfig_t) != 0) {
    return fail(Errc::invalid_argument,
                "the config's size is not sizeof(gdrxConfig_t): start from "
                "GDRX_CONFIG_INITIALIZER");
  }
  gdrxConfig_t config = GDRX_CONFIG_INITIALIZER;
  std::memcpy(&config, given, std::min(size, sizeof config));
  const auto* const bytes = reinterpret_cast<const unsigned char*>(given);
  if (std::any_of(bytes + std::min(size, sizeof config), bytes + size,
                  [](unsigned char byte) { return byte != 0; })) {
    return fail(Errc::unsupported,
                "the config asks for what came after this version of gdrx: install the libgdrx.so "
                "that the program was compiled for");
  }
  return config;
}

Result<void> apply(const gdrxConfig_t& given, Communicator::Options& options) {
  // The table's own parsers check the values: one rule for environment and API.
  const auto set = [&](std::string_view name, const char* value) -> Result<void> {
    if (value == nullptr) return {};
    for (const Knob& knob : config_table()) {
      if (knob.env != name) continue;
      if (auto parsed = knob.parse(options.config, value); !parsed) {
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
  GDRX_TRY(set_timeout(given.timeout_seconds, options.config));
  if (given.on_error != nullptr) {
    options.on_error = [handler = given.on_error, user = given.on_error_user](const Error& error) {
      handler(to_c(error.code), describe(error).c_str(), user);
    };
  }
  return {};
}

Result<void> init(gdrxComm_t* comm, Bootstrap& bootstrap, Communicator::Options options) {
  auto made = std::make_unique<gdrxComm>();
  made->impl = GDRX_TRY(Communicator::create(bootstrap, std::move(options)));
  *comm = made.release();
  return {};
}

Result<void> check_place(gdrxComm_t* comm, int nranks, int rank) {
  if (comm == nullptr) return fail(Errc::invalid_argument, "comm is NULL");
  *comm = nullptr;
  if (nranks < 1 || rank < 0 || rank >= nranks) {
    return fail(Errc::invalid_argument, fmt::format("rank {} of {} is impossible", rank, nranks));
  }
  return {};
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

Result<Communicator::Options> make_options(const gdrxConfig_t* config) {
  LoadedConfig loaded = GDRX_TRY(load_config(process_environment()));
  Communicator::Options options;
  options.config = std::move(loaded.config);
  options.log = Log(options.config.log_level, stderr_sink());
  static std::once_flag warned;
  std::call_once(warned, [&] {
    for (const std::string& warning : loaded.warnings) options.log.warn("{}", warning);
  });
  if (config == nullptr) return options;
  const gdrxConfig_t full = GDRX_TRY(in_full(config));
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

gdrxResult_t gdrxCommInitRank(gdrxComm_t* comm, int nranks, gdrxUniqueId id, int rank,
                              const gdrxConfig_t* config) {
  const gdrxResult_t result = guarded(nullptr, [&]() -> Result<void> {
    const trace::Span mark = init_mark("gdrxCommInitRank");
    GDRX_TRY(check_place(comm, nranks, rank));
    Communicator::Options options = GDRX_TRY(make_options(config));
    const Deadline deadline = Deadline::after(steady_clock(), options.config.init_timeout);
    auto bootstrap =
        GDRX_TRY(TcpBootstrap::create(from_c(id), Rank{rank}, nranks, options.log, deadline,
                                      GDRX_TRY(Secret::load(options.config.secret_file))));
    return init(comm, *bootstrap, std::move(options));
  });
  // Without this rank there is no communicator: the id's root, if it is here, serves nobody.
  if (result != gdrxSuccess && result != gdrxInvalidArgument) retire_unique_id(from_c(id));
  return result;
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
    results.reserve(results.size() + 1);
    auto siblings = std::make_shared<Siblings>();
    siblings->alive = bootstraps.size();
    siblings->destroyed.reserve(bootstraps.size());
    const auto make = [&](std::size_t rank) {
      results[rank] =
          contained([&] { return init(&comms[rank], *bootstraps[rank], options[rank]); });
    };
    results.push_back(contained([&]() -> Result<void> {
      std::vector<std::jthread> threads;  // each rank waits for the others while it is made
      threads.reserve(bootstraps.size());
      for (std::size_t rank = 0; rank < bootstraps.size(); ++rank) {
        threads.emplace_back(make, rank);
      }
      return {};
    }));
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
    GDRX_TRY(check_place(comm, nranks, rank));
    FunctionBootstrap bootstrap(Rank{rank}, nranks,
                                [=](const void* mine, void* all, std::size_t bytes) {
                                  return all_gather(mine, all, bytes, user);
                                });
    return init(comm, bootstrap, GDRX_TRY(make_options(config)));
  });
}

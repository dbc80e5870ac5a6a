// SPDX-License-Identifier: Apache-2.0
// The table itself. A new variable is one row here and one member of Config.
#include "gdrx/config.hpp"

#include <sys/auxv.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "base/size_text.hpp"
#include "config_algorithm.hpp"
#include "config_mpi.hpp"
#include "config_nccl.hpp"
#include "config_threads.hpp"

extern char** environ;

namespace gdrx {
namespace {

using std::chrono::milliseconds;

Result<double> parse_number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(value)) {
    return fail(Errc::invalid_argument, "a number is expected");
  }
  return value;
}

Result<Bytes> parse_bytes(std::string_view text) {
  const auto bytes = read_size(text);
  if (!bytes) return fail(Errc::invalid_argument, "a size such as 65536, 256K or 4M is expected");
  return *bytes;
}

using Parse = std::function<Result<void>(Config&, std::string_view)>;

Parse text_into(std::string Config::*member) {
  return [member](Config& config, std::string_view text) -> Result<void> {
    config.*member = std::string(text);
    return {};
  };
}

Parse choice_into(std::string Config::*member, const std::vector<std::string_view>& allowed) {
  return [member, allowed](Config& config, std::string_view text) -> Result<void> {
    if (std::find(allowed.begin(), allowed.end(), text) == allowed.end()) {
      return fail(Errc::invalid_argument,
                  fmt::format("one of {} is expected", fmt::join(allowed, ", ")));
    }
    config.*member = std::string(text);
    return {};
  };
}

Parse duration_into(milliseconds Config::*member, double unit_ms, double least_ms) {
  return [=](Config& config, std::string_view text) -> Result<void> {
    const double value = GDRX_TRY(parse_number(text)) * unit_ms;
    if (value < least_ms || value > 1e10) {
      return fail(Errc::invalid_argument, fmt::format("between {:g} and {:g} is expected",
                                                      least_ms / unit_ms, 1e10 / unit_ms));
    }
    config.*member = milliseconds(static_cast<std::int64_t>(value));
    return {};
  };
}

Variable bytes_row(std::string_view name, std::string_view help, Bytes Config::*member,
                   std::array<Bytes, 2> limits, bool zero = false) {
  const auto parse = [=](Config& config, std::string_view text) -> Result<void> {
    const Bytes value = GDRX_TRY(parse_bytes(text));
    if ((value < limits[0] || value > limits[1]) && !(zero && value == 0)) {
      return fail(Errc::invalid_argument,
                  fmt::format("between {} and {} bytes is expected", limits[0], limits[1]));
    }
    config.*member = value;
    return {};
  };
  return {name, "bytes", help, parse, [=](const Config& c) { return std::to_string(c.*member); }};
}

Result<void> parse_level(Config& config, std::string_view text) {
  constexpr std::array<std::string_view, 4> kNames{"error", "warn", "info", "debug"};
  const auto at = std::find(kNames.begin(), kNames.end(), text);
  if (at == kNames.end()) {
    return fail(Errc::invalid_argument, "one of error, warn, info, debug is expected");
  }
  config.log_level = static_cast<Level>(at - kNames.begin());
  return {};
}

Parse flag_into(bool Config::*member) {
  return [=](Config& config, std::string_view text) -> Result<void> {
    if (text != "0" && text != "1") return fail(Errc::invalid_argument, "0 or 1 is expected");
    config.*member = text == "1";
    return {};
  };
}

Variable flag_row(std::string_view name, std::string_view help, bool Config::*member) {
  return {name, "", help, flag_into(member),
          [=](const Config& c) { return std::string(c.*member ? "1" : "0"); }};
}

Parse count_into(int Config::*member, int most) {
  return [=](Config& config, std::string_view text) -> Result<void> {
    const double value = GDRX_TRY(parse_number(text));
    if (value < 0 || value > most || value != std::floor(value)) {
      return fail(Errc::invalid_argument,
                  fmt::format("a whole number from 0 to {} is expected", most));
    }
    config.*member = static_cast<int>(value);
    return {};
  };
}

constexpr std::array<std::string_view, 4> kGpuDirect{"auto", "dma-buf", "peermem", "staged"};

Result<void> parse_gpu_direct(Config& config, std::string_view text) {
  const auto at = std::find(kGpuDirect.begin(), kGpuDirect.end(), text);
  if (at == kGpuDirect.end()) {
    return fail(Errc::invalid_argument,
                fmt::format("one of {} is expected", fmt::join(kGpuDirect, ", ")));
  }
  config.gpu_direct = static_cast<GpuDirect>(at - kGpuDirect.begin());
  return {};
}

Result<void> parse_gpu_flush(Config& config, std::string_view text) {
  if (text != "auto" && text != "always") {
    return fail(Errc::invalid_argument, "auto or always is expected");
  }
  config.gpu_flush = text == "always";
  return {};
}

// What they name is loaded, read or written.
constexpr std::array<std::string_view, 5> kPaths{
    "GDRX_MODULE_PATH", "GDRX_MPI_TABLE", "GDRX_SECRET_FILE", "GDRX_TRACE", "GDRX_TUNE_FILE"};

std::string seconds(milliseconds value) {
  return fmt::format("{:g}", static_cast<double>(value.count()) / 1000.0);
}

Result<void> parse_ports(Config& config, std::string_view text) {
  const std::size_t dash = text.find('-');
  PortRange ports;
  const auto read = [](std::string_view part, std::uint16_t& into) {
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), into);
    return error == std::errc{} && end == part.data() + part.size();
  };
  if (!text.empty() &&
      (dash == text.npos || !read(text.substr(0, dash), ports.first) ||
       !read(text.substr(dash + 1), ports.last) || ports.first == 0 || ports.last < ports.first)) {
    return fail(Errc::invalid_argument, "two ports are expected, such as 20000-20999");
  }
  config.port_range = ports;
  return {};
}

std::string show_ports(const Config& config) {
  const PortRange& ports = config.port_range;
  return ports.given() ? fmt::format("{}-{}", ports.first, ports.last) : std::string();
}

std::vector<Variable> own_variables() {
  return {
      algorithm_variable(),
      {"GDRX_TRANSPORT", "", "what carries messages: auto, shm, ucx, tcp, verbs",
       choice_into(&Config::transport, {"auto", "shm", "ucx", "tcp", "verbs"}),
       [](const Config& c) { return c.transport; }},
      flag_row("GDRX_SHM",
               "1: ranks of one host share memory, 0: never, messages between them go by UCX",
               &Config::shared_memory),
      flag_row("GDRX_GPU", "1: GPU buffers move between the GPUs of one host, 0: through the host",
               &Config::gpu),
      {"GDRX_GPU_BLOCKS", "",
       "multiprocessors that a call may keep busy on its GPU; 0: all but one",
       count_into(&Config::gpu_blocks, 1024),
       [](const Config& c) { return std::to_string(c.gpu_blocks); }},
      flag_row(
          "GDRX_REPRODUCIBLE",
          "1: the same bits whatever the size and the algorithm, reduced in the order of ranks",
          &Config::reproducible),
      {"GDRX_SOCKET_IFNAME", "",
       "interfaces for the control connections and for data over TCP: prefixes, ^ excludes, = "
       "exact; empty: by route",
       text_into(&Config::socket_ifname), [](const Config& c) { return c.socket_ifname; }},
      {"GDRX_SECRET_FILE", "",
       "file with a secret (16 bytes or more, mode 600), the same on every rank: mixed into the "
       "job's key, so that nobody gets in by what a launcher carries in clear text",
       text_into(&Config::secret_file), [](const Config& c) { return c.secret_file; }},
      {"GDRX_PORT_RANGE", "",
       "TCP ports that gdrx listens on, as 20000-20999; empty: the kernel chooses", parse_ports,
       show_ports},
      {"NCCL_SOCKET_IFNAME", "", "as GDRX_SOCKET_IFNAME, which comes first",
       text_into(&Config::nccl_socket_ifname),
       [](const Config& c) { return c.nccl_socket_ifname; }},
      {"GDRX_HOST_ID", "", "name of the host this rank believes to be on; empty: the real one",
       text_into(&Config::host_id), [](const Config& c) { return c.host_id; }},
      {"GDRX_MODULE_PATH", "", "folders of gdrx's modules, a:b; empty: beside libgdrx.so",
       text_into(&Config::module_path), [](const Config& c) { return c.module_path; }},
      flag_row("GDRX_TCP_PLAIN",
               "1: data between hosts goes over TCP in clear text, on every rank; 0: encrypted",
               &Config::tcp_plain),
      {"GDRX_UCX_TLS", "", "transports UCX may use, as UCX_TLS; tcp is refused; empty: all but tcp",
       text_into(&Config::ucx_tls), [](const Config& c) { return c.ucx_tls; }},
      {"GDRX_HCA", "",
       "NICs of the verbs transport: prefixes, ^ excludes, = exact, name:port; empty: all",
       text_into(&Config::hca), [](const Config& c) { return c.hca; }},
      {"GDRX_GID_INDEX", "",
       "verbs: entries of GID tables, as mlx5_0=3,mlx5_1:1=5, or 3 for all; empty: chosen",
       text_into(&Config::gid_index), [](const Config& c) { return c.gid_index; }},
      {"GDRX_PEER_TIMEOUT", "seconds",
       "verbs: a peer of which no NIC acknowledges or answers for so long is lost",
       duration_into(&Config::peer_timeout, 1000, 10),
       [](const Config& c) { return seconds(c.peer_timeout); }},
      bytes_row("GDRX_VERBS_STAGING", "verbs: registered memory for payloads that are not",
                &Config::verbs_staging, {1 << 20, Bytes{4} << 30}),
      {"GDRX_GPU_DIRECT", "",
       "verbs: how NICs reach GPU memory: auto, dma-buf, peermem, staged (through the host)",
       parse_gpu_direct,
       [](const Config& c) {
         return std::string(kGpuDirect.at(static_cast<std::size_t>(c.gpu_direct)));
       }},
      {"GDRX_GPU_FLUSH", "",
       "verbs: read back what NICs wrote to a GPU: auto (where it does not order it), always",
       parse_gpu_flush, [](const Config& c) { return c.gpu_flush ? "always" : "auto"; }},
      {"GDRX_TRACE", "",
       "file for a trace of every call, as Chrome and Perfetto read it; %r: rank, %p: process id; "
       "empty: none",
       text_into(&Config::trace), [](const Config& c) { return c.trace; }},
      {"GDRX_TUNE_FILE", "",
       "table of `gdrx tune` to choose algorithms by; empty: gdrx's own for such a host, or the "
       "model",
       text_into(&Config::tune_file), [](const Config& c) { return c.tune_file; }},
      {"GDRX_LOG", "", "error, warn, info or debug", parse_level,
       [](const Config& c) {
         constexpr std::array<std::string_view, 4> kNames{"error", "warn", "info", "debug"};
         return std::string(kNames.at(static_cast<std::size_t>(c.log_level)));
       }},
      {"GDRX_TIMEOUT", "seconds", "deadline of each operation",
       duration_into(&Config::timeout, 1000, 1),
       [](const Config& c) { return seconds(c.timeout); }},
      {"GDRX_INIT_TIMEOUT", "seconds", "deadline of making a communicator",
       duration_into(&Config::init_timeout, 1000, 1),
       [](const Config& c) { return seconds(c.init_timeout); }},
      {"GDRX_HEARTBEAT", "milliseconds", "interval of the liveness probes between hosts",
       duration_into(&Config::heartbeat, 1, 1),
       [](const Config& c) { return std::to_string(c.heartbeat.count()); }},
      {"GDRX_SILENCE", "seconds",
       "a rank of another host that neither says that it lives nor sends or acknowledges data "
       "for so long is lost",
       duration_into(&Config::silence, 1000, 10),
       [](const Config& c) { return seconds(c.silence); }},
      flag_row("GDRX_NET_STRICT", "plugin: 1: fail rather than let NCCL take another network",
               &Config::net_strict),
      flag_row("GDRX_NET_STATS", "plugin: 1: keep counters for `gdrx stats`", &Config::net_stats),
      flag_row("GDRX_NET_GPU",
               "plugin: 1: GPU memory goes from GPU to GPU; every rank has to be on one host",
               &Config::net_gpu),
      {"GDRX_NET_COPY_THREADS", "",
       "plugin: threads that copy within a host, NCCL's own among them; 0: by the processors "
       "and the ranks of the host, 1: that one alone",
       count_into(&Config::net_copy_threads, 64),
       [](const Config& c) { return std::to_string(c.net_copy_threads); }},
      {"GDRX_NET_NAP", "microseconds",
       "plugin: longest sleep of a call that finds nothing, over a NIC in software; 0: never",
       count_into(&Config::net_nap, 10'000),
       [](const Config& c) { return std::to_string(c.net_nap); }},
      {"GDRX_NET_SPEED", "Mbit/s", "plugin: what NCCL is told of the network; 0: what is found",
       count_into(&Config::net_speed, 10'000'000),
       [](const Config& c) { return std::to_string(c.net_speed); }},
      {"GDRX_NET_STALL", "seconds", "plugin: a transfer that does not move for so long is reported",
       duration_into(&Config::net_stall, 1000, 10),
       [](const Config& c) { return seconds(c.net_stall); }},
      bytes_row("GDRX_GPU_STAGING", "pinned host memory from the start; larger calls add to it",
                &Config::gpu_staging, {4096, Bytes{64} << 30}, true),
      bytes_row("GDRX_SLICE", "largest message of a pipelined plan; 0: chosen by size",
                &Config::slice, {1024, Bytes{16} << 20}, true),
      {"GDRX_LANES", "", "slices of a plan in flight at once; 0: chosen",
       count_into(&Config::lanes, 16), [](const Config& c) { return std::to_string(c.lanes); }},
      bytes_row("GDRX_ARENA_BLOCK", "block of the shared-memory pipeline", &Config::arena_block,
                {4096, Bytes{64} << 20}),
      {"GDRX_CMA", "",
       "two-shot of host memory writes its results straight into the other processes: 0: never, 1: "
       "where that is faster, 2: always",
       count_into(&Config::cma, 2), [](const Config& c) { return std::to_string(c.cma); }},
  };
}

const std::vector<Variable>& table() {
  static const std::vector<Variable> kTable = [] {
    std::vector<Variable> all = own_variables();
    all.push_back(threads_variable());
    all.push_back(mpi_variable());
    all.push_back(mpi_table_variable());
    const std::vector<Variable> ib = nccl_variables();
    all.insert(all.end(), ib.begin(), ib.end());
    return all;
  }();
  return kTable;
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row[b.size()];
}

}  // namespace

std::span<const Variable> config_table() { return table(); }

Environment process_environment() {
  Environment all;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    all.emplace_back(*entry);
  }
  return all;
}

std::optional<std::string_view> nearest_name(std::string_view name,
                                             std::span<const std::string_view> known) {
  std::optional<std::string_view> best;
  std::size_t best_distance = name.size() / 3 + 1;  // farther is no typing error
  for (const std::string_view candidate : known) {
    const std::size_t distance = edit_distance(name, candidate);
    if (distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

bool process_is_privileged() noexcept { return getauxval(AT_SECURE) != 0; }

Result<LoadedConfig> load_config(const Environment& environment, bool privileged) {
  LoadedConfig loaded;
  std::vector<std::string_view> known;
  for (const Variable& variable : table()) known.push_back(variable.env);
  for (const std::string_view entry : environment) {
    const bool ours = entry.starts_with("GDRX_");
    if (!ours && !entry.starts_with("NCCL_")) continue;
    const auto equals = entry.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view name = entry.substr(0, equals);
    const std::string_view value = entry.substr(equals + 1);
    if (value.empty()) continue;  // as if it were not set: how a script clears one
    const auto variable = std::find_if(table().begin(), table().end(),
                                       [&](const Variable& row) { return row.env == name; });
    if (name.starts_with("GDRX_TEST_")) continue;  // the tests' own
    if (variable == table().end()) {
      if (!ours) continue;  // NCCL's own
      const auto near = nearest_name(name, known);
      loaded.warnings.push_back(
          near ? fmt::format("{} is not a variable of gdrx: did you mean {}?", name, *near)
               : fmt::format("{} is not a variable of gdrx: `gdrx config` lists them", name));
      continue;
    }
    if (privileged && std::find(kPaths.begin(), kPaths.end(), name) != kPaths.end()) {
      loaded.warnings.push_back(
          fmt::format("{} is ignored: this program has more rights than who started it", name));
      continue;
    }
    if (auto parsed = variable->parse(loaded.config, value); !parsed) {
      return fail(Errc::invalid_argument,
                  fmt::format("{}={}: {}", name, value, parsed.error().what));
    }
  }
  return loaded;
}

}  // namespace gdrx

// SPDX-License-Identifier: Apache-2.0
#include "mpi-tests/net_perf/options.hpp"

#include <CLI/CLI.hpp>

#include "tools/describe.hpp"

namespace gdrx::net_perf {
namespace {

constexpr const char* kExamples =
    "Examples:\n"
    "  mpirun -np 2 --map-by node net_perf --test write_lat -s 8 -d mlx5_0\n"
    "                                                     beside ib_write_lat -s 8 -d mlx5_0\n"
    "  mpirun -np 2 --map-by node net_perf --test write_bw -a -q 4 --out_json_file bw.json\n"
    "  mpirun -np 2 --map-by node net_perf --test write_bw -b --verify -D 60 -s 1048576\n"
    "                                                     a minute under load, every byte checked\n"
    "Latency is half of a round trip of writes with immediate, each taken from a completion, as\n"
    "collectives take them. Bandwidth counts messages of which the receiver has said that they "
    "came.\n"
    "Exit status: 0, 1 for wrong bytes, 2 for bad options, 3 if the connection failed.\n";

constexpr std::uint64_t kLargest = 8U << 20;

struct Raw {
  std::string test = "write_bw,write_lat";
  std::vector<std::uint64_t> sizes{65536};
  bool all = false;
  std::string device;
  int qps = 0;
  int qp_timeout = -1;
  std::string transport;
};

void declare(CLI::App& app, Raw& raw, Options& options) {
  tools::takes_words(
      app.add_option("--test", raw.test, "write_bw, write_lat, or both with a comma"),
      {"write_bw", "write_lat"});
  app.add_option("-s,--size", raw.sizes, "bytes of a message, or a list with commas")
      ->delimiter(',')
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 30));
  app.add_flag("-a,--all", raw.all, "sizes 2, 4, 8 ... 8 MiB");
  app.add_option("-n,--iters", options.iterations, "messages of a row")
      ->check(CLI::Range(1, 1 << 30));
  app.add_option("--warmup", options.warmup, "messages before them")->check(CLI::Range(0, 1 << 20));
  app.add_option("-D,--duration", options.duration, "seconds of a bandwidth row, instead of -n")
      ->check(CLI::Range(0.0, 1e6));
  app.add_option(
      "--until", options.until,
      "a bandwidth row ends when this file is there, on the host of each rank that sends");
  app.add_option("-t,--tx-depth", options.depth, "messages under way")
      ->check(CLI::Range(1U, 1024U));
  app.add_option("-d,--ib-dev", raw.device, "NICs, in the words of GDRX_HCA");
  app.add_option("-q,--qp", raw.qps, "QPs of a rail")->check(CLI::Range(1, 8));
  app.add_option("-u,--qp-timeout", raw.qp_timeout, "4.096 us * 2^N")->check(CLI::Range(0, 31));
  app.add_flag("-b,--bidirectional", options.bidirectional, "bandwidth both ways at once");
  tools::takes_words(
      app.add_option("--transport", raw.transport, "verbs (the default), tcp or ucx"),
      {"verbs", "tcp", "ucx"});
  app.add_flag("--ucx-tcp", options.config.ucx_tcp,
               "UCX over TCP, to measure beside it: whoever reaches its port writes our memory");
  app.add_option("--netns", options.netns,
                 "network namespaces of rank 0 and rank 1, entered by them")
      ->delimiter(',')
      ->expected(2);
  app.add_flag("--verify", options.verify, "bandwidth: check every byte that arrives");
  app.add_option("--timeout", options.timeout, "seconds without any progress that end it");
  app.add_option("--out_json_file", options.json, "write the rows to this file");
  app.footer(kExamples);
}

Result<void> check(const Raw& raw, Options& options) {
  for (std::size_t at = 0; at <= raw.test.size();) {
    const std::size_t end = std::min(raw.test.find(',', at), raw.test.size());
    const std::string name = raw.test.substr(at, end - at);
    if (name != "write_bw" && name != "write_lat") {
      return fail(Errc::invalid_argument,
                  "--test takes write_bw and write_lat, not '" + name + "'");
    }
    (name == "write_bw" ? options.bandwidth : options.latency) = true;
    at = end + 1;
  }
  if (raw.all) {
    for (std::uint64_t size = 2; size <= kLargest; size *= 2) options.sizes.push_back(size);
  } else {
    options.sizes = raw.sizes;
  }
  if (!raw.device.empty()) options.config.hca = raw.device;
  if (raw.qps > 0) options.config.ib.qps = raw.qps;
  if (raw.qp_timeout >= 0) options.config.ib.timeout = raw.qp_timeout;
  if (!raw.transport.empty()) options.config.transport = raw.transport;
  if (options.config.transport == "auto") options.config.transport = "verbs";
  return {};
}

}  // namespace

Result<Options> parse_options(int argc, char** argv) {
  Options options;
  options.config = GDRX_TRY(load_config(process_environment())).config;
  Raw raw;
  CLI::App app("gdrx net_perf: latency and bandwidth of one endpoint, under mpirun -np 2",
               "net_perf");
  app.option_defaults()->take_last();  // as perftest
  declare(app, raw, options);
  if (argc == 2 && argv[1] == tools::kDescribe) {
    options.described = true;
    options.help_text = tools::options_of(app);
    return options;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    options.help = true;
    options.help_text = app.help();
    return options;
  } catch (const CLI::ParseError& error) {
    return fail(Errc::invalid_argument, std::string(error.what()) + " (--help lists the options)");
  }
  GDRX_TRY(check(raw, options));
  return options;
}

}  // namespace gdrx::net_perf

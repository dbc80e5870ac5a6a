// SPDX-License-Identifier: Apache-2.0
// gdrx perf.
#include <fmt/format.h>

#include <cstdio>
#include <memory>

#include "tools/commands.hpp"
#include "tools/perf/matrix_run.hpp"
#include "tools/perf/nic_perf_view.hpp"
#include "tools/perf/p2p_view.hpp"
#include "tools/support.hpp"
#include "tools/units.hpp"

namespace gdrx::tools {
namespace {

constexpr const char* kPerfExamples =
    "Examples:\n"
    "  gdrx perf                          RDMA writes of the first NIC to itself\n"
    "  gdrx perf -d mlx5_0 --use_cuda 0 -a   into memory of GPU 0, all sizes\n"
    "  gdrx perf -d mlx5_0 --use_cuda 0 --use_cuda_dmabuf --test read_bw\n"
    "  gdrx perf -d mlx5_0 --to mlx5_1 --test write_lat -s 8\n"
    "  gdrx perf --listen -d mlx5_0       one side of two hosts: its NIC and memory\n"
    "  gdrx perf node1 -d mlx5_0 -a       the other side: says what is measured\n"
    "  gdrx perf --p2p                    what the GPUs here reach of each other\n"
    "  mpirun -N 1 gdrx perf --matrix     all pairs of hosts, and which links are slow\n"
    "With GDRX_SECRET_FILE set, two hosts measure only if it holds the same on both.\n"
    "PerfOptions have the names of perftest's. Exit status: 0, 1 if something cannot be\n"
    "measured or arrives changed, 2 for bad usage.\n";

struct PerfOptions {
  std::string host;
  bool listen = false;
  std::uint16_t tcp_port = perf::kPerfPort;
  bool p2p = false;
  bool matrix = false;
  bool rails = false;
  bool all = false;
  bool of_perftest = false;  // changes nothing
  std::string size;
  std::string test = "write_bw";
  int gid_index = -1;
  int iterations = 0;
  std::string format = "text";
  perf::NicPerfOptions nic;
};

void run_p2p(const PerfOptions& options) {
  constexpr std::size_t kMost = std::size_t{16} << 30;
  perf::P2pOptions p2p;
  if (!options.size.empty()) {
    p2p.bytes = value_or_fail(parse_size("--size", options.size)) / 4096 * 4096;
  }
  if (p2p.bytes < (std::size_t{1} << 20) || p2p.bytes > kMost) {
    throw Failure{kBadUsage, "--size: 1 MiB to 16 GiB"};
  }
  if (options.iterations > 0) p2p.iterations = options.iterations;
  const perf::P2pReport report = value_or_fail(perf::measure_p2p(p2p), kFailed);
  const topo::Topology topology = value_or_fail(topo::discover({}), kFailed);
  fmt::print("{}", options.format == "json" ? perf::p2p_json(report, topology)
                                            : perf::p2p_text(report, topology));
  for (const auto& row : report.pairs) {
    for (const perf::P2pPair& pair : row) {
      if (!pair.problem.empty()) throw Failure{kFailed, pair.problem};
    }
  }
}

std::vector<std::size_t> sizes_of(const PerfOptions& options) {
  constexpr std::size_t kMost = std::size_t{1} << 30;
  constexpr std::size_t kMostOfAll = std::size_t{8} << 20;
  std::vector<std::size_t> sizes;
  if (options.all) {
    for (std::size_t bytes = 2; bytes <= kMostOfAll; bytes *= 2) sizes.push_back(bytes);
    return sizes;
  }
  const bool latency = options.test.ends_with("lat");
  const std::string text = !options.size.empty() ? options.size : latency ? "8" : "64K";
  sizes.push_back(value_or_fail(parse_size("--size", text)));
  if (sizes[0] == 0 || sizes[0] > kMost) throw Failure{kBadUsage, "--size: 1 byte to 1 GiB"};
  return sizes;
}

perf::NicPerfOptions nic_of(const PerfOptions& options) {
  perf::NicPerfOptions nic = options.nic;
  nic.test = *perf::parse_test(options.test);
  nic.sizes = sizes_of(options);
  nic.iterations = options.iterations;
  if (options.gid_index >= 0) nic.gid_index = static_cast<std::uint32_t>(options.gid_index);
  if (nic.dmabuf && nic.gpu < 0) throw Failure{kBadUsage, "--use_cuda_dmabuf needs --use_cuda"};
  if (nic.both_ways && options.test.ends_with("lat")) {
    throw Failure{kBadUsage, "-b is for bandwidth"};
  }
  return nic;
}

Config configuration() { return value_or_fail(load_config(process_environment())).config; }

void serve(const PerfOptions& options) {
  const topo::Topology topology = value_or_fail(topo::discover({}), kFailed);
  const auto judge = [&](const perf::NicPerfReport& report) {
    return perf::expectation(report, topology);
  };
  const Config config = configuration();
  const auto listening = [&](const std::string& ip, std::uint16_t port) {
    fmt::print("listening on {} port {}; on the other host: gdrx perf {} -p {}\n", ip, port, ip,
               port);
    if (config.secret_file.empty()) {
      fmt::print("without GDRX_SECRET_FILE, whoever reaches this port is served\n");
    }
    std::fflush(stdout);
  };
  const perf::NicPerfReport report = value_or_fail(
      perf::serve_here(options.tcp_port, nic_of(options), judge, config, listening), kFailed);
  fmt::print("{} of {} with {} of {}: {} sizes, the data was compared: equal\n",
             perf::to_string(report.options.test), report.from, report.to, report.host,
             report.rows.size());
}

void run_nic(const PerfOptions& options) {
  const perf::NicPerfOptions nic = nic_of(options);
  const perf::NicPerfReport report = value_or_fail(
      options.host.empty()
          ? perf::measure_nic_here(nic)
          : perf::measure_with_here(options.host, options.tcp_port, nic, configuration()),
      kFailed);
  const topo::Topology topology = value_or_fail(topo::discover({}), kFailed);
  fmt::print("{}", options.format == "json" ? perf::nic_perf_json(report, topology)
                                            : perf::nic_perf_text(report, topology));
}

// Messages of 1 MiB for a fifth of a second, unless told otherwise; as many on their way as fill
// any link, not so many that a slow one takes minutes to come to its end.
void run_matrix(const PerfOptions& options) {
  constexpr std::size_t kOnTheWay = std::size_t{16} << 20;
  PerfOptions own = options;
  if (own.all) throw Failure{kBadUsage, "--matrix is of one size, not -a"};
  if (own.test != "write_bw") throw Failure{kBadUsage, "--matrix is of write_bw, and of a latency"};
  if (own.size.empty()) own.size = "1M";
  perf::NicPerfOptions nic = nic_of(own);
  if (nic.iterations == 0 && nic.duration <= 0) nic.duration = 0.2;
  const auto most = std::max<std::size_t>(2, kOnTheWay / nic.sizes.front());
  nic.depth = static_cast<int>(std::min(most, static_cast<std::size_t>(nic.depth)));
  const bool all = value_or_fail(
      matrix_by_mpi(nic, options.rails, options.format == "json", configuration()), kFailed);
  if (!all) throw Failure{kFailed, "some pairs could not be measured"};
}

void add_nic_options(CLI::App& command, PerfOptions& options) {
  perf::NicPerfOptions& nic = options.nic;
  command.add_option("--test", options.test, "write_bw, read_bw, write_lat or read_lat")
      ->check(CLI::IsMember({"write_bw", "read_bw", "write_lat", "read_lat"}))
      ->capture_default_str();
  command.add_option("-d,--ib-dev", nic.device, "the NIC; default: the first with a port up");
  command.add_option("--to", nic.to, "another NIC of this host; default: the same");
  command.add_option("-i,--ib-port", nic.port, "its port; default: the first that is up");
  command.add_option("-x,--gid-index", options.gid_index, "default: as the transport chooses")
      ->check(CLI::Range(0, 255));
  command.add_option("-m,--mtu", nic.mtu, "256 to 4096; default: the port's")
      ->check(CLI::IsMember({256, 512, 1024, 2048, 4096}));
  command.add_flag("-a,--all", options.all, "sizes from 2 bytes to 8 MiB");
  command.add_option("-D,--duration", nic.duration, "seconds of each size, instead of --iters")
      ->check(CLI::Range(0.1, 3600.0));
  command.add_option("-t,--tx-depth", nic.depth, "messages on their way on each QP")
      ->check(CLI::Range(1, 8192))
      ->capture_default_str();
  command.add_option("-q,--qp", nic.qps, "queue pairs")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  command.add_flag("-b,--bidirectional", nic.both_ways, "both ways at once");
  command.add_option("-u,--qp-timeout", nic.timeout, "4.096 us times 2 to this power")
      ->check(CLI::Range(1, 31))
      ->capture_default_str();
  command.add_option("-S,--sl", nic.service_level, "service level")->check(CLI::Range(0, 15));
  command.add_option("--tclass", nic.traffic_class, "traffic class")->check(CLI::Range(0, 255));
  command
      .add_option("--use_cuda", nic.gpu,
                  "memory of this GPU: the far one's, between two hosts this one's")
      ->check(CLI::Range(0, 1023));
  // So that lines written for perftest work: what they ask for is so anyway.
  command.add_flag("-F,--CPU-freq", options.of_perftest,
                   "taken for perftest's sake: no CPU frequency is looked at");
  command.add_flag("--report_gbits", options.of_perftest,
                   "taken for perftest's sake: figures are in Gb/s");
  command.add_flag("--use_cuda_dmabuf", nic.dmabuf, "registered as dma-buf, not by peer memory");
}

}  // namespace

void add_perf(CLI::App& app) {
  auto* command = app.add_subcommand("perf", "how fast memory is reached: by NICs, by GPUs");
  auto options = std::make_shared<PerfOptions>();
  auto* host = command->add_option("host", options->host,
                                   "where gdrx perf --listen runs; default: within this host");
  auto* listen = command->add_flag("--listen", options->listen,
                                   "serve one measurement for another host, which says of what");
  command->add_option("-p,--port", options->tcp_port, "TCP, to agree on; 0 with --listen: any")
      ->capture_default_str();
  auto* p2p =
      command->add_flag("--p2p", options->p2p, "GPUs of this host among each other, not a NIC");
  host->excludes(listen)->excludes(p2p);
  listen->excludes(p2p);
  auto* matrix = command->add_flag("--matrix", options->matrix,
                                   "all pairs of hosts, a process of mpirun on each");
  matrix->excludes(host)->excludes(listen)->excludes(p2p);
  command
      ->add_flag("--rails", options->rails,
                 "with --matrix: each NIC with the one of its name on the other hosts")
      ->needs(matrix);
  command->add_option("-s,--size", options->size, "bytes of a message or transfer: 64K, 1M");
  command->add_option("-n,--iters", options->iterations, "messages or transfers of each size")
      ->check(CLI::Range(1, 100000000));
  command->add_option("--format", options->format, "text or json")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  add_nic_options(*command, *options);
  command->get_option("--port")->excludes(matrix);
  command->get_option("--to")->excludes(host)->excludes(listen)->excludes(matrix);
  command->get_option("--rails")->excludes(command->get_option("--ib-dev"));
  command->footer(kPerfExamples);
  command->callback([options] {
    if (options->matrix) return run_matrix(*options);
    options->p2p ? run_p2p(*options) : options->listen ? serve(*options) : run_nic(*options);
  });
}

}  // namespace gdrx::tools

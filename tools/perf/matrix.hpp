// SPDX-License-Identifier: Apache-2.0
// RDMA between all pairs of hosts, a process each: bandwidth and latency each way, in rounds of
// pairs that are apart from each other. Values only: needs no RDMA headers to be used.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gdrx/config.hpp"
#include "tools/perf/nic_perf.hpp"

namespace gdrx::perf {

/// Every process's text at every process, by rank. Called by all of them equally often.
using Gather = std::function<Result<std::vector<std::string>>(const std::string& mine)>;

/// What a host says of a rate is below: no NIC has it.
inline constexpr double kMostGigabits = 1e6;
/// Bytes of a name.
inline constexpr std::size_t kMostName = 255;

struct MatrixOptions {
  NicPerfOptions nic;   // of bandwidth; its one size and its NIC
  int pings = 300;      // messages for the latency
  bool rails = false;   // each NIC that is up on every host, with the one of its name there
  std::string version;  // of gdrx: all processes have the same one
  std::function<void(const std::string&)> progress;  // a line for a person; may be empty
};

/// From one host to another over one NIC.
struct MatrixPair {
  std::size_t from = 0;
  std::size_t to = 0;
  std::string nic;            // as asked for; empty: the first that is up
  double gigabits = 0;        // writes of the size
  double micros = 0;          // the median of a write of 8 bytes
  std::string problem;        // empty: measured
  std::string from_nic = {};  // which were opened; empty with a problem
  std::string to_nic = {};
};

struct MatrixReport {
  std::vector<std::string> hosts;  // by rank; each name once
  std::vector<std::string> nics;
  std::size_t bytes = 0;
  bool of_gpus = false;           // their memory, of which latency is until the completion
  std::vector<MatrixPair> pairs;  // in the order of nics, senders, receivers
};

/// With whom host `rank` of `ranks` is in this round, itself where it pauses. Over all rounds each
/// pair is there once, and in each round a host is in one pair at most.
std::size_t partner_in(std::size_t round, std::size_t rank, std::size_t ranks);
/// One less than an even number of hosts.
std::size_t rounds_of(std::size_t ranks);

/// What a process says of itself first.
struct MatrixHost {
  std::string name;
  std::string ip;  // where it listens; empty with a problem
  std::uint16_t port = 0;
  std::vector<std::string> nics;  // that are up
  std::string problem;
};
/// What has to be the same of all processes, as they gather and measure by it in step.
std::string plan_words(const MatrixOptions& options);
/// Error: process `rank`'s plan is another one than the first process's.
Result<void> check_plan(const std::string& text, const std::string& first, std::size_t rank);
/// Behind its plan, which check_plan() finds first.
std::string host_words(const MatrixHost& host, const std::string& plan);
Result<MatrixHost> read_matrix_host(const std::string& text);
/// Each name once, with :2 and so on behind those that are there already. What is no word of a
/// hostfile becomes a dash, and has a number from :1 on. No host has such a name.
std::vector<std::string> distinct_names(const std::vector<MatrixHost>& hosts);

std::string pair_words(const MatrixPair& pair);
/// Of what process `from` says: its own pairs alone, with figures that can be.
Result<MatrixPair> read_pair(const std::string& line, std::size_t from, std::size_t ranks);

/// Every process calls it and gets the answers of all. A pair that fails or is too late is named,
/// the others go on. Errors: the exchange failed, there is one process, somebody sent something
/// that is not of this or has another version or other options, or rails are asked for and no NIC
/// has one name on all hosts. It has no deadline of its own where `gather` has none.
Result<MatrixReport> measure_matrix_here(std::size_t rank, const std::string& host,
                                         const Gather& gather, const MatrixOptions& options,
                                         const Config& config);

}  // namespace gdrx::perf

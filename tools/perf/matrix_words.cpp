// SPDX-License-Identifier: Apache-2.0
// What processes tell each other of a matrix. A peer may have sent anything.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <sstream>

#include "base/printable.hpp"
#include "doctor/shell.hpp"
#include "tools/perf/matrix.hpp"
#include "topo/place/host_ring.hpp"

namespace gdrx::perf {
namespace {

constexpr std::size_t kMostNics = 64;
constexpr std::size_t kMostProblem = 400;

std::string one_field(const std::string& text, std::size_t most) {
  return printable(text.substr(0, most));  // a tab is a control character, too
}

bool is_plain(const std::string& name) {
  return name.size() <= kMostName && doctor::is_plain_name(name);
}

}  // namespace

std::size_t rounds_of(std::size_t ranks) { return ranks < 2 ? 0 : ranks + ranks % 2 - 1; }

std::size_t partner_in(std::size_t round, std::size_t rank, std::size_t ranks) {
  // The last seat of an even table stays, the others go round. Who sits opposite nobody pauses.
  const std::size_t rounds = rounds_of(ranks);
  const std::size_t last = rounds;
  if (rounds == 0) return rank;
  std::size_t other = 0;
  if (rank == last) {
    // The one that would be its own partner: twice it is the round, modulo an odd number.
    other = round % 2 == 0 ? round / 2 : (round + rounds) / 2;
  } else {
    other = (round + rounds - rank) % rounds;
    if (other == rank) other = last;
  }
  return other < ranks ? other : rank;
}

std::string plan_words(const MatrixOptions& options) {
  const NicPerfOptions& nic = options.nic;
  return one_field(fmt::format("{}: -s {} -n {} -D {} -q {} -t {}{}{}{}", options.version,
                               fmt::join(nic.sizes, ","), nic.iterations, nic.duration, nic.qps,
                               nic.depth, nic.both_ways ? " -b" : "",
                               nic.gpu >= 0 ? " --use_cuda" : "", options.rails ? " --rails" : ""),
                   kMostName);
}

Result<void> check_plan(const std::string& text, const std::string& first, std::size_t rank) {
  const auto plan = [](const std::string& all) {
    return one_field(all.substr(0, all.find('\t')), kMostName);
  };
  if (plan(text) == plan(first)) return {};
  return fail(Errc::protocol, fmt::format("process {} has '{}', process 0 '{}': start all alike",
                                          rank, plan(text), plan(first)));
}

std::string host_words(const MatrixHost& host, const std::string& plan) {
  return fmt::format("{}\t{}\t{}\t{}\t{}\t{}", plan, one_field(host.name, kMostName), host.ip,
                     host.port, fmt::join(host.nics, ","), one_field(host.problem, kMostProblem));
}

Result<MatrixHost> read_matrix_host(const std::string& text) {
  std::istringstream fields(text);
  MatrixHost host;
  std::string port;
  std::string nics;
  std::string plan;
  std::getline(fields, plan, '\t');
  std::getline(fields, host.name, '\t');
  std::getline(fields, host.ip, '\t');
  std::getline(fields, port, '\t');
  if (!fields) return fail(Errc::protocol, "a host is described in another way");
  std::getline(fields, nics, '\t');
  std::getline(fields, host.problem);
  host.problem = one_field(host.problem, kMostProblem);
  std::istringstream number(port);
  number >> host.port;
  const bool reached = !host.ip.empty() && host.port != 0;
  if (!number || (!reached && host.problem.empty()) || host.ip.size() > kMostName) {
    return fail(Errc::protocol, "a host is described in another way");
  }
  std::istringstream names(nics);
  for (std::string name; std::getline(names, name, ',') && host.nics.size() < kMostNics;) {
    if (!is_plain(name)) return fail(Errc::protocol, "a NIC's name is no plain word");
    host.nics.push_back(name);
  }
  return host;
}

std::vector<std::string> distinct_names(const std::vector<MatrixHost>& hosts) {
  std::set<std::string> taken;
  std::vector<std::string> names;
  for (const MatrixHost& host : hosts) {
    const std::string given = host.name.substr(0, kMostName - 8);
    std::string name = given;
    for (char& c : name) {
      if (!is_plain(std::string(1, c))) c = '-';
    }
    if (name.empty() || name[0] == '-') name.insert(0, "host");
    const auto numbered = [&](int number) {
      return fmt::format("{}{}{}", name, topo::kNoHost, number);
    };
    std::string own = name == given ? name : numbered(1);
    for (int next = 2; !taken.insert(own).second; ++next) own = numbered(next);
    names.push_back(own);
  }
  return names;
}

std::string pair_words(const MatrixPair& pair) {
  return fmt::format("{}\t{}\t{}\t{}\t{}\t{}\n", pair.to, pair.gigabits, pair.micros,
                     one_field(pair.from_nic, kMostName), one_field(pair.to_nic, kMostName),
                     one_field(pair.problem, kMostProblem));
}

Result<MatrixPair> read_pair(const std::string& line, std::size_t from, std::size_t ranks) {
  std::istringstream words(line);
  MatrixPair pair;
  pair.from = from;
  words >> pair.to >> pair.gigabits >> pair.micros;
  const bool whole = static_cast<bool>(words);
  std::string problem;
  if (words.get() == '\t') {
    std::getline(words, pair.from_nic, '\t');
    std::getline(words, pair.to_nic, '\t');
    std::getline(words, problem);
  }
  const auto is_nic = [](const std::string& name) { return name.empty() || is_plain(name); };
  pair.problem = one_field(problem, kMostProblem);
  const auto can_be = [](double figure) {
    return std::isfinite(figure) && figure >= 0 && figure <= kMostGigabits;
  };
  if (!whole || pair.to >= ranks || pair.to == from || !can_be(pair.gigabits) ||
      !std::isfinite(pair.micros) || pair.micros < 0 || !is_nic(pair.from_nic) ||
      !is_nic(pair.to_nic)) {
    return fail(Errc::protocol, fmt::format("process {} tells of no pair of its own", from));
  }
  if (pair.problem.empty() && pair.gigabits <= 0) pair.problem = "no message arrived";
  if (!pair.problem.empty()) pair.gigabits = pair.micros = 0;
  return pair;
}

}  // namespace gdrx::perf

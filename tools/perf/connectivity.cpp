// SPDX-License-Identifier: Apache-2.0
#include "tools/perf/connectivity.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <map>
#include <sstream>

#include "tools/perf/far_port.hpp"
#include "tools/perf/nic_buffer.hpp"

namespace gdrx::perf {
namespace {

constexpr std::size_t kMostPairs = 1024;  // queue pairs of a port
constexpr std::size_t kMostPorts = 64;
constexpr std::chrono::seconds kReachDeadline{20};
// 67 ms, four times: who does not answer by then is not reached.
constexpr PairOptions kReachPatience{.depth = 1, .timeout = 14, .retries = 4};

/// A port of another host, and the memory there that is written to.
struct Target {
  FarPort port;
  std::uint64_t address = 0;
  std::uint32_t rkey = 0;
};

/// A queue pair to one far port.
struct Line {
  std::size_t rank = 0;
  std::size_t far = 0;  // index of its port
  std::unique_ptr<verbs::QueuePair> qp;
  std::string problem;
  bool waiting = false;
};

struct Here {
  std::shared_ptr<NicPort> port;
  std::unique_ptr<Buffer> memory;
  std::unique_ptr<verbs::Registration> mr;
  std::shared_ptr<verbs::CompletionQueue> queue;
  std::vector<Line> lines;
};

Result<Here> open_port(const std::shared_ptr<const verbs::VerbsTable>& table,
                       const PortChoice& choice) {
  Here here;
  here.port = GDRX_TRY(NicPort::open(table, choice));
  here.memory = GDRX_TRY(Buffer::host(4096));
  here.mr = GDRX_TRY(here.memory->register_with(*here.port, Way::host));
  here.queue = GDRX_TRY(verbs::CompletionQueue::create(here.port->domain()->context(), kMostPairs));
  return here;
}

std::string port_text(const std::vector<Here>& ports) {
  std::string text;
  for (const Here& one : ports) {
    text += fmt::format("{} {} {}\n", port_words(far_port(*one.port)), one.memory->address(),
                        one.mr->rkey());
  }
  return text;
}

Result<std::vector<Target>> parse_ports(const std::string& text) {
  std::vector<Target> targets;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    Target target;
    target.port = GDRX_TRY(read_port(words));
    words >> target.address >> target.rkey;
    if (!words || targets.size() >= kMostPorts) {
      return fail(Errc::protocol, "a host describes its ports in another way");
    }
    targets.push_back(std::move(target));
  }
  return targets;
}

class Attempt {
 public:
  Attempt(std::vector<Here> ports, std::size_t rank) : here_(std::move(ports)), rank_(rank) {}

  void make(const std::vector<std::vector<Target>>& far) {
    std::size_t most = 0;
    std::size_t all = 0;
    for (const auto& ports : far) {
      most = std::max(most, ports.size());
      all += ports.size();
    }
    const bool rails_only = all > kMostPairs;
    for (std::size_t i = 0; i < here_.size(); ++i) {
      for (std::size_t rank = 0; rank < far.size(); ++rank) {
        for (std::size_t j = 0; rank != rank_ && j < far[rank].size(); ++j) {
          if (rails_only && i != j) continue;
          Line line{rank, j, nullptr, {}, false};
          auto qp = open(here_[i]);
          if (qp) line.qp = *std::move(qp);
          if (!qp) line.problem = describe(qp.error());
          here_[i].lines.push_back(std::move(line));
        }
      }
    }
  }

  // "i rank j number": queue pair of my port i for port j of that rank.
  std::string numbers() const {
    std::string text;
    for (std::size_t i = 0; i < here_.size(); ++i) {
      for (const Line& line : here_[i].lines) {
        if (!line.qp) continue;
        text += fmt::format("{} {} {} {}\n", i, line.rank, line.far, line.qp->number());
      }
    }
    return text;
  }

  void connect(const std::vector<std::vector<Target>>& far,
               const std::vector<std::string>& numbers_of) {
    std::map<std::array<std::size_t, 3>, std::uint32_t> numbers;  // rank, its port, my port
    for (std::size_t rank = 0; rank < numbers_of.size(); ++rank) {
      std::istringstream lines(numbers_of[rank]);
      std::size_t port = 0;
      std::size_t to = 0;
      std::size_t mine = 0;
      std::uint32_t number = 0;
      while (lines >> port >> to >> mine >> number) {
        if (to == rank_) numbers[{rank, port, mine}] = number & 0xffffffu;
      }
    }
    for (std::size_t i = 0; i < here_.size(); ++i) {
      for (Line& line : here_[i].lines) {
        if (!line.qp) continue;
        const auto found = numbers.find({line.rank, line.far, i});
        if (found == numbers.end()) {
          line.problem = "the other side could not make a queue pair";
          continue;
        }
        const auto way =
            route(*here_[i].port, far[line.rank][line.far].port, found->second, kReachPatience);
        const auto done = way ? line.qp->connect(*way) : tl::unexpected(way.error());
        if (!done) line.problem = describe(done.error());
      }
    }
  }

  void write(const std::vector<std::vector<Target>>& far) {
    for (Here& here : here_) {
      for (std::size_t at = 0; at < here.lines.size(); ++at) {
        Line& line = here.lines[at];
        if (!line.problem.empty()) continue;
        const Target& to = far[line.rank][line.far];
        ibv_sge piece{here.memory->address(), 8, here.mr->lkey()};
        ibv_send_wr request{};
        request.wr_id = at;
        request.opcode = IBV_WR_RDMA_WRITE;
        request.send_flags = IBV_SEND_SIGNALED;
        request.sg_list = &piece;
        request.num_sge = 1;
        request.wr.rdma.remote_addr = to.address;
        request.wr.rdma.rkey = to.rkey;
        const int error = line.qp->post(request);
        if (error != 0) line.problem = fmt::format("ibv_post_send: {}", std::strerror(error));
        line.waiting = error == 0;
      }
    }
    wait();
  }

  std::string results(const std::vector<std::vector<Target>>& far) const {
    std::string text;
    for (const Here& here : here_) {
      for (const Line& line : here.lines) {
        std::string problem = line.problem;
        std::replace(problem.begin(), problem.end(), '\n', ' ');
        text += fmt::format("{}\t{}\t{}\t{}\n", far_port(*here.port).name, line.rank,
                            far[line.rank][line.far].port.name, problem);
      }
    }
    return text;
  }

 private:
  static Result<std::unique_ptr<verbs::QueuePair>> open(const Here& here) {
    auto qp =
        GDRX_TRY(verbs::QueuePair::create(here.port->domain(), here.queue, IBV_QPT_RC, {1, 1, 0}));
    GDRX_TRY(qp->to_init(here.port->port(), 0, 0, IBV_ACCESS_REMOTE_WRITE));
    return qp;
  }

  void wait() {
    const auto end = std::chrono::steady_clock::now() + kReachDeadline;
    bool waiting = true;
    while (waiting && std::chrono::steady_clock::now() < end) {
      waiting = false;
      for (Here& here : here_) {
        std::array<ibv_wc, 32> done{};
        const int count = here.queue->poll(done);
        for (int i = 0; i < count; ++i) {
          const ibv_wc& one = done[static_cast<std::size_t>(i)];
          if (one.wr_id >= here.lines.size()) continue;
          Line& line = here.lines[one.wr_id];
          line.waiting = false;
          if (one.status != IBV_WC_SUCCESS) line.problem = completion_problem(one);
        }
        waiting |= std::any_of(here.lines.begin(), here.lines.end(),
                               [](const Line& line) { return line.waiting; });
      }
    }
    for (Here& here : here_) {
      for (Line& line : here.lines) {
        if (line.waiting) line.problem = "no completion within 20 s";
      }
    }
  }

  std::vector<Here> here_;
  std::size_t rank_;
};

std::vector<Reached> parse_results(const std::vector<std::string>& texts) {
  std::vector<Reached> all;
  for (std::size_t rank = 0; rank < texts.size(); ++rank) {
    std::istringstream lines(texts[rank]);
    for (std::string line; std::getline(lines, line);) {
      std::istringstream fields(line);
      Reached one;
      std::string to_rank;
      one.from_rank = rank;
      std::getline(fields, one.from, '\t');
      std::getline(fields, to_rank, '\t');
      std::getline(fields, one.to, '\t');
      std::getline(fields, one.problem);
      one.to_rank = std::strtoul(to_rank.c_str(), nullptr, 10);
      if (one.to_rank < texts.size()) all.push_back(std::move(one));
    }
  }
  return all;
}

}  // namespace

Result<std::vector<Reached>> reach(const std::shared_ptr<const verbs::VerbsTable>& table,
                                   std::size_t rank, const Exchange& exchange) {
  std::vector<Here> ports;
  for (const PortChoice& choice : table ? ports_up(table) : std::vector<PortChoice>()) {
    auto port = open_port(table, choice);
    if (port) ports.push_back(*std::move(port));  // what does not open is a finding of its own
  }
  std::vector<std::vector<Target>> far;
  for (const std::string& text : GDRX_TRY(exchange(port_text(ports)))) {
    far.push_back(GDRX_TRY(parse_ports(text)));
  }
  Attempt attempt(std::move(ports), rank);
  attempt.make(far);
  const auto numbers = GDRX_TRY(exchange(attempt.numbers()));
  attempt.connect(far, numbers);
  GDRX_TRY(exchange("connected"));  // nobody writes before the other side can receive
  attempt.write(far);
  return parse_results(GDRX_TRY(exchange(attempt.results(far))));  // and nobody closes before
}

Result<std::vector<Reached>> reach_here(std::size_t rank, const Exchange& exchange) {
  const auto table = verbs::load_verbs();
  return reach(table ? *table : nullptr, rank, exchange);
}

}  // namespace gdrx::perf

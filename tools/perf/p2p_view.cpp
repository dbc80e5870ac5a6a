// SPDX-License-Identifier: Apache-2.0
#include "tools/perf/p2p_view.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>

namespace gdrx::perf {
namespace {

// GB/s of payload one way of one NVLink, by the GPU's compute capability.
double nvlink_gbytes(int sm) {
  if (sm >= 100) return 50;
  if (sm >= 70) return 25;
  return sm >= 60 ? 20 : 0;
}

std::optional<std::size_t> gpu_in(const topo::Topology& topology, const P2pGpu& gpu) {
  const auto found = topology.find(gpu.bus);
  if (!found || !topology.is_gpu(*found)) return std::nullopt;
  return topo::index(*found);
}

using Cell = std::function<std::string(std::size_t from, std::size_t to)>;

// At most eight columns beside each other.
std::string matrix(const P2pReport& report, const char* title, const Cell& cell) {
  constexpr std::size_t kColumns = 8;
  std::string text = fmt::format("\n{}\n", title);
  for (std::size_t first = 0; first < report.gpus.size(); first += kColumns) {
    const std::size_t end = std::min(first + kColumns, report.gpus.size());
    text += fmt::format("{:8}", "");
    for (std::size_t to = first; to < end; ++to)
      text += fmt::format("{:>8}", fmt::format("GPU{}", to));
    text += "\n";
    for (std::size_t from = 0; from < report.gpus.size(); ++from) {
      text += fmt::format("{:8}", fmt::format("GPU{}", from));
      for (std::size_t to = first; to < end; ++to) {
        text += fmt::format("{:>8}", from == to ? "X" : cell(from, to));
      }
      text += "\n";
    }
  }
  return text;
}

std::string number(double value, const char* format) {
  return value > 0 ? fmt::format(fmt::runtime(format), value) : "-";
}

std::string limits_text(const P2pReport& report, const topo::Topology& topology) {
  std::string text;
  for (std::size_t a = 0; a < report.gpus.size(); ++a) {
    for (std::size_t b = a + 1; b < report.gpus.size(); ++b) {
      const auto limit = p2p_limit(report, topology, a, b);
      const double best = std::max(report.pairs[a][b].copy, report.pairs[a][b].store);
      if (limit && best < 0.7 * limit->gbytes) {
        text += fmt::format("low: GPU{} - GPU{}: {:.1f} GB/s of the {:.0f} GB/s of {}\n", a, b,
                            best, limit->gbytes, limit->what);
      }
      for (const auto& [from, to] : {std::pair{a, b}, std::pair{b, a}}) {
        const std::string& problem = report.pairs[from][to].problem;
        if (!problem.empty()) text += fmt::format("GPU{} to GPU{}: {}\n", from, to, problem);
      }
    }
  }
  return text;
}

}  // namespace

std::optional<P2pLimit> p2p_limit(const P2pReport& report, const topo::Topology& topology,
                                  std::size_t from, std::size_t to) {
  const auto a = gpu_in(topology, report.gpus[from]);
  const auto b = gpu_in(topology, report.gpus[to]);
  if (!a || !b) return std::nullopt;
  const int links = topology.nvlinks_between(*a, *b);
  const double each = nvlink_gbytes(report.gpus[from].sm);
  if (links > 0 && each > 0) return P2pLimit{links * each, fmt::format("NV{}", links)};
  if (links > 0 || topology.flattened()) return std::nullopt;
  const topo::Path path = topo::path(topology, topology.gpu(*a), topology.gpu(*b));
  if (!path.bottleneck) return std::nullopt;
  return P2pLimit{*path.bottleneck, topo::cell(path, true)};
}

std::string p2p_text(const P2pReport& report, const topo::Topology& topology) {
  std::string text;
  for (std::size_t i = 0; i < report.gpus.size(); ++i) {
    text += fmt::format("GPU{:<3} {}  {}\n", i, report.gpus[i].bus, report.gpus[i].model);
  }
  if (report.gpus.size() < 2) return text + "one GPU: there is no pair to measure\n";
  text +=
      fmt::format("{} MiB, {} times; GB/s is 10^9 bytes, in each direction; rows are sources.\n",
                  report.options.bytes >> 20, report.options.iterations);
  text += matrix(report, "peer access (atomics: and atomic operations)",
                 [&](std::size_t from, std::size_t to) {
                   const P2pPair& pair = report.pairs[from][to];
                   return std::string(!pair.access ? "no" : pair.atomics ? "atomics" : "yes");
                 });
  const auto show = [&](const char* title, double P2pPair::*value, const char* format) {
    const auto any = [&](const auto& row) {
      return std::any_of(row.begin(), row.end(),
                         [&](const P2pPair& pair) { return pair.*value > 0; });
    };
    if (!std::any_of(report.pairs.begin(), report.pairs.end(), any)) return;
    text += matrix(report, title, [&](std::size_t from, std::size_t to) {
      return number(report.pairs[from][to].*value, format);
    });
  };
  show("copy engine, one way, GB/s", &P2pPair::copy, "{:.1f}");
  show("copy engine, both ways at once, GB/s each", &P2pPair::copy_both, "{:.1f}");
  show("kernel stores, one way, GB/s", &P2pPair::store, "{:.1f}");
  show("kernel stores, both ways at once, GB/s each", &P2pPair::store_both, "{:.1f}");
  show("kernel loads, from the column, GB/s", &P2pPair::load, "{:.1f}");
  show("kernel loads, both ways at once, GB/s each", &P2pPair::load_both, "{:.1f}");
  show("a flag there and back by kernels, us", &P2pPair::round_trip, "{:.2f}");
  text +=
      matrix(report, "what the link carries one way, GB/s", [&](std::size_t from, std::size_t to) {
        const auto limit = p2p_limit(report, topology, from, to);
        return limit ? fmt::format("{:.0f}", limit->gbytes) : std::string("?");
      });
  text += fmt::format("\nall GPUs to all peers at once, out of each: copy engines {} GB/s",
                      number(report.copy_all, "{:.1f}"));
  text += fmt::format(", kernel\nstores {} GB/s\n", number(report.store_all, "{:.1f}"));
  return text + limits_text(report, topology);
}

std::string p2p_json(const P2pReport& report, const topo::Topology& topology) {
  auto gpus = nlohmann::ordered_json::array();
  for (const P2pGpu& gpu : report.gpus) {
    gpus.push_back({{"bus", gpu.bus}, {"model", gpu.model}, {"sm", gpu.sm}});
  }
  auto pairs = nlohmann::ordered_json::array();
  for (std::size_t from = 0; from < report.gpus.size(); ++from) {
    for (std::size_t to = 0; to < report.gpus.size(); ++to) {
      if (from == to) continue;
      const P2pPair& pair = report.pairs[from][to];
      nlohmann::ordered_json one{{"from", from},
                                 {"to", to},
                                 {"access", pair.access},
                                 {"atomics", pair.atomics},
                                 {"copy_gbytes", pair.copy},
                                 {"copy_both_gbytes", pair.copy_both},
                                 {"store_gbytes", pair.store},
                                 {"store_both_gbytes", pair.store_both},
                                 {"load_gbytes", pair.load},
                                 {"load_both_gbytes", pair.load_both},
                                 {"round_trip_us", pair.round_trip}};
      if (const auto limit = p2p_limit(report, topology, from, to)) {
        one["limit_gbytes"] = limit->gbytes;
        one["link"] = limit->what;
      }
      if (!pair.problem.empty()) one["problem"] = pair.problem;
      pairs.push_back(std::move(one));
    }
  }
  const nlohmann::ordered_json all{{"schema", 1},
                                   {"bytes", report.options.bytes},
                                   {"iterations", report.options.iterations},
                                   {"gpus", gpus},
                                   {"pairs", pairs},
                                   {"copy_all_gbytes", report.copy_all},
                                   {"store_all_gbytes", report.store_all}};
  return all.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace gdrx::perf

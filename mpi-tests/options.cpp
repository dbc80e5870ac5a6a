// SPDX-License-Identifier: Apache-2.0
#include "mpi-tests/options.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <limits>
#include <optional>
#include <sstream>

#include "base/size_text.hpp"
#include "gdrx/config.hpp"
#include "gdrx/plan.hpp"
#include "mpi-tests/provenance.hpp"
#include "tools/describe.hpp"
#include "transport/memory/cuda_memory.hpp"

namespace gdrx::bench {
namespace {

// Of all_reduce; the others have what is theirs, too.
constexpr const char* kExamples =
    "Examples:\n"
    "  mpirun -np 16 allreduce_test                       default sizes, the tuner's algorithm\n"
    "  mpirun -np 16 allreduce_test -b 64K -e 64M -f 4 --vs mpi\n"
    "                                                     beside MPI_Allreduce in the same run\n"
    "  mpirun -np 7 allreduce_test -b 4 -e 1M -f 4 -t all -o all --algo all -n 1 -w 0\n"
    "                                                     everything, checked once\n"
    "  mpirun -np 2 allreduce_test --algo ring --transport ucx --json ring.json\n"
    "  mpirun -np 8 allreduce_test --memory cuda -e 2G -f 4 --vs nccl\n"
    "                                                     a rank a GPU, graph replay, beside NCCL\n"
    "Its sisters take the same options, but -o where nothing is added: allgather_test,\n"
    "reducescatter_test, broadcast_test, reduce_test, alltoall_test, alltoallv_test, gather_test,\n"
    "scatter_test, sendrecv_test, hypercube_test.\n"
    "Exit status: 0 if every element of every rank was right, 1 if not, 2 for bad options,\n"
    "3 if a rank died, or a call or a write to stdout failed.\n";

// What the command line says, before it is checked.
struct Raw {
  std::string begin = "8";
  std::string end = "4M";
  double factor = 8;
  std::string step;
  std::optional<std::int64_t> count;
  std::string type = "float";
  std::string op = "sum";
  std::int64_t root = 0;
  std::optional<std::string> algo;  // without it GDRX_ALGO
  std::string memory = "host";
  std::string vs;
  std::string mode = "blocking";
  bool only_in = false;
  bool only_out = false;
};

constexpr const char* kDirect = "direct";  // a kernel, of no plan of its own
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 40;
constexpr std::size_t kMostSizes = 1 << 20;

Result<std::uint64_t> bytes_of(const std::string& option, const std::string& text) {
  const auto bytes = read_size(text);
  if (bytes && *bytes <= kMostBytes) return *bytes;
  return fail(Errc::invalid_argument,
              option + " takes a size such as 8, 64K or 4M, not '" + text + "'");
}

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> items;
  std::istringstream stream(list);
  for (std::string item; std::getline(stream, item, ',');) items.push_back(item);
  return items;
}

template <class T, class Parse>
Result<std::vector<T>> parse_list(const std::string& option, const std::string& list,
                                  std::size_t all, std::size_t every, Parse parse) {
  std::vector<T> values;
  if (list == "all" || list == "every") {
    for (std::size_t i = 0; i < (list == "all" ? all : every); ++i)
      values.push_back(static_cast<T>(i));
    return values;
  }
  for (const std::string& name : split(list)) {
    const auto value = parse(name);
    if (!value) {
      std::string known;
      for (std::size_t i = 0; i < every; ++i)
        known.append(" ").append(to_string(static_cast<T>(i)));
      return fail(Errc::invalid_argument,
                  option + " does not know '" + name + "'; it takes all, every or" + known);
    }
    values.push_back(*value);
  }
  if (values.empty()) return fail(Errc::invalid_argument, option + " names nothing");
  return values;
}

Result<std::vector<std::uint64_t>> sizes_of(const Raw& raw) {
  const std::uint64_t begin = GDRX_TRY(bytes_of("-b", raw.begin));
  const std::uint64_t end = GDRX_TRY(bytes_of("-e", raw.end));
  if (begin > end) return fail(Errc::invalid_argument, "-b is greater than -e");
  // No number is not over 1, and infinity is no factor of 0.
  if (raw.step.empty() && !(raw.factor > 1 && std::isfinite(raw.factor))) {
    return fail(Errc::invalid_argument, "-f must be over 1");
  }
  const std::uint64_t step = raw.step.empty() ? 0 : GDRX_TRY(bytes_of("-i", raw.step));
  if (!raw.step.empty() && step == 0) return fail(Errc::invalid_argument, "-i must not be 0");
  std::vector<std::uint64_t> sizes;
  for (std::uint64_t size = begin; size <= end;) {
    sizes.push_back(size);
    if (sizes.size() > kMostSizes) {
      return fail(Errc::invalid_argument, "-b, -e and the step make more than a million sizes");
    }
    const double next = std::min(static_cast<double>(size) * raw.factor, 2.0 * kMostBytes);
    size = step > 0 ? size + step : std::max(static_cast<std::uint64_t>(next), size + 1);
  }
  return sizes;
}

/// `asked`: by --algo. What the environment names is for the collectives that have it.
Result<std::vector<std::string>> algorithms_of(const Sister& sister, const std::string& text,
                                               bool asked) {
  std::vector<std::string> all;
  if (sister.plans) {
    for (const plan::Algorithm algorithm : plan::algorithms_of(*sister.plans)) {
      all.emplace_back(to_string(algorithm));
    }
  }
  const auto known = [&](const std::string& name) {
    const bool direct = name == kDirect && sister.kind == Kind::all_reduce;
    return name == "auto" || direct || std::find(all.begin(), all.end(), name) != all.end();
  };
  if (!asked && !known(text)) return std::vector<std::string>{"auto"};
  if (!sister.plans && text != "auto") {
    return fail(Errc::invalid_argument,
                fmt::format("--algo: {} has no algorithms to choose from", sister.call));
  }
  if (text == "all") return all;
  std::vector<std::string> chosen = split(text);
  for (const std::string& name : chosen) {
    if (known(name)) continue;
    return fail(
        Errc::invalid_argument,
        fmt::format("--algo does not know '{}'; it takes auto, all, {}{}", name,
                    fmt::join(all, ", "), sister.kind == Kind::all_reduce ? ", direct" : ""));
  }
  if (chosen.empty()) return fail(Errc::invalid_argument, "--algo names nothing");
  return chosen;
}

template <class T, std::size_t N>
std::vector<std::string> names_of(const char* more) {
  std::vector<std::string> names{"all", more};
  for (std::size_t i = 0; i < N; ++i) names.emplace_back(to_string(static_cast<T>(i)));
  return names;
}

// For completion; check() and what it calls say what is wrong, in words.
void declare_words(CLI::App& app, const Sister& sister) {
  std::vector<std::string> algorithms{"auto", "all"};
  if (sister.plans) {
    for (const plan::Algorithm one : plan::algorithms_of(*sister.plans)) {
      algorithms.emplace_back(to_string(one));
    }
  }
  using tools::takes_words;
  takes_words(app.get_option("-t"), names_of<DataType, kDataTypeCount>("every"));
  if (sister.reduces) {
    takes_words(app.get_option("-o"), names_of<ReduceOp, kNamedOpCount>("every"));
  }
  takes_words(app.get_option("--algo"), algorithms);
  takes_words(app.get_option("--transport"), {"auto", "shm", "ucx", "tcp", "verbs"});
  takes_words(app.get_option("--memory"), {"host", "cuda"});
  takes_words(app.get_option("--mode"), {"blocking", "stream", "graph"});
  takes_words(app.get_option("--vs"), {"mpi", "nccl"});
}

void declare(CLI::App& app, Raw& raw, Options& options) {
  app.add_option("-b,--minbytes", raw.begin, "smallest size, bytes (K, M, G)");
  app.add_option("-e,--maxbytes", raw.end, "largest size, bytes");
  app.add_option("-f,--stepfactor", raw.factor, "factor between sizes");
  app.add_option("-i,--stepbytes", raw.step, "bytes between sizes, instead of -f");
  app.add_option("--count", raw.count, "this many elements, instead of sizes");
  app.add_option("-t,--datatype", raw.type,
                 "type, list of types, all: NCCL's, or every: all that take -o");
  const Sister& sister = *options.sister;
  if (sister.reduces) {
    app.add_option("-o,--op", raw.op, "sum, a list, all: NCCL's five, or every: all that -t takes");
  }
  if (sister.rooted) app.add_option("-r,--root", raw.root, "the root's rank");
  app.add_option("-n,--iters", options.iterations,
                 "timed calls; without it 20, and of slow calls fewer: see --row-seconds");
  app.add_option("-w,--warmup_iters", options.warmup, "calls before them");
  app.add_option("--row-seconds", options.row_seconds,
                 "without -n: a row of 20 calls that would take longer has fewer, 3 at least");
  app.add_option("-c,--check", options.checks, "checked calls of each row, 0 for none");
  app.add_option("--algo", raw.algo,
                 "auto, all, or a list of algorithms; direct: of registered GPU buffers; without "
                 "it GDRX_ALGO");
  app.add_option("--transport", options.transport, "auto, shm, ucx, tcp, verbs");
  app.add_option("--memory", raw.memory, "host or cuda");
  app.add_option("--mode", raw.mode,
                 "cuda: blocking, stream (calls on a stream) or graph (40 calls replayed)");
  app.add_option("--vs", raw.vs, "mpi (host memory) or nccl (cuda) on the same buffers");
  app.add_option("--json", options.json, "write the rows to this file");
  app.add_option("--timeout", options.timeout, "deadline of a call, seconds");
  app.add_option("--seed", options.seed, "of the inputs");
  app.add_flag("--explain", options.explain,
               "how each row's call is carried, and why; a prediction beside what was measured");
  app.add_flag("--unaligned", options.unaligned, "buffers one byte off any alignment");
  app.add_flag("--register", options.registered,
               "buffers are registered (gdrxRegister); cuda: each row without, then with");
  app.add_flag("--register-alloc", options.allocated,
               "as --register, but in memory of gdrxGpuMemAlloc; for --memory cuda");
  if (sister.in_place) app.add_flag("--in-place", raw.only_in, "in place only");
  app.add_flag("--out-of-place", raw.only_out, "out of place only");
  if (sister.kind == Kind::all_reduce) app.footer(kExamples);
  declare_words(app, sister);
}

Result<void> check_mode(const Raw& raw, Options& options) {
  if (raw.mode == "stream") options.mode = Mode::stream;
  if (raw.mode == "graph") options.mode = Mode::graph;
  if (options.mode == Mode::blocking && raw.mode != "blocking") {
    return fail(Errc::invalid_argument, "--mode takes blocking, stream or graph");
  }
  if (!raw.vs.empty() && raw.vs != "mpi" && raw.vs != "nccl") {
    return fail(Errc::invalid_argument, "--vs takes mpi or nccl");
  }
  if (!options.cuda && (raw.vs == "nccl" || options.mode != Mode::blocking)) {
    return fail(Errc::invalid_argument, "--mode and --vs nccl are for --memory cuda");
  }
  if (options.cuda && raw.vs == "mpi") {
    return fail(Errc::unsupported, "--vs mpi compares host memory; use --memory host");
  }
  if (raw.vs == "nccl" && options.mode == Mode::blocking) options.mode = Mode::graph;
  return {};
}

Result<void> check_count(const Raw& raw, Options& options) {
  if (!raw.count) return {};
  if (options.types.size() != 1) return fail(Errc::invalid_argument, "--count takes one type");
  if (*raw.count < 0) return fail(Errc::invalid_argument, "--count must be at least 0");
  const auto count = static_cast<std::uint64_t>(*raw.count);
  const std::size_t element = size_of(options.types[0]);
  if (count > kMostBytes / element) {
    return fail(Errc::invalid_argument,
                fmt::format("--count {}: {} elements of {} bytes are more than {} bytes, the most "
                            "that a size may be",
                            count, count, element, kMostBytes));
  }
  options.sizes = {count * element};
  return {};
}

// A list of every one leaves out what does not fit: see fits().
Result<void> check_operators(const Raw& raw, const Options& options) {
  if (raw.type == "every" || raw.op == "every") return {};
  for (const DataType type : options.types) {
    for (const ReduceOp op : options.ops) {
      if (fits(options, type, op)) continue;
      if (!takes(type, op)) {
        return fail(Errc::invalid_argument,
                    fmt::format("-o: there is no {} of {}, which takes {}", to_string(op),
                                to_string(type), operators_of(type)));
      }
      return fail(Errc::unsupported, fmt::format("{} of {} is neither GPUs' nor NCCL's",
                                                 to_string(op), to_string(type)));
    }
  }
  return {};
}

Result<void> check_vs_mpi(const Options& options) {
  constexpr std::uint64_t kMost = std::numeric_limits<int>::max();
  for (const DataType type : options.types) {
    for (const std::uint64_t bytes : options.sizes) {
      if (!options.vs_mpi || bytes / size_of(type) <= kMost) continue;
      return fail(Errc::unsupported, fmt::format("--vs mpi: {} elements of {}; MPI takes {} at "
                                                 "most",
                                                 bytes / size_of(type), to_string(type), kMost));
    }
  }
  return {};
}

Result<void> check(const Raw& raw, Options& options) {
  if (raw.memory != "host" && raw.memory != "cuda") {
    return fail(Errc::invalid_argument, "--memory takes host or cuda");
  }
  options.cuda = raw.memory == "cuda";
  if (options.cuda && !cuda::missing().empty()) {
    return fail(Errc::unsupported, "--memory cuda: " + cuda::missing());
  }
  if (options.allocated && !options.cuda) {
    return fail(Errc::invalid_argument, "--register-alloc is for --memory cuda");
  }
  options.registered = options.registered || options.allocated;
  GDRX_TRY(check_mode(raw, options));
  if (options.iterations < 1 || options.warmup < 0 || options.checks < 0) {
    return fail(Errc::invalid_argument, "-n must be at least 1, -w and -c at least 0");
  }
  if (!(options.row_seconds > 0)) {
    return fail(Errc::invalid_argument, "--row-seconds must be over 0");
  }
  options.vs_mpi = raw.vs == "mpi";
  options.vs_nccl = raw.vs == "nccl";
  const Sister& sister = *options.sister;
  if (raw.root < 0 || raw.root > std::numeric_limits<int>::max()) {
    return fail(Errc::invalid_argument, "-r takes a rank");
  }
  options.root = static_cast<int>(raw.root);
  options.in_place = sister.in_place && (raw.only_in || !raw.only_out);
  options.out_of_place = raw.only_out || !raw.only_in;
  options.sizes = GDRX_TRY(sizes_of(raw));
  options.types = GDRX_TRY(parse_list<DataType>("-t", raw.type, kGpuTypeCount, kDataTypeCount,
                                                [](auto n) { return parse_data_type(n); }));
  options.ops = GDRX_TRY(parse_list<ReduceOp>("-o", raw.op, kGpuOpCount, kNamedOpCount,
                                              [](auto n) { return parse_reduce_op(n); }));
  GDRX_TRY(check_operators(raw, options));
  const std::string fallback = GDRX_TRY(load_config(process_environment())).config.algo;
  options.algorithms =
      GDRX_TRY(algorithms_of(sister, raw.algo.value_or(fallback), raw.algo.has_value()));
  const auto direct = std::find(options.algorithms.begin(), options.algorithms.end(), kDirect);
  if (raw.algo && direct != options.algorithms.end() && !(options.cuda && options.registered)) {
    return fail(Errc::invalid_argument, "--algo direct needs --memory cuda and --register");
  }
  GDRX_TRY(check_count(raw, options));
  return check_vs_mpi(options);
}

}  // namespace

bool fits(const Options& options, DataType type, ReduceOp op) noexcept {
  if (options.cuda && is_host_only(type)) return false;
  if (!options.sister->reduces) {
    return !options.vs_nccl || static_cast<std::size_t>(type) < kGpuTypeCount;
  }
  return takes(type, op) && (!options.vs_nccl || has_kernels(type, op));
}

Result<Options> parse_options(int argc, char** argv) {
  Options options;
  if (argc > 0) options.sister = &sister_of(argv[0]);
  const std::string program(options.sister->program);
  Raw raw;
  CLI::App app(
      fmt::format("gdrx {} under mpirun: speed, and every element checked", options.sister->call),
      program);
  app.option_defaults()->take_last();  // as nccl-tests: a script's options, and then one's own
  declare(app, raw, options);
  app.set_version_flag("--version", program + " of gdrx " GDRX_VERSION_TEXT ", commit " + commit());
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
  } catch (const CLI::CallForVersion& version) {
    options.help = true;
    options.help_text = version.what() + std::string("\n");
    return options;
  } catch (const CLI::ParseError& error) {
    return fail(Errc::invalid_argument, std::string(error.what()) + " (--help lists the options)");
  }
  options.iterations_asked = app.count("-n") > 0;
  GDRX_TRY(check(raw, options));
  return options;
}

}  // namespace gdrx::bench

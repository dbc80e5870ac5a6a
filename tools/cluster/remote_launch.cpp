// SPDX-License-Identifier: Apache-2.0
#include "tools/cluster/remote_launch.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <optional>

#include "tools/doctor/doctor_view.hpp"

namespace gdrx::tools {
namespace {

using SteadyClock = std::chrono::steady_clock;
constexpr std::size_t kMostReport = std::size_t{16} << 20;

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  for (const char c : text) {
    if (c != ' ') word += c;
    if (c == ' ' && !word.empty()) words.push_back(std::exchange(word, {}));
  }
  if (!word.empty()) words.push_back(word);
  return words;
}

bool is_host(std::string_view name) {
  constexpr std::string_view kMore = ".-_:";
  return !name.empty() && name.size() < 256 && name[0] != '-' &&
         std::all_of(name.begin(), name.end(), [&](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  kMore.find(c) != kMore.npos;
         });
}

/// A started program in a process group of its own, and the pipe of its output.
class Launched {
 public:
  static Result<Launched> start(std::vector<std::string> words) {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) return fail(Errc::system, "pipe", errno);
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    Launched program;
    const int error = posix_spawnp(&program.pid_, words[0].c_str(), &actions, &attributes,
                                   arguments.data(), environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    program.out_ = ends[0];
    if (error != 0) {
      close(ends[0]);
      return fail(Errc::system, "starting " + words[0], error);
    }
    return program;
  }
  int out() const { return out_; }
  /// False: its output is over.
  bool read(std::string& into) const {
    std::array<char, 65536> block{};
    const ssize_t got = ::read(out_, block.data(), block.size());
    if (got < 0 && errno == EINTR) return true;
    if (got <= 0) return false;
    into.append(block.data(), static_cast<std::size_t>(got));
    return into.size() <= kMostReport;
  }
  /// Exit status; a program that still runs is ended.
  int finish(bool end) {
    close(out_);
    if (end) kill(-pid_, SIGKILL);
    int status = 0;
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  pid_t pid_ = -1;
  int out_ = -1;
};

struct Run {
  std::size_t host = 0;
  Launched program;
  SteadyClock::time_point until;
  std::string text;
};

HostReport report_of(const std::string& host, const std::string& text, int status) {
  // mpirun and ssh may say something before the report.
  const auto begin = text.find('{');
  auto report = parse_doctor_json(begin == text.npos ? text : text.substr(begin));
  if (report) return {host, *std::move(report), {}};
  return {host,
          {},
          text.empty() ? fmt::format("it ended with status {} and said nothing", status)
                       : std::string(report.error().what)};
}

std::optional<Run> begin(std::size_t index, const std::string& host, const LaunchOptions& options,
                         HostReport& into) {
  std::vector<std::string> words = words_of(options.launcher);
  for (std::string& word : words) {
    const auto at = word.find("{host}");
    if (at != word.npos) word.replace(at, 6, host);
  }
  words.insert(words.end(), options.command.begin(), options.command.end());
  auto program = Launched::start(std::move(words));
  if (!program) {
    into = {host, {}, describe(program.error())};
    return std::nullopt;
  }
  return Run{index, *program, SteadyClock::now() + options.deadline, {}};
}

/// Reads what has come; true: this run is over, and its report made.
bool advance(Run& run, bool readable, const std::vector<std::string>& hosts,
             std::vector<HostReport>& reports) {
  HostReport& into = reports[run.host];
  if (readable && !run.program.read(run.text)) {
    const bool large = run.text.size() > kMostReport;
    const int status = run.program.finish(large);
    into = large ? HostReport{hosts[run.host], {}, "its report is larger than 16 MiB"}
                 : report_of(hosts[run.host], run.text, status);
    return true;
  }
  if (SteadyClock::now() < run.until) return false;
  run.program.finish(true);
  into = {hosts[run.host], {}, "no report within the deadline"};
  return true;
}

}  // namespace

Result<std::vector<std::string>> parse_hosts(std::string_view text) {
  std::vector<std::string> hosts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of(",\n"), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    line = line.substr(0, line.find('#'));
    const auto words = words_of(line);
    if (words.empty()) continue;
    std::string name = words[0];
    while (!name.empty() && name.back() == '\r') name.pop_back();
    if (!is_host(name)) return fail(Errc::invalid_argument, "'" + name + "' is no host's name");
    if (std::find(hosts.begin(), hosts.end(), name) == hosts.end()) hosts.push_back(name);
  }
  if (hosts.empty()) return fail(Errc::invalid_argument, "no host is named");
  return hosts;
}

std::vector<HostReport> run_on_hosts(const std::vector<std::string>& hosts,
                                     const LaunchOptions& options) {
  std::vector<HostReport> reports(hosts.size());
  std::vector<Run> running;
  std::size_t next = 0;
  while (next < hosts.size() || !running.empty()) {
    while (next < hosts.size() && running.size() < options.at_once) {
      if (auto run = begin(next, hosts[next], options, reports[next])) {
        running.push_back(std::move(*run));
      }
      ++next;
    }
    std::vector<pollfd> ends;
    for (const Run& run : running) ends.push_back({run.program.out(), POLLIN, 0});
    poll(ends.data(), ends.size(), 100);
    for (std::size_t i = running.size(); i-- > 0;) {
      if (!advance(running[i], ends[i].revents != 0, hosts, reports)) continue;
      running.erase(running.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
  return reports;
}

}  // namespace gdrx::tools

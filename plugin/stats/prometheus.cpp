// SPDX-License-Identifier: Apache-2.0
#include "plugin/stats/prometheus.hpp"
#include "base/printable.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <string_view>

namespace gdrx::stats {
namespace {

struct Metric {
  const char* name;
  const char* type;
  const char* help;
  Counter Connection::*counter;
};

constexpr Metric kMetrics[] = {
    {"messages_total", "counter", "Messages that are done.", &Connection::messages},
    {"bytes_total", "counter", "Bytes of these.", &Connection::bytes},
    {"small_messages_total", "counter", "Messages of one chunk.", &Connection::small},
    {"chunks_total", "counter", "Chunks written to or taken from a receive ring.",
     &Connection::chunks},
    {"direct_messages_total", "counter",
     "Messages written straight to their place, past the receive ring.", &Connection::direct},
    {"early_messages_total", "counter", "Messages before their receive was known.",
     &Connection::eager},
    {"waits_total", "counter", "Calls that NCCL had to repeat.", &Connection::waits},
    {"stalls_total", "counter", "Stalls that were reported.", &Connection::stalls},
    {"requests_open", "gauge", "Requests under way.", &Connection::open},
};

/// A peer's name comes from an address, but nothing that goes into quotes is taken for granted.
std::string quoted(const Label& label) {
  const auto text = label.get();
  std::string out;
  for (const char c : printable_ascii({text.data(), strnlen(text.data(), text.size())})) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string labels(int pid, const Connection& one) {
  const bool sends = one.place.way() == Way::send;
  return fmt::format(
      "pid=\"{}\",connection=\"{}\",way=\"{}\",peer=\"{}\",device=\"{}\",path=\"{}\"", pid,
      one.index.load(std::memory_order_relaxed), sends ? "send" : "receive", quoted(one.peer),
      quoted(one.device), quoted(one.path));
}

void latency(std::string& out, int pid, const std::vector<const Connection*>& open) {
  out +=
      "# HELP gdrx_net_latency_seconds From a request to its completion.\n"
      "# TYPE gdrx_net_latency_seconds histogram\n";
  for (const Connection* one : open) {
    const std::string whose = labels(pid, *one);
    std::uint64_t below = 0;
    for (std::size_t i = 0; i < kBuckets; ++i) {
      below += one->latency[i].get();
      const std::string edge = i + 1 == kBuckets
                                   ? std::string("+Inf")
                                   : fmt::format("{:g}", static_cast<double>(1ULL << i) * 1e-6);
      out +=
          fmt::format("gdrx_net_latency_seconds_bucket{{{},le=\"{}\"}} {}\n", whose, edge, below);
    }
    out += fmt::format("gdrx_net_latency_seconds_count{{{}}} {}\n", whose, below);
  }
}

}  // namespace

Result<std::shared_ptr<const Page>> open_page(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) {
    return fail(
        Errc::unsupported,
        path + ": no such counters: does the process use the plugin, with GDRX_NET_STATS=1?",
        errno);
  }
  // Copied, not mapped: its owner may cut the file at any time.
  const auto page = std::make_shared<Page>();
  struct stat found {};
  const bool known = fstat(fd, &found) == 0;
  const auto before = std::make_unique<Page>();
  const auto after = std::make_unique<Page>();
  const bool whole =
      known && S_ISREG(found.st_mode) && found.st_size == static_cast<off_t>(sizeof(Page)) &&
      read_steadily(*page, *before, *after, [fd](Page& to) {
        return pread(fd, static_cast<void*>(&to), sizeof to, 0) == static_cast<ssize_t>(sizeof to);
      });
  close(fd);
  const uid_t reader = geteuid();
  if (known && reader != 0 && found.st_uid != 0 && found.st_uid != reader) {
    return fail(Errc::unsupported,
                fmt::format("{}: user {} may have written anything into it", path, found.st_uid));
  }
  if (!whole || before->magic != kMagic || page->version != kVersion) {
    return fail(Errc::unsupported, path + ": of another gdrx version");
  }
  return page;
}

bool lives(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return false;
  const bool locked = flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  close(fd);
  return locked;
}

std::string prometheus(const Page& page) {
  std::string out;
  std::vector<const Connection*> open;
  for (const Connection& one : page.connection) {
    if (one.place.way() != Way::none) open.push_back(&one);
  }
  const auto whole = [&](const char* name, const char* help, const Counter& counter) {
    out += fmt::format("# HELP gdrx_net_{0} {1}\n# TYPE gdrx_net_{0} counter\n", name, help);
    out += fmt::format("gdrx_net_{}{{pid=\"{}\"}} {}\n", name, page.pid, counter.get());
  };
  whole("polls_total", "Polls of the transport that brought something.", page.polls);
  whole("completions_total", "What these polls brought.", page.completions);
  whole("connections_total", "Connections made.", page.connections);
  whole("uncounted_connections_total",
        "Connections that found no place here: their messages are in no line below.", page.full);
  whole("registrations_total", "Registrations of memory with a device.", page.registrations);
  whole("registration_hits_total", "Registrations that were there already.",
        page.registration_hits);
  whole("rails_down_total", "Rails that failed.", page.rails_down);
  whole("resent_total", "Parts of messages sent again after a rail failed.", page.resent);
  whole("copied_bytes_total", "Bytes copied to be sent, for want of a registration.", page.copied);
  whole("thread_chunks_total", "Chunks that went to the threads that copy.", page.thread_chunks);
  whole("naps_total", "Calls that slept, over a NIC in software.", page.naps);
  for (const Metric& metric : kMetrics) {
    out += fmt::format("# HELP gdrx_net_{0} {1}\n# TYPE gdrx_net_{0} {2}\n", metric.name,
                       metric.help, metric.type);
    for (const Connection* one : open) {
      out += fmt::format("gdrx_net_{}{{{}}} {}\n", metric.name, labels(page.pid, *one),
                         (one->*metric.counter).get());
    }
  }
  latency(out, page.pid, open);
  return out;
}

std::vector<std::string> processes(const std::string& folder) {
  constexpr std::string_view kPrefix = "gdrx-net.";
  std::vector<std::pair<int, int>> found;  // number, and which of that number
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(kPrefix)) continue;
    if (const auto place = process_of(std::string_view(name).substr(kPrefix.size()))) {
      found.push_back(*place);
    }
  }
  std::sort(found.begin(), found.end());
  std::vector<std::string> names;
  for (const auto& [pid, again] : found) {
    names.push_back(again == 0 ? std::to_string(pid) : fmt::format("{}.{}", pid, again));
  }
  return names;
}

std::optional<std::pair<int, int>> process_of(std::string_view text) {
  std::pair<int, int> place{0, 0};
  const char* last = text.data() + text.size();
  auto read = std::from_chars(text.data(), last, place.first);
  if (read.ec == std::errc() && read.ptr != last && *read.ptr == '.') {
    read = std::from_chars(read.ptr + 1, last, place.second);
  }
  const bool good =
      read.ec == std::errc() && read.ptr == last && place.first > 0 && place.second >= 0;
  return good ? std::optional(place) : std::nullopt;
}

}  // namespace gdrx::stats

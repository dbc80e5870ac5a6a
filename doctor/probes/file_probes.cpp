// SPDX-License-Identifier: Apache-2.0
// Answers from files: procfs holds most of what the probes ask for.
#include <cerrno>
#include <charconv>
#include <sstream>

#include "doctor/host_facts.hpp"

namespace gdrx::doctor {
namespace {

using topo::HostFiles;

// "Max locked memory         65536                65536                bytes"
std::optional<std::uint64_t> limit_in(const std::string& text, std::string_view name) {
  const auto at = text.find(name);
  if (at == text.npos) return std::nullopt;
  std::istringstream rest(text.substr(at + name.size()));
  std::string word;
  rest >> word;
  if (word == "unlimited") return kUnlimited;
  std::uint64_t value = 0;
  const auto parsed = std::from_chars(word.data(), word.data() + word.size(), value);
  return parsed.ec == std::errc() ? std::optional(value) : std::nullopt;
}

std::string after(const std::string& text, std::string_view key) {
  const auto at = text.find(key);
  if (at == text.npos) return {};
  std::istringstream rest(text.substr(at + key.size()));
  std::string word;
  rest >> word;
  return word;
}

std::optional<std::uint64_t> tmpfs_bytes(const std::string& mounts, const std::string& mount) {
  std::istringstream lines(mounts);
  std::optional<std::uint64_t> found;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string device, where, type, options;
    words >> device >> where >> type >> options;
    const auto at = options.find("size=");
    if (where != mount || at == options.npos) continue;
    std::uint64_t value = 0;
    const char* first = options.data() + at + 5;
    const auto parsed = std::from_chars(first, options.data() + options.size(), value);
    if (parsed.ec != std::errc()) continue;
    const char unit = parsed.ptr == options.data() + options.size() ? ' ' : *parsed.ptr;
    found = unit == 'k'   ? value << 10
            : unit == 'm' ? value << 20
            : unit == 'g' ? value << 30
                          : value;
  }
  return found;
}

}  // namespace

Probes file_probes(const std::string& root) { return file_probes(HostFiles(root)); }

Probes file_probes(const topo::HostFiles& files) {
  const auto not_here = [](const char* library) {
    return fail(Errc::unsupported, fmt::format("{} is only asked on the running host", library));
  };
  Probes probes;
  probes.libraries_asked = false;
  probes.kernel_release = [files] { return files.read("proc/sys/kernel/osrelease"); };
  probes.limit = [files](Resource resource) {
    return limit_in(files.read("proc/self/limits"),
                    resource == Resource::memlock ? "Max locked memory" : "Max open files");
  };
  probes.capabilities = [files]() -> std::optional<std::uint64_t> {
    const std::string text = after(files.read("proc/self/status"), "CapEff:");
    std::uint64_t bits = 0;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), bits, 16);
    return parsed.ec == std::errc() ? std::optional(bits) : std::nullopt;
  };
  probes.file_system_bytes = [files](const std::string& mount) {
    return tmpfs_bytes(files.read("proc/self/mounts"), mount);
  };
  probes.open_errno = [files](const std::string& path) {
    return files.exists(path.substr(path.starts_with('/') ? 1 : 0)) ? 0 : ENOENT;
  };
  probes.affinity = [files] { return after(files.read("proc/self/status"), "Cpus_allowed_list:"); };
  probes.environment = [] { return std::vector<std::string>(); };
  probes.cuda = [=]() -> Result<CudaFacts> { return not_here("CUDA"); };
  probes.nvml = [=]() -> Result<NvmlFacts> { return not_here("NVML"); };
  probes.verbs = [=]() -> Result<VerbsFacts> { return not_here("libibverbs"); };
  probes.dcb = [=](const std::string&) -> Result<Dcb> { return not_here("the kernel's DCB"); };
  probes.proofs = [=]() -> Result<std::vector<Proof>> { return not_here("RDMA"); };
  return probes;
}

}  // namespace gdrx::doctor

// SPDX-License-Identifier: Apache-2.0
#include "doctor/snapshot/probes_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <sstream>

#include "base/printable.hpp"
#include "topo/read/field_text.hpp"

namespace gdrx::doctor {
namespace {

constexpr std::array kVariables{"NCCL_IB_DISABLE", "NCCL_NET_GDR_LEVEL", "NCCL_DMABUF_ENABLE",
                                "NCCL_IB_GID_INDEX", "NCCL_TOPO_FILE"};

std::string number_or(std::optional<std::uint64_t> value) {
  if (!value) return "unknown";
  return *value == kUnlimited ? "unlimited" : std::to_string(*value);
}

std::string cuda_lines(const Result<CudaFacts>& cuda) {
  if (!cuda) return fmt::format("cuda-error {}\n", printable(describe(cuda.error())));
  std::string text = fmt::format("cuda {}\n", cuda->driver);
  for (const CudaDevice& one : cuda->devices) {
    text += fmt::format("cuda-device {} gdr={} dmabuf={} vmm={} flush={} ordering={} export={}\n",
                        one.bus, int{one.gdr}, int{one.dmabuf}, int{one.vmm_gdr}, one.flush_options,
                        one.writes_ordering, printable(one.dmabuf_export));
  }
  return text;
}

std::string nvml_lines(const Result<NvmlFacts>& nvml) {
  if (!nvml) {
    return fmt::format("nvml-error {} {}\n",
                       nvml.error().code == Errc::mismatch ? "mismatch" : "other",
                       printable(nvml.error().what));
  }
  std::string text = fmt::format("nvml {}\n", nvml->driver);
  for (const NvmlDevice& one : nvml->devices) {
    text += fmt::format("nvml-device {} bar1={} free={} memory={} mig={} persistence={}\n", one.bus,
                        one.bar1_bytes, one.bar1_free, one.memory_bytes, int{one.mig},
                        int{one.persistence});
  }
  return text;
}

using Shown = std::function<std::string(const std::string&)>;

std::string verbs_lines(const Result<VerbsFacts>& verbs, const Shown& shown) {
  if (!verbs) return fmt::format("verbs-error {}\n", printable(describe(verbs.error())));
  std::string text = fmt::format("verbs dmabuf={}\n", int{verbs->has_dmabuf});
  for (const VerbsDevice& one : verbs->devices) {
    text += fmt::format("verbs-device {} open={} dmabuf={} max={} active={}\n", shown(one.name),
                        one.open_errno, one.dmabuf_errno, one.max_mtu, one.active_mtu);
  }
  return text;
}

std::string dcb_line(const std::string& interface, const Result<Dcb>& dcb) {
  if (!dcb) {
    return fmt::format("dcb-error {} errno={} why={}\n", printable(interface), dcb.error().native,
                       printable(dcb.error().what));
  }
  return fmt::format("dcb {} pfc={} sent={} received={} dscp={}\n", printable(interface), dcb->pfc,
                     dcb->pauses_sent, dcb->pauses_received, int{dcb->dscp});
}

// A way's blank would end its word.
std::string joined(std::string text, char from, char to) {
  std::replace(text.begin(), text.end(), from, to);
  return text;
}

std::string proof_lines(const Result<std::vector<Proof>>& proofs, const Shown& shown) {
  if (!proofs) return fmt::format("proofs-error {}\n", printable(proofs.error().what));
  std::string text = "proofs tried\n";
  for (const Proof& one : *proofs) {
    text += fmt::format("proof {} port={} gpu={} way={} errno={} problem={}\n", shown(one.nic),
                        one.port, one.gpu, joined(one.way, ' ', '_'), one.native,
                        printable(one.problem));
  }
  return text;
}

// "gdr=1 dmabuf=0 export=some words": the last value may have blanks.
class Words {
 public:
  explicit Words(std::string_view line) : line_(line) {}
  std::uint64_t number(std::string_view key) const {
    const std::string_view text = value(key);
    std::uint64_t out = 0;
    std::from_chars(text.data(), text.data() + text.size(), out);
    return out;
  }
  int small(std::string_view key) const {
    return static_cast<int>(std::min<std::uint64_t>(number(key), 1u << 20));
  }
  bool flag(std::string_view key) const { return number(key) != 0; }
  std::string word(std::string_view key) const {
    const std::string_view rest = value(key);
    return std::string(rest.substr(0, rest.find(' ')));
  }
  std::string_view value(std::string_view key) const {
    const auto at = line_.find(fmt::format(" {}=", key));
    return at == line_.npos ? std::string_view() : line_.substr(at + key.size() + 2);
  }

 private:
  std::string_view line_;
};

struct Saved {
  std::map<std::string, std::string> words;  // kind: the rest of its line
  std::map<std::string, int> opened;
  std::map<std::string, std::uint64_t> file_systems;
  std::map<std::string, Result<Dcb>> dcb;
  std::vector<std::string> environment;
  Result<CudaFacts> cuda = fail(Errc::unsupported, "the snapshot says nothing of CUDA");
  Result<NvmlFacts> nvml = fail(Errc::unsupported, "the snapshot says nothing of NVML");
  Result<VerbsFacts> verbs = fail(Errc::unsupported, "the snapshot says nothing of libibverbs");
  Result<std::vector<Proof>> proofs = fail(Errc::unsupported, "the snapshot says nothing of it");
};

std::optional<std::uint64_t> number_in(const std::string& text) {
  if (text == "unlimited") return kUnlimited;
  std::uint64_t value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  return parsed.ec == std::errc() ? std::optional(value) : std::nullopt;
}

void take_library(Saved& saved, const std::string& kind, const std::string& first,
                  const std::string& rest) {
  const Words words(rest);
  if (kind == "cuda") saved.cuda = CudaFacts{topo::to_int(first, 0), {}};
  if (kind == "cuda-error") saved.cuda = fail(Errc::unsupported, rest);
  if (kind == "cuda-device" && saved.cuda) {
    saved.cuda->devices.push_back({first, words.flag("gdr"), words.flag("dmabuf"),
                                   words.flag("vmm"), words.small("flush"), words.small("ordering"),
                                   std::string(words.value("export"))});
  }
  if (kind == "nvml") saved.nvml = NvmlFacts{first, {}};
  if (kind == "nvml-error") {
    const bool mismatch = first == "mismatch";
    saved.nvml = fail(mismatch ? Errc::mismatch : Errc::unsupported,
                      rest.substr(std::min(rest.size(), first.size() + 1)));
  }
  if (kind == "nvml-device" && saved.nvml) {
    saved.nvml->devices.push_back({first, words.number("bar1"), words.number("free"),
                                   words.number("memory"), words.flag("mig"),
                                   words.flag("persistence")});
  }
  if (kind == "verbs") saved.verbs = VerbsFacts{first == "dmabuf=1", {}};
  if (kind == "verbs-error") saved.verbs = fail(Errc::unsupported, rest);
  if (kind == "verbs-device" && saved.verbs) {
    saved.verbs->devices.push_back({first, words.small("open"), words.small("dmabuf"),
                                    words.small("max"), words.small("active")});
  }
}

void take_dcb(Saved& saved, const std::string& kind, const std::string& first,
              const std::string& rest) {
  const Words words(rest);
  if (kind == "dcb") {
    saved.dcb.insert_or_assign(
        first, Dcb{static_cast<unsigned>(words.small("pfc")) & 0xffu, words.number("sent"),
                   words.number("received"), words.flag("dscp")});
  }
  if (kind == "dcb-error") {
    saved.dcb.insert_or_assign(
        first, fail(Errc::unsupported, std::string(words.value("why")), words.small("errno")));
  }
}

void take_proof(Saved& saved, const std::string& kind, const std::string& first,
                const std::string& rest) {
  const Words words(rest);
  if (kind == "proofs") saved.proofs = std::vector<Proof>();
  if (kind == "proofs-error") saved.proofs = fail(Errc::unsupported, rest);
  if (kind != "proof" || !saved.proofs) return;
  saved.proofs->push_back({first, words.small("port"), words.word("gpu"),
                           joined(words.word("way"), '_', ' '), std::string(words.value("problem")),
                           words.small("errno")});
}

Saved saved_of(std::string_view text) {
  Saved saved;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    const auto blank = line.find(' ');
    if (blank == line.npos) continue;
    const std::string kind = line.substr(0, blank);
    const std::string rest = line.substr(blank + 1);
    const std::string first = rest.substr(0, rest.find(' '));
    const std::string second(topo::trim(std::string_view(rest).substr(first.size())));
    saved.words[kind] = rest;
    if (kind == "open") saved.opened[first] = topo::to_int(second, 0);
    if (kind == "file-system") {
      if (const auto bytes = number_in(second)) saved.file_systems[first] = *bytes;
    }
    if (kind == "environment") saved.environment.push_back(rest);
    take_library(saved, kind, first, rest);
    take_dcb(saved, kind, first, rest);
    take_proof(saved, kind, first, rest);
  }
  return saved;
}

}  // namespace

std::string probes_text(const Probes& probes, const Asked& asked, bool keep_names) {
  std::string text = "# what calls answered when the snapshot was taken\n";
  text += fmt::format("kernel {}\n", printable(probes.kernel_release()));
  text += fmt::format("memlock {}\n", number_or(probes.limit(Resource::memlock)));
  text += fmt::format("nofile {}\n", number_or(probes.limit(Resource::nofile)));
  if (const auto bits = probes.capabilities()) text += fmt::format("capabilities {}\n", *bits);
  if (const auto bytes = probes.file_system_bytes("/dev/shm")) {
    text += fmt::format("file-system /dev/shm {}\n", *bytes);
  }
  text += fmt::format("affinity {}\n", printable(probes.affinity()));
  for (const std::string& entry : probes.environment()) {
    const auto equals = entry.find('=');
    const std::string name = entry.substr(0, equals);
    const bool wanted = std::find(kVariables.begin(), kVariables.end(), name) != kVariables.end();
    if (!wanted || equals == entry.npos) continue;
    const bool path = name == "NCCL_TOPO_FILE" && !keep_names;
    text += path ? "environment NCCL_TOPO_FILE=/topology.xml\n"
                 : fmt::format("environment {}\n", printable(entry));
  }
  for (const std::string& path : asked.nodes) {
    text += fmt::format("open {} {}\n", path, probes.open_errno(path));
  }
  for (const std::string& name : asked.interfaces)
    text += dcb_line(asked.shown(name), probes.dcb(name));
  return text + cuda_lines(probes.cuda()) + nvml_lines(probes.nvml()) +
         verbs_lines(probes.verbs(), asked.shown) + proof_lines(probes.proofs(), asked.shown);
}

Probes probes_of_text(Probes otherwise, std::string_view text) {
  if (text.empty()) return otherwise;
  Probes probes = otherwise;
  probes.libraries_asked = true;
  const auto saved = std::make_shared<const Saved>(saved_of(text));
  const auto word = [saved](const char* kind) {
    const auto found = saved->words.find(kind);
    return found == saved->words.end() ? std::string() : found->second;
  };
  probes.kernel_release = [=] { return word("kernel"); };
  probes.limit = [=](Resource which) {
    return number_in(word(which == Resource::memlock ? "memlock" : "nofile"));
  };
  probes.capabilities = [=] { return number_in(word("capabilities")); };
  probes.file_system_bytes = [=](const std::string& mount) -> std::optional<std::uint64_t> {
    const auto found = saved->file_systems.find(mount);
    return found == saved->file_systems.end() ? std::nullopt : std::optional(found->second);
  };
  probes.affinity = [=] { return word("affinity"); };
  probes.environment = [=] { return saved->environment; };
  probes.open_errno = [=](const std::string& path) {
    const auto found = saved->opened.find(path);
    return found == saved->opened.end() ? otherwise.open_errno(path) : found->second;
  };
  probes.cuda = [=] { return saved->cuda; };
  probes.nvml = [=] { return saved->nvml; };
  probes.verbs = [=] { return saved->verbs; };
  probes.dcb = [=](const std::string& interface) -> Result<Dcb> {
    const auto found = saved->dcb.find(interface);
    if (found != saved->dcb.end()) return found->second;
    return fail(Errc::unsupported, "the snapshot says nothing of it");
  };
  probes.proofs = [=] { return saved->proofs; };
  return probes;
}

}  // namespace gdrx::doctor

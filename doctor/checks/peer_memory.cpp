// SPDX-License-Identifier: Apache-2.0
// The two ways by which a NIC gets at GPU memory: a peer-memory module, or dma-buf. One is enough.
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "doctor/checks/checks.hpp"

namespace gdrx::doctor {
namespace {

// Where the modules show themselves: the current one, and the registrations of both.
constexpr const char* kModule = "sys/module/nvidia_peermem/version";
constexpr std::array kRegistered{"sys/kernel/mm/memory_peers/nv_mem/version",
                                 "sys/kernel/mm/memory_peers/nv_mem_nc/version"};
constexpr const char* kRetired = "sys/module/nv_peer_mem";

bool peermem_loaded(const HostFacts& facts) {
  return facts.files.exists(kModule) ||
         std::any_of(kRegistered.begin(), kRegistered.end(),
                     [&](const char* path) { return facts.files.exists(path); });
}

// Every GPU exported 2 MiB.
bool gpus_export(const HostFacts& facts) {
  return facts.cuda && !facts.cuda->devices.empty() &&
         std::all_of(facts.cuda->devices.begin(), facts.cuda->devices.end(),
                     [](const CudaDevice& device) {
                       return device.dmabuf && device.dmabuf_export.empty();
                     });
}

// Done, or every layer says yes, as far as it was asked.
bool dmabuf_proven(const HostFacts& facts) {
  const auto done = [](const Proof& one) { return one.way == "dma-buf" && one.problem.empty(); };
  if (facts.proofs && std::any_of(facts.proofs->begin(), facts.proofs->end(), done)) return true;
  const bool gpus = gpus_export(facts);
  const bool nics = facts.verbs && !facts.verbs->devices.empty() &&
                    std::all_of(facts.verbs->devices.begin(), facts.verbs->devices.end(),
                                [](const VerbsDevice& one) { return one.dmabuf_errno == EBADF; });
  return gpus && nics;
}

// From files alone: what dma-buf needs and a kernel shows.
bool dmabuf_possible(const HostFacts& facts) {
  const bool open = facts.files.read("proc/driver/nvidia/version").find("Open Kernel Module") !=
                    std::string::npos;
  return open && facts.kernel >= KernelVersion{5, 12};
}

bool in_kallsyms(const HostFacts& facts, std::string_view symbol, bool& readable) {
  const std::string text = facts.files.bytes("proc/kallsyms", std::size_t{64} << 20);
  readable = !text.empty();
  return text.find(symbol) != text.npos;
}

}  // namespace

Findings check_nvidia_peermem(const HostFacts& facts) {
  if (!facts.has_nvidia_gpu) return {};
  if (peermem_loaded(facts)) {
    return {ok("loaded", fmt::format("{} or sys/kernel/mm/memory_peers/nv_mem: there", kModule))};
  }
  const std::string evidence = std::string(kModule) + ": not there";
  if (dmabuf_proven(facts)) return {ok("not loaded and not needed: dma-buf works", evidence)};
  if (facts.topology.nics().empty() && gpus_export(facts) && dmabuf_possible(facts)) {
    return {ok("not loaded; GPU memory is exported as dma-buf, and no NIC is there to take it",
               evidence)};
  }
  if (dmabuf_possible(facts)) {
    return {finding(Severity::warn, "not loaded: dma-buf is the only way left, and not proven here",
                    evidence, load_module_lines("nvidia-peermem"))};
  }
  return {finding(Severity::fail, "not loaded, and this host has no dma-buf: GDR has no way",
                  evidence, load_module_lines("nvidia-peermem"))};
}

Findings check_nv_peer_mem_retired(const HostFacts& facts) {
  if (!facts.has_nvidia_gpu) return {};
  if (!facts.files.exists(kRetired))
    return {ok("not loaded", fmt::format("{}: not there", kRetired))};
  const bool both = facts.files.exists("sys/module/nvidia_peermem");
  return {finding(
      Severity::warn,
      both ? "nv_peer_mem is loaded beside nvidia-peermem: both register GPU memory"
           : "nv_peer_mem is retired: the driver has had nvidia-peermem since R470",
      fmt::format("{}: there; sys/module/nvidia_peermem: {}there", kRetired, both ? "" : "not "),
      {"rmmod nv_peer_mem", "systemctl disable --now nv_peer_mem",
       facts.distribution.family == Family::debian
           ? ShellLine("apt-get remove -y nvidia-peer-memory-dkms")
           : ShellLine("rpm -e nvidia_peer_memory"),
       "modprobe nvidia-peermem"})};
}

Findings check_peermem_symbols(const HostFacts& facts) {
  constexpr const char* kSymbol = "ib_register_peer_memory_client";
  if (!facts.has_nvidia_gpu || !facts.files.exists("sys/module/ib_core")) return {};
  if (peermem_loaded(facts)) return {ok("used by the loaded module", "see nvidia-peermem")};
  bool readable = false;
  if (in_kallsyms(facts, kSymbol, readable)) {
    return {ok("ib_core offers it", fmt::format("proc/kallsyms: {} is there", kSymbol))};
  }
  if (!readable) {
    return {finding(Severity::unknown, "the kernel's symbols cannot be read",
                    "proc/kallsyms: not readable", {"grep ib_register_peer /proc/kallsyms"})};
  }
  return {finding(Severity::warn,
                  "this RDMA stack has no peer memory: nvidia-peermem will not load ('Invalid "
                  "argument'); dma-buf needs it not",
                  fmt::format("proc/kallsyms: no {}", kSymbol),
                  {"# use dma-buf; or install DOCA-OFED first and build the driver after it:",
                   "dkms autoinstall && modprobe nvidia-peermem"})};
}

Findings check_dmabuf_kernel(const HostFacts& facts) {
  const std::string evidence = "uname -r: " + facts.release;
  if (facts.kernel == KernelVersion{}) {
    return {
        finding(Severity::unknown, "the kernel's version is not known", evidence, {"uname -r"})};
  }
  if (facts.kernel >= KernelVersion{5, 12}) return {ok("5.12 or newer", evidence)};
  return {
      finding(Severity::warn,
              "older than 5.12: only a vendor's RDMA stack can register dma-buf here", evidence,
              {"# move to a newer kernel, or use nvidia-peermem with DOCA-OFED", "ofed_info -s"})};
}

Findings check_dmabuf_verbs(const HostFacts& facts) {
  if (facts.topology.nics().empty()) return {};
  if (!facts.verbs) {
    return {finding(Severity::unknown, "no answer: " + facts.verbs.error().what,
                    facts.verbs.error().what, {install_line(facts.distribution, kVerbsPackage)})};
  }
  if (!facts.verbs->has_dmabuf) {
    return {finding(Severity::warn, "libibverbs lacks ibv_reg_dmabuf_mr: older than rdma-core 34",
                    "dlsym(ibv_reg_dmabuf_mr): not there",
                    {install_line(facts.distribution, kVerbsPackage)})};
  }
  Findings found;
  for (const VerbsDevice& device : facts.verbs->devices) {
    if (device.open_errno != 0) continue;  // uverbs-nodes says it
    const std::string evidence =
        fmt::format("ibv_reg_dmabuf_mr(fd -1): errno {} ({})", device.dmabuf_errno,
                    std::strerror(device.dmabuf_errno));
    found.push_back(about(
        device.name,
        device.dmabuf_errno == EBADF
            ? ok("the driver looks at the descriptor: supported", evidence)
            : finding(
                  Severity::warn, "the driver does not register dma-buf", evidence,
                  {"# a kernel from 5.12 and a NIC driver with dma-buf (mlx5, bnxt, efa, irdma),",
                   "# or the peer-memory module:", "modprobe nvidia-peermem"})));
  }
  return found;
}

}  // namespace gdrx::doctor

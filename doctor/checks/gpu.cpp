// SPDX-License-Identifier: Apache-2.0
// GPUs and their driver, as files show them.
#include <algorithm>

#include "doctor/checks/checks.hpp"
#include "topo/read/field_text.hpp"

namespace gdrx::doctor {
namespace {

constexpr int kPeermemBranch = 470;  // the first with nvidia-peermem
constexpr int kDmabufBranch = 515;   // the first with open modules and dma-buf
constexpr const char* kVersion = "proc/driver/nvidia/version";

std::string driver_version(const HostFacts& facts) {
  return facts.files.read("sys/module/nvidia/version");
}

Lines install_driver(const HostFacts& facts) {
  switch (facts.distribution.family) {
    case Family::debian:
      return {"apt-get install -y nvidia-open", "# from NVIDIA's repository; then reboot"};
    case Family::red_hat:
      return {"dnf install -y nvidia-open", "# from NVIDIA's repository; then reboot"};
    case Family::suse:
      return {"zypper install -y nvidia-open", "# from NVIDIA's repository; then reboot"};
    case Family::other:
      break;
  }
  return {"# install NVIDIA's driver, open kernel modules; then reboot"};
}

}  // namespace

Findings check_gpu_present(const HostFacts& facts) {
  std::string buses;
  for (const topo::Gpu& gpu : facts.topology.gpus()) {
    if (gpu.node != topo::kNone) buses += " " + facts.topology.nodes()[gpu.node].name;
  }
  if (facts.has_nvidia_gpu) {
    return {
        ok(fmt::format("{} seen", facts.topology.gpus().size()), "sys/bus/pci/devices:" + buses)};
  }
  if (!buses.empty()) {
    return {finding(Severity::unknown,
                    "GPUs of another vendor alone: these checks know NVIDIA's way to their memory",
                    "sys/bus/pci/devices:" + buses + ": vendor is not 0x10de",
                    {"gdrx topo --map  # where NICs are near them holds for any vendor"})};
  }
  return {finding(Severity::fail, "no NVIDIA GPU is on the PCI bus: there is nothing to register",
                  "sys/bus/pci/devices: no class 0x0300 or 0x0302 of vendor 0x10de",
                  {"lspci -d 10de:", "# a virtual machine needs the GPU passed through"})};
}

Findings check_nvidia_driver(const HostFacts& facts) {
  if (!facts.has_nvidia_gpu) return {};
  const std::string version = driver_version(facts);
  if (version.empty()) {
    return {finding(Severity::fail, "the NVIDIA driver is not loaded",
                    "sys/module/nvidia/version: not there", install_driver(facts))};
  }
  const int branch = static_cast<int>(topo::leading_number(version));
  const std::string evidence = "sys/module/nvidia/version: " + version;
  if (branch < kPeermemBranch) {
    return {finding(Severity::fail,
                    fmt::format("driver {} is older than R470: no nvidia-peermem", version),
                    evidence, install_driver(facts))};
  }
  if (branch < kDmabufBranch) {
    return {finding(Severity::warn,
                    fmt::format("driver {} is older than R515: peermem only, no dma-buf", version),
                    evidence, install_driver(facts))};
  }
  return {ok("driver " + version, evidence)};
}

Findings check_open_kernel_module(const HostFacts& facts) {
  const std::string text = facts.files.read(kVersion);
  if (text.empty()) return {};
  const std::string line = text.substr(0, text.find('\n'));
  const std::string evidence = fmt::format("{}: {}", kVersion, line);
  if (line.find("Open Kernel Module") != line.npos) return {ok("open flavour", evidence)};
  return {finding(Severity::warn, "closed flavour: no dma-buf, nvidia-peermem is the only way",
                  evidence, install_driver(facts))};
}

Findings check_driver_library(const HostFacts& facts) {
  const std::string module = driver_version(facts);
  if (module.empty()) return {};
  if (!facts.nvml) {
    const Error& error = facts.nvml.error();
    const bool differs = error.code == Errc::mismatch;
    return {finding(
        differs ? Severity::fail : Severity::unknown,
        differs ? "libnvidia-ml and the loaded module are of two versions"
                : "NVML does not answer: " + error.what,
        error.what,
        {"# a driver update without a reboot: reboot, or reload the modules:",
         "rmmod nvidia_peermem nvidia_uvm nvidia_drm nvidia_modeset nvidia", "modprobe nvidia"})};
  }
  return {ok("library and module are " + facts.nvml->driver,
             fmt::format("nvmlSystemGetDriverVersion: {}; sys/module/nvidia/version: {}",
                         facts.nvml->driver, module))};
}

Findings check_gpu_nodes(const HostFacts& facts) {
  if (driver_version(facts).empty()) return {};
  int gpus = 0;
  for (const std::string& name : facts.files.list("dev")) {
    const bool numbered =
        name.starts_with("nvidia") && name.size() > 6 &&
        std::all_of(name.begin() + 6, name.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (numbered) ++gpus;
  }
  std::string missing;
  for (const char* name : {"nvidiactl", "nvidia-uvm"}) {
    if (!facts.files.exists(std::filesystem::path("dev") / name))
      missing += fmt::format(" {}", name);
  }
  const std::string evidence = fmt::format("dev: {} of /dev/nvidia[0-9]*{}{}", gpus,
                                           missing.empty() ? "" : "; not there:", missing);
  if (gpus > 0 && missing.empty()) return {ok("all there", evidence)};
  return {finding(Severity::fail, "device nodes of the GPUs are missing: CUDA cannot start",
                  evidence,
                  facts.in_container
                      ? Lines{"# start the container with its GPUs:", "docker run --gpus all ..."}
                      : Lines{"nvidia-modprobe -u -c=0"})};
}

}  // namespace gdrx::doctor

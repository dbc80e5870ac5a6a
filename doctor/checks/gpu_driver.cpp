// SPDX-License-Identifier: Apache-2.0
// What CUDA and NVML say of each GPU. Where they do not answer: UNKNOWN, and why.
#include "doctor/checks/checks.hpp"

namespace gdrx::doctor {
namespace {

// A finding for each device, or one UNKNOWN with the reason why there is no answer.
template <class Answer, class Judge>
Findings each(const HostFacts& facts, const Answer& answer, Judge judge) {
  if (!facts.has_nvidia_gpu) return {};
  if (!answer) {
    return {finding(Severity::unknown, "no answer: " + answer.error().what, answer.error().what,
                    {"# run it where the GPUs and their driver's libraries are:", "gdrx doctor"})};
  }
  Findings found;
  for (const auto& device : answer->devices) found.push_back(about(device.bus, judge(device)));
  return found;
}

Finding judge_gdr(const CudaDevice& device) {
  const std::string evidence =
      fmt::format("cuDeviceGetAttribute(GPU_DIRECT_RDMA_SUPPORTED): {:d}", device.gdr);
  if (device.gdr) return ok("supported", evidence);
  return finding(
      Severity::fail, "this GPU does not support GPUDirect RDMA (GeForce never does)", evidence,
      {"# use a data-centre GPU, or stage through host memory:", "export NCCL_NET_GDR_LEVEL=LOC"});
}

Finding judge_dmabuf(const CudaDevice& device) {
  const std::string evidence =
      fmt::format("cuDeviceGetAttribute(DMA_BUF_SUPPORTED): {:d}", device.dmabuf);
  if (!device.dmabuf) {
    return finding(Severity::warn, "no dma-buf: nvidia-peermem is the only way", evidence,
                   {"# needs the open kernel modules from R515 and Linux 5.12:", "uname -r",
                    "head -1 /proc/driver/nvidia/version"});
  }
  if (!device.dmabuf_export.empty()) {
    return finding(Severity::fail, "says dma-buf, but exporting 2 MiB fails", device.dmabuf_export,
                   {"dmesg | grep -i nvidia | tail"});
  }
  return ok("2 MiB exported as dma-buf", evidence + "; cuMemGetHandleForAddressRange: worked");
}

Finding judge_vmm(const CudaDevice& device) {
  const std::string evidence = fmt::format(
      "cuDeviceGetAttribute(GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED): {:d}", device.vmm_gdr);
  if (device.vmm_gdr) return ok("supported", evidence);
  return finding(
      Severity::warn, "memory of cuMemCreate cannot be registered, cudaMalloc's can", evidence,
      {"export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:False", "export NCCL_CUMEM_ENABLE=0"});
}

Finding judge_flush(const CudaDevice& device) {
  const std::string evidence = fmt::format("WRITES_ORDERING: {}, FLUSH_WRITES_OPTIONS: {}",
                                           device.writes_ordering, device.flush_options);
  if (device.writes_ordering >= 100) return ok("a NIC's writes are seen in order", evidence);
  if (device.flush_options != 0) {
    return ok("writes need a flush, and there is one (cuFlushGPUDirectRDMAWrites)", evidence);
  }
  return finding(Severity::slow, "writes need a flush, and only an RDMA read does it", evidence,
                 {"# gdrx and NCCL flush by an RDMA read by themselves; leave it on:",
                  "unset NCCL_GDR_FLUSH_DISABLE"});
}

Finding judge_bar1(const NvmlDevice& device) {
  const std::string evidence = fmt::format(
      "nvmlDeviceGetBAR1MemoryInfo: total {}, free {}; memory {}", bytes_text(device.bar1_bytes),
      bytes_text(device.bar1_free), bytes_text(device.memory_bytes));
  if (device.bar1_bytes < device.memory_bytes) {
    return finding(
        Severity::warn,
        fmt::format("BAR1 is {}: registering more than that fails with ENOMEM",
                    bytes_text(device.bar1_bytes)),
        evidence,
        {"# BIOS: turn on Above 4G Decoding and Resizable BAR", "nvidia-smi -q -d MEMORY"});
  }
  if (device.bar1_free < (std::uint64_t{1} << 30)) {
    return finding(Severity::warn, "BAR1 is nearly used up: registrations will fail", evidence,
                   {"nvidia-smi pmon -c 1", "# end what holds registrations"});
  }
  return ok("covers the whole memory", evidence);
}

Finding judge_mig(const NvmlDevice& device) {
  const std::string evidence = fmt::format("nvmlDeviceGetMigMode: {:d}", device.mig);
  if (!device.mig) return ok("off", evidence);
  return finding(Severity::warn, "divided into instances (MIG): no P2P, GDR depends on the driver",
                 evidence, {"nvidia-smi -mig 0"});
}

Finding judge_persistence(const NvmlDevice& device) {
  const std::string evidence =
      fmt::format("nvmlDeviceGetPersistenceMode: {:d}", device.persistence);
  if (device.persistence) return ok("on", evidence);
  return finding(Severity::warn, "the driver lets go of an idle GPU: starts take seconds", evidence,
                 {"systemctl enable --now nvidia-persistenced"});
}

}  // namespace

Findings check_cuda_gdr(const HostFacts& facts) { return each(facts, facts.cuda, judge_gdr); }
Findings check_cuda_dmabuf(const HostFacts& facts) { return each(facts, facts.cuda, judge_dmabuf); }
Findings check_cuda_vmm_gdr(const HostFacts& facts) { return each(facts, facts.cuda, judge_vmm); }
Findings check_cuda_flush(const HostFacts& facts) { return each(facts, facts.cuda, judge_flush); }
Findings check_mig(const HostFacts& facts) { return each(facts, facts.nvml, judge_mig); }
Findings check_persistence(const HostFacts& facts) {
  return each(facts, facts.nvml, judge_persistence);
}
Findings check_bar1(const HostFacts& facts) { return each(facts, facts.nvml, judge_bar1); }

}  // namespace gdrx::doctor

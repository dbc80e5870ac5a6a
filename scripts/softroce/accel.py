# SPDX-License-Identifier: Apache-2.0
"""KVM or emulation."""
import os, subprocess

from softroce.common import Failure


def choose_accel(wanted, cluster, image, qemu):
    """KVM when a kernel really boots on it (a device file alone proves nothing), else TCG: (name, why)."""
    if wanted == "tcg":
        return "tcg", "TCG (asked for)"
    reason = ""
    loaded = set(os.listdir("/sys/module")) if os.path.isdir("/sys/module") else set()
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        reason = "no access to /dev/kvm"
    elif "kvm_pvm" in loaded and not loaded & {"kvm_intel", "kvm_amd"}:
        reason = "this KVM runs only kernels made for it (PVM)"
    else:
        argv = [*qemu, "-nodefaults", "-display", "none", "-machine", "q35", "-accel", "kvm", "-cpu", "host", "-m", "512",
                "-no-reboot", "-kernel", image, "-initrd", cluster.path("initramfs"), "-serial", "stdio",
                "-append", "console=ttyS0 quiet panic=-1 gdrx.probe"]
        try:
            done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=15)
            if "gdrx-probe" in done.stdout:
                return "kvm", "KVM"
            reason = (done.stderr.strip().splitlines() or ["a kernel does not boot on it"])[0]
        except subprocess.TimeoutExpired:
            reason = "a kernel does not boot on it within 15 s"
    if wanted == "kvm":
        raise Failure(f"--accel kvm: {reason}")
    return "tcg", f"TCG (not KVM: {reason})"

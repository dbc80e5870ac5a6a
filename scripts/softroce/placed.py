# SPDX-License-Identifier: Apache-2.0
"""Steps of softroce-test: jobs that `gdrx run` starts in two guests, by mpirun and by torchrun."""
import os, pathlib, re

from softroce.common import ctl_ip
from softroce.harness import Wrong, expect

ROOT = pathlib.Path(__file__).resolve().parents[2]
JOB = ROOT / "scripts" / "softroce" / "torch_job.py"


def placed_mpirun(guests):
    """Four ranks, a core each: ranks and gdrx's own threads are on it, and the job ends right."""
    status, out = guests.run(["gdrx", "run", "--report", "-np", "4", "allreduce_test", "--transport", "verbs", "--algo", "ring",
                              "-b", "4K", "-e", "64K", "-f", "16", "-n", "1", "-w", "0", "--out-of-place"], 400,
                             env=["GDRX_LOG=info", "GDRX_PEER_TIMEOUT=60"])
    expect(status == 0 and "# OK: 4 ranks" in out, f"status {status}", out)
    for rank in (0, 1):
        said = len(re.findall(rf"gdrx: rank {rank} of 2 here: CPUs {rank}:", out))
        expect(said == 2, f"{said} hosts of two say where their rank {rank} is", out)
        said = len(re.findall(rf"thread gdrx-progress: CPUs {rank}\b", out))
        expect(said == 2, f"{said} of two progress threads are on CPU {rank}", out)
    status, out = guests.run(["gdrx", "run", "-np", "4", "sh", "-c", "exit 7"], 200)
    expect(status == 7, f"a job that fails ends with {status}, not 7", out)
    return "4 ranks and their threads on their cores, 0 wrong; a failed job's status"


def placed_torchrun(guests):
    """Two workers a guest, which meet and add. Needs a PyTorch: build/torch-venv (scripts/torch-env), or TORCH_GDRX_VENV. An
    emulated guest on a busy machine takes minutes to import it."""
    venv = pathlib.Path(os.environ.get("TORCH_GDRX_VENV") or ROOT / "build" / "torch-venv")
    if not (venv / "bin" / "torchrun").exists():
        return f"left out: no torchrun in {venv}"
    env = [f"PATH={venv}/bin:{guests.env['PATH']}", "GLOO_SOCKET_IFNAME=ctl", "OMP_NUM_THREADS=1"]

    def node(guest):
        words = ["gdrx", "run", "--launcher", "torchrun", "--report", "-np", "2", "--nnodes=2", f"--node_rank={guest}",
                 f"--master_addr={ctl_ip(0)}", "--master_port=7300", "--", str(JOB)]
        return guests.start(words, 1800, env=env, guest=guest)

    running = [node(0), node(1)]
    try:
        ends = [each.finish(1800) for each in running]
    except Wrong:
        for each in running:
            each.stop()
        raise
    for guest, (status, out) in enumerate(ends):
        expect(status == 0, f"guest {guest}: status {status}", out)
        for local in (0, 1):
            expect(re.search(rf"^rank {2 * guest + local} of 4: CPUs \[{local}\], sum 10$", out, re.M),
                   f"guest {guest}: worker {local} is not on its CPU, or adds wrong", out)
    return "4 workers on their cores, the sum right"

# SPDX-License-Identifier: Apache-2.0
"""Rank, size and address from mpirun or srun, where torchrun's variables are not set."""
import importlib
import os
import pathlib
import random
import re
import socket
import time

WAIT = 60.0


class LauncherError(RuntimeError):
    """The launcher's variables are not enough."""


def _open_mpi(env) -> dict:
    found = {"RANK": env["OMPI_COMM_WORLD_RANK"], "WORLD_SIZE": env["OMPI_COMM_WORLD_SIZE"],
             "LOCAL_RANK": env.get("OMPI_COMM_WORLD_LOCAL_RANK", "0"),
             "LOCAL_WORLD_SIZE": env.get("OMPI_COMM_WORLD_LOCAL_SIZE", "1")}
    job = env.get("PMIX_NAMESPACE") or env.get("OMPI_MCA_ess_base_jobid", "0")
    if found["LOCAL_WORLD_SIZE"] == found["WORLD_SIZE"]:
        folder = env.get("PMIX_SERVER_TMPDIR") or env.get("OMPI_MCA_orte_jobfam_session_dir")
        found["MASTER_ADDR"] = "127.0.0.1"
        found["MASTER_PORT"] = (_agreed_port(folder, job, found["RANK"] == "0") if folder
                                else _port_of(job))
        return found
    # Rank 0 is on mpirun's own host, unless a hostfile says otherwise.
    home = re.search(r"tcp://([0-9.]+)", env.get("OMPI_MCA_orte_hnp_uri", ""))
    if home is None:
        raise LauncherError("gdrx: mpirun started ranks on several hosts and does not say where it "
                            "is: set MASTER_ADDR and MASTER_PORT with -x")
    found["MASTER_ADDR"], found["MASTER_PORT"] = home.group(1), _port_of(job)
    return found


def _slurm(env) -> dict:
    address = env.get("SLURM_LAUNCH_NODE_IPADDR")
    if int(env.get("SLURM_NNODES", "1")) == 1:
        address = "127.0.0.1"
    if not address:
        raise LauncherError("gdrx: srun does not say where rank 0 is: set MASTER_ADDR and MASTER_PORT")
    return {"RANK": env["SLURM_PROCID"], "WORLD_SIZE": env["SLURM_NTASKS"],
            "LOCAL_RANK": env.get("SLURM_LOCALID", "0"), "MASTER_ADDR": address,
            "MASTER_PORT": _port_of(f"{env.get('SLURM_JOB_ID')}.{env.get('SLURM_STEP_ID')}")}


def _port_of(job: str) -> str:
    """A port that all ranks of a job find by themselves: of 20000 to 29999."""
    return str(20000 + sum(ord(letter) * 31 ** i for i, letter in enumerate(job)) % 10000)


def _free_port() -> str:
    """Below those that the kernel gives to connections, so that none takes it before the store does."""
    for port in random.sample(range(20000, 30000), 100):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return str(port)
    raise LauncherError("gdrx: no free port from 20000 to 29999")


def _agreed_port(folder: str, job: str, first: bool) -> str:
    """A free port that rank 0 takes and writes into the job's own folder of this host."""
    note = pathlib.Path(folder) / f"gdrx-port-{job}"
    if first:
        port = _free_port()
        draft = note.with_suffix(".draft")
        draft.write_text(port)
        draft.rename(note)
        return port
    end = time.monotonic() + WAIT
    while not note.exists():
        if time.monotonic() > end:
            raise LauncherError(f"gdrx: rank 0 has not written {note} within {WAIT:.0f} s")
        time.sleep(0.01)
    return note.read_text()


def found(env) -> dict:
    """The variables that torchrun would have set; empty if no launcher is known."""
    if "OMPI_COMM_WORLD_RANK" in env:
        return _open_mpi(env)
    if "SLURM_PROCID" in env and "SLURM_NTASKS" in env:
        return _slurm(env)
    return {}


def serve_env():
    """env:// asks the launcher, too, where MASTER_ADDR is not set and it would raise."""
    # The package has a function of this name, too.
    rendezvous = importlib.import_module("torch.distributed.rendezvous")
    handlers = getattr(rendezvous, "_rendezvous_handlers", None)
    if handlers is None or "env" not in handlers or hasattr(handlers["env"], "gdrx"):
        return
    original = handlers["env"]

    def handler(url, *args, **kwargs):
        if "MASTER_ADDR" not in os.environ:
            for name, value in found(os.environ).items():
                os.environ.setdefault(name, value)
        yield from original(url, *args, **kwargs)

    handler.gdrx = True
    handlers["env"] = handler

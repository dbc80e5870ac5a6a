# SPDX-License-Identifier: Apache-2.0
"""Rank, size and the way of the unique id where a launcher has started the ranks.

The id is a secret, so it goes by a file that only this user can read.
"""
from __future__ import annotations

import contextlib
import hashlib
import os
import pathlib
import stat
import tempfile
import time
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from gdrx import capi
from gdrx.errors import Error, Result
from gdrx.launcher import WAIT

_made = 0  # communicators by this process: each has a file of its own, in the same order on all ranks


class Place(NamedTuple):
    rank: int
    size: int
    one_host: bool
    job: str     # what tells this start of this job from any other
    folder: str  # of the launcher, for this job on this host; may be empty


def _torchrun_job(env: Mapping[str, str]) -> str:
    """The ranks of a host have one parent, whose number is another's only after it has ended."""
    parent = os.getppid()
    with open(f"/proc/{parent}/stat", encoding="utf-8", errors="replace") as file:
        began = file.read().rpartition(")")[2].split()[19]
    return " ".join([str(parent), began] + [env.get(name, "") for name in (
        "MASTER_PORT", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT")])


def place(env: Mapping[str, str]) -> Place:
    """Where a launcher has put this process. Raises Error if there is none."""
    # First: what torchrun starts may have the variables of srun, too, which are of torchrun.
    if "RANK" in env and "WORLD_SIZE" in env:
        size = env["WORLD_SIZE"]
        return Place(int(env["RANK"]), int(size), env.get("LOCAL_WORLD_SIZE", size) == size, _torchrun_job(env), "")
    if "OMPI_COMM_WORLD_RANK" in env:
        size = env["OMPI_COMM_WORLD_SIZE"]
        folder = env.get("PMIX_SERVER_TMPDIR") or env.get("OMPI_MCA_orte_jobfam_session_dir", "")
        return Place(int(env["OMPI_COMM_WORLD_RANK"]), int(size), env.get("OMPI_COMM_WORLD_LOCAL_SIZE") == size,
                     env.get("PMIX_NAMESPACE", "") + env.get("OMPI_MCA_ess_base_jobid", ""), folder)
    if "SLURM_PROCID" in env and "SLURM_NTASKS" in env:
        names = ("SLURM_CLUSTER_NAME", "SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_RESTART_COUNT")
        return Place(int(env["SLURM_PROCID"]), int(env["SLURM_NTASKS"]), env.get("SLURM_NNODES", "1") == "1",
                     " ".join(env.get(name, "") for name in names), "")
    raise Error(Result.INVALID_ARGUMENT, "gdrx: no launcher is known from the environment: start with mpirun, srun "
                "or torchrun, or carry unique_id() to the ranks by other means")


def _private_folder() -> pathlib.Path:
    folder = pathlib.Path(tempfile.gettempdir()) / f"gdrx-{os.getuid()}"
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise Error(Result.SYSTEM_ERROR, f"gdrx: {folder} is not a folder of this user alone: remove it, or give "
                    "id_file=")
    return folder


def _note(place: Place, id_file: str | os.PathLike[str] | None) -> pathlib.Path:
    """The file of this communicator."""
    if id_file is not None:
        note = pathlib.Path(id_file)
        if place.rank == 0 and note.exists():
            raise Error(Result.INVALID_ARGUMENT, f"gdrx: {note} exists: it is of another run, whose id serves nobody")
        return note
    if not place.one_host:
        raise Error(Result.UNSUPPORTED, "gdrx: the ranks are on several hosts: give id_file=, a path that all of "
                    "them see, or use Communicator.from_mpi")
    name = hashlib.sha256(f"{place.job} {_made}".encode()).hexdigest()[:24]
    folder = pathlib.Path(place.folder) if place.folder else _private_folder()
    return folder / f"gdrx-id-{name}"


def _write(note: pathlib.Path, made: bytes) -> None:
    """Whole or not at all, for this user alone."""
    draft = note.with_name(note.name + ".draft")
    with contextlib.suppress(FileNotFoundError):
        draft.unlink()
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(made)
    draft.rename(note)


def _read(note: pathlib.Path) -> bytes:
    end = time.monotonic() + WAIT
    while True:
        with contextlib.suppress(FileNotFoundError):
            return note.read_bytes()
        if time.monotonic() > end:
            raise Error(Result.TIMEOUT, f"gdrx: rank 0 has not written {note} within {WAIT:.0f} s")
        time.sleep(0.005)


@contextlib.contextmanager
def shared_id(place: Place, id_file: str | os.PathLike[str] | None) -> Iterator[bytes]:
    """The id that rank 0 makes, on every rank. Its file is gone when the body has ended."""
    global _made
    note = _note(place, id_file)
    _made += 1
    if place.rank != 0:
        yield _read(note)
        return
    made = capi.unique_id()
    _write(note, made)
    try:
        yield made
    finally:
        with contextlib.suppress(FileNotFoundError):
            note.unlink()

# SPDX-License-Identifier: Apache-2.0
"""What the scripts that run programs of MPI with gdrx and without have in common."""
import os, pathlib, re, subprocess, sys

import provenance

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Of what GDRX_MPI=explain prints.
COUNTED = re.compile(r"gdrx: rank 0: (\d+) of (\d+) collective calls were taken, (\d+) were eligible")


def give_up(text):
    print(f"{pathlib.Path(sys.argv[0]).name}: {text}", file=sys.stderr)
    sys.exit(2)


class Launcher:
    """An mpirun, and how it is told what its ranks get."""

    def __init__(self, name):
        self.name = name
        try:
            said = subprocess.run([name, "--version"], capture_output=True, text=True, stdin=subprocess.DEVNULL).stdout
        except OSError as error:
            give_up(f"{name}: {error.strerror}")
        self.is_open_mpi = "Open MPI" in said
        number = re.search(r"(?:Version:?|\(Open MPI\)) *([\d.]+)", said)
        kind = "Open MPI" if self.is_open_mpi else "Intel MPI" if "Intel" in said else "MPICH"
        self.version = f"{kind} {number[1] if number else ''}".strip()
        self.object = f"libgdrx-coll-{'ompi' if self.is_open_mpi else 'mpich'}.so"

    def words(self, ranks, variables):
        """`variables`: NAME=VALUE each."""
        if self.is_open_mpi:
            return [self.name, "--oversubscribe", "-np", str(ranks), *(word for one in variables for word in ("-x", one))]
        return [self.name, "-np", str(ranks), *(word for one in variables for word in ("-genv", *one.split("=", 1)))]

    def environment(self, clean):
        return {**clean, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def add_library(options):
    options.add_argument("--mpirun", default="mpirun", help="the launcher of the MPI")
    options.add_argument("--library", type=os.path.abspath, help="what is preloaded; by the MPI, of build/release, if not given")


def check_library(given):
    """The launcher; given.library is there from here on."""
    launcher = Launcher(given.mpirun)
    given.library = given.library or str(ROOT / "build/release/lib" / launcher.object)
    if not os.path.exists(given.library):
        give_up(f"there is no {given.library}: ninja -C build/release gdrx_coll_ompi gdrx_coll_mpich gdrx_coll_standard gdrx")
    return launcher


def about(launcher):
    """Of a results file: where and of what it is."""
    return {"machine": f"{provenance.machine()}, load average {os.getloadavg()[1]:.0f}", "mpi": launcher.version, "commit": provenance.commit()}

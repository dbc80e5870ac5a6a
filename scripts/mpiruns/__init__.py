# SPDX-License-Identifier: Apache-2.0
"""What the scripts that run programs of MPI with gdrx and without have in common."""
import os, pathlib, platform, re, subprocess, sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Of what GDRX_MPI=explain prints.
COUNTED = re.compile(r"gdrx: rank 0: (\d+) of (\d+) collective calls were taken, (\d+) were eligible")


def give_up(text):
    print(f"{pathlib.Path(sys.argv[0]).name}: {text}", file=sys.stderr)
    sys.exit(2)


def add_library(options):
    options.add_argument("--library", type=os.path.abspath, default=str(ROOT / "build/release/lib/libgdrx-coll-ompi.so"))


def check_library(given):
    if not os.path.exists(given.library):
        give_up(f"there is no {given.library}: ninja -C build/release gdrx_coll_ompi gdrx")


def about():
    """Of a results file: where and of what it is."""
    mpi = subprocess.run(["mpirun", "--version"], capture_output=True, text=True).stdout.splitlines()[0]
    commit = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    return {"machine": f"{os.cpu_count()} CPUs, load average {os.getloadavg()[1]:.0f}, Linux {platform.release()}", "mpi": mpi, "commit": commit}

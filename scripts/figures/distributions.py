# SPDX-License-Identifier: Apache-2.0
"""Quick start and packages in bare roots of distributions."""
from .common import ROOT, load, sources, table

PARTS = (("packages", "build packages"), ("quickstart", "quick start"), ("installed", "installed tree"), ("deb", "Debian packages made"),
         ("debs", "Debian packages used"))
VERSIONS = (("g++", "GCC"), ("cmake", "CMake"), ("openmpi-bin", "Open MPI"), ("libucx0", "UCX"), ("libfmt-dev", "fmt"),
            ("libhwloc-dev", "hwloc"), ("python3", "Python"))


def plain(version):
    """A package's version as its project has it."""
    return version.split(":")[-1].split("-")[0].split("+")[0]


def cell(part):
    if part is None:
        return "no result"
    word = "ok" if part["status"] == 0 else "failed"
    return f"{word}, {part['user_s']} s" if "user_s" in part else word


def parts(run):
    return {row["part"]: row for row in run["rows"]}


def distributions():
    names = [path.stem for path in sorted((ROOT / "results").glob("*/distribution-*.json"))]
    runs = [load(name) for name in names]
    heads = ["<"] + [f"<{run['distribution']}" for run in runs]
    lines = ["`scripts/distributions` makes a bare root by debootstrap. It runs the quick start there from a clean clone, without CUDA's toolkit.",
             "Seconds are processor time in user mode, with an empty compiler cache. Other builds ran beside these.", ""]
    lines += table(heads, [[name] + [cell(parts(run).get(part)) for run in runs] for part, name in PARTS] +
                   [["warnings of the compiler"] + [run["quickstart"]["warnings"] for run in runs]])
    lines += ["The roots have these versions:", ""]
    lines += table(heads, [[name] + [plain(run["versions"].get(package, "-")) for run in runs] for package, name in VERSIONS])
    return lines + sources(*names)

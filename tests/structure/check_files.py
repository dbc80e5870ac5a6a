#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""No two product files of one name, but for those that ALIKE names with a reason: who looks for `table.cpp` finds one.

  check_files.py ROOT
  check_files.py --self-test
"""
import itertools, pathlib, sys, tempfile

FOLDERS = ["include", "base", "topo", "doctor", "transport", "collectives", "plugin", "nccl", "mpi", "mpi-tests", "net-conformance", "tools",
           "python/csrc"]
KINDS = {".c", ".cpp", ".cu", ".cuh", ".h", ".hpp"}
# The reason, the folders, and the names that any two of these folders may share. What nobody shares any more has to go.
ALIKE = [
    ("each fabric implements gdrx/transport.hpp by the same parts", ["transport/shm", "transport/tcp", "transport/ucx", "transport/verbs"],
     ["device", "endpoint", "fabric", "incoming", "module", "outgoing", "peer", "segment", "wire"]),
    ("each program has one", ["mpi-tests", "mpi-tests/nccl", "mpi-tests/net_perf", "net-conformance", "tools"], ["main"]),
    ("a rule, and the mutants that break it", ["net-conformance/mutants", "net-conformance/rules"],
     ["close", "connect", "device", "group", "life", "memory", "request", "transfer"]),
    ("the reference plugin is built as gdrx's is", ["net-conformance/mutants", "net-conformance/reference", "plugin/core"], ["comm", "plugin"]),
    ("net_conformance is a program of its own, which knows nothing of gdrx", [
        "net-conformance/driver", "net-conformance/mutants", "net-conformance/reference", "net-conformance/rules", "net-conformance/suite",
        "collectives/exec", "collectives/gpu", "mpi-tests", "nccl", "plugin/abi", "plugin/core", "python/csrc", "transport/bootstrap",
        "transport/shm", "transport/tcp", "transport/ucx", "transport/verbs"],
     ["comm", "common", "device", "exchange", "flush", "fork", "group", "load", "memory", "net", "peer", "region", "report"]),
    ("a library in front of MPI, which links nothing of gdrx's", [
        "mpi", "mpi/abi", "base", "collectives/comm", "collectives/kernels", "include/gdrx", "nccl", "plugin/abi", "python/csrc", "transport/verbs"],
     ["abi", "call", "communicator", "engine", "explain", "plan", "settings", "staging", "table", "types", "waiting", "work"]),
    ("binary interfaces of MPI by the same parts", ["mpi", "mpi/abi/mpich", "mpi/abi/standard", "include/gdrx", "collectives/comm", "python/csrc"],
     ["mpi", "types", "values"]),
    ("NCCL's API is a library of its own over gdrx.h", ["nccl", "base", "collectives/comm", "collectives/gpu", "include/gdrx", "plugin/core", "plugin/gpu"],
     ["comm", "config", "driver", "memory", "settings"]),
    ("PyTorch's backend is a library of its own over gdrx.h", [
        "python/csrc", "base", "collectives/comm", "doctor/checks", "include/gdrx", "plugin/abi", "transport/shm", "transport/tcp", "transport/ucx",
        "transport/verbs"],
     ["device", "gpu", "gpu_share", "mailbox", "module", "types"]),
    ("NCCL's plugin is a library of its own", ["plugin/core", "plugin/gpu", "base", "collectives/gpu", "collectives/kernels", "include/gdrx", "transport/shm",
                                               "transport/tcp", "transport/ucx", "transport/verbs"],
     ["copy", "driver", "greeting", "log", "wire"]),
    ("NCCL's structs, and what fills them", ["plugin/abi", "plugin/exports"], ["properties"]),
    ("a program's own beside the library's", ["mpi-tests", "mpi-tests/net_perf", "base", "include/gdrx", "transport/verbs"], ["measure", "options", "output"]),
    ("what gdrx.h's C++ API shows, and what is behind it", ["include/gdrx", "collectives/comm", "plugin/abi"], ["communicator", "types"]),
    ("of GPUs, beside the same of hosts", ["collectives/comm", "collectives/gpu", "collectives/kernels", "transport/memory"], ["arena", "call", "windows"]),
    ("a NIC's port, and the ranks of equal place on all hosts: both are the field's word", ["collectives/exec", "transport/verbs"], ["rail"]),
]


def files(root):
    """The folders of each name of a product file. A folder has each name but once."""
    found = {}
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in KINDS and path.is_file():
                found.setdefault(path.name, []).append(str(path.parent.relative_to(root)))
    return found


def errors_of(root, alike):
    errors, used = [], set()
    for name, folders in sorted(files(root).items()):
        for one, other in itertools.combinations(folders, 2):
            known = [(i, stem) for i, (_, among, stems) in enumerate(alike) for stem in stems
                     if stem == name.split(".")[0] and one in among and other in among]
            used.update(known)
            if not known:
                errors.append(f"{one}/{name} and {other}/{name}: one name for two things: name one by what it holds, or say here why not")
    for i, (reason, _, stems) in enumerate(alike):
        errors += [f"'{stem}' ({reason}): no two files share it any more: out of the list" for stem in stems if (i, stem) not in used]
    return errors


def self_test():
    """A doubled name is found, one that is allowed is not, and one that is allowed for nothing is."""
    cases = [
        (["topo/a.cpp", "topo/a.hpp", "base/b.cpp"], [], 0),
        (["topo/a.cpp", "base/a.cpp"], [], 1),
        (["topo/a.cpp", "topo/read/a.cpp", "base/a.cpp"], [], 3),
        (["topo/a.cpp", "base/a.cpp"], [("why", ["topo", "base"], ["a"])], 0),
        (["topo/a.cpp", "base/a.cpp", "mpi/a.cpp"], [("why", ["topo", "base"], ["a"])], 2),
        (["topo/a.cpp", "base/b.cpp"], [("why", ["topo", "base"], ["a"])], 1),
        (["topo/a.md", "base/a.md", "scripts/b.cpp", "topo/b.cpp"], [], 0),
    ]
    wrong = 0
    for names, alike, wanted in cases:
        with tempfile.TemporaryDirectory() as folder:
            for name in names:
                path = pathlib.Path(folder) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text("")
            found = errors_of(pathlib.Path(folder), alike)
        if len(found) != wanted:
            print(f"{wanted} wanted, found {found} of {names}")
            wrong += 1
    return "the check does not check" if wrong else None


if __name__ == "__main__":
    if sys.argv[1] == "--self-test":
        sys.exit(self_test())
    found = errors_of(pathlib.Path(sys.argv[1]), ALIKE)
    print("\n".join(found) or "each name of a file is of one thing")
    sys.exit(1 if found else 0)

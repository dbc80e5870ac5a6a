#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Dependencies point downward only, system headers stay where they belong, files stay small."""
import pathlib, re, sys

root = pathlib.Path(sys.argv[1])

# folder: the folders of ours that it may include (itself and gdrx/ always)
ALLOWED = {
    "include": [],
    "base": [],
    "topo": [],
    "doctor": ["topo"],
    "transport/secure": [],
    "transport/bootstrap": ["transport/secure"],
    "transport/memory": [],
    "transport/fabric": [],
    "transport/shm": ["transport/fabric", "transport/memory", "transport/bootstrap/fork"],
    "transport/ucx": ["transport/fabric"],
    "transport/tcp": ["transport/fabric", "transport/bootstrap", "transport/secure"],
    "transport/verbs": ["transport/fabric", "transport/memory", "transport/bootstrap/fork"],
    "collectives/plan": [],
    "collectives/reduce": [],
    "collectives/trace": [],
    "collectives/tune": ["collectives/plan"],
    "collectives/exec": ["collectives/reduce", "collectives/trace", "transport/memory"],
    "collectives/kernels": [],
    "collectives/gpu": ["collectives/kernels", "collectives/tune", "transport/bootstrap/fork",
                        "transport/fabric"],
    "collectives/comm": ["collectives/exec", "collectives/gpu", "collectives/reduce", "collectives/trace",
                         "collectives/tune", "transport/bootstrap", "transport/fabric",
                         "transport/memory", "transport/shm"],
    "collectives/api": ["collectives/comm", "collectives/exec", "collectives/gpu", "collectives/trace", "collectives/tune",
                        "transport/bootstrap", "transport/fabric", "transport/memory"],
    "collectives/mpi": ["collectives/api", "collectives/comm"],
    "plugin/abi": [],
    "net-conformance": ["plugin/abi"],
    "plugin/stats": ["transport/bootstrap/fork"],
    "plugin/gpu": ["transport/bootstrap"],
    "plugin/core": ["plugin/abi", "plugin/gpu", "plugin/stats", "transport/bootstrap", "transport/fabric", "transport/verbs/hca_filter",
                    "transport/memory/registration_cache", "transport/memory/pages"],
    "plugin/exports": ["plugin/abi", "plugin/core"],
    "nccl": [],
    "mpi": ["collectives/api/c_mpi"],
    "mpi-tests": ["collectives/reduce", "collectives/tune", "transport/memory", "tools/describe"],
    "python/csrc": [],
    "tools": ["topo", "doctor", "transport", "collectives", "plugin/stats"],
}
# What does not link gdrx::base. Every other folder may include base/.
BASELESS = {"include", "collectives/kernels", "plugin/abi", "mpi", "python/csrc"}
# a header of the outside: the only folders that may include it
OWNERS = {
    r"^mpi\.h": ["collectives/mpi", "mpi", "mpi-tests", "include"],
    r"^uc[pst]/": ["transport/ucx"],
    r"^infiniband/": ["transport/verbs"],
    r"^cuda_": ["collectives/kernels", "collectives/gpu", "mpi-tests"],
    r"^nvtx": ["collectives/trace"],
    r"^nccl[_.]": [],
    r"^hwloc": ["topo"],
    r"^archive": ["topo"],
    r"^zlib": ["topo"],
    r"^pugixml": ["topo"],
    r"^(torch|ATen|c10)/": ["python/csrc"],
    r"^openssl/": ["transport/secure"],
    r"^CLI/": ["mpi-tests", "tools", "net-conformance"],
    r"^nlohmann/": ["mpi-tests", "collectives/plan", "collectives/tune", "tools", "net-conformance"],
}
# What is compiled into each source that reads it, used or not: a header of ours that includes it hands that on.
HEAVY = r"^(CLI/|nlohmann/json\.hpp)"
HEAVY_HEADERS = {"tools/commands.hpp", "collectives/plan/json_guard.hpp", "net-conformance/suite/report.hpp"}
PRECOMPILED = "cmake/GdrxPrecompiled.cmake"
LONGEST = 400
LONGEST_README = 60  # of a folder: what stands where; the rest is docs/'s
# What starts a program, and where that may be: other hosts' gdrx, and mpirun. Nothing asks nvidia-smi: under a CPU mask
# it prints other classes, and its text has no fixed form.
STARTS = r"\b(popen|system|posix_spawnp?|exec(?:v|l|ve|vp|vpe|lp|le)|v?fork)\s*\("
STARTERS = {"tools/cluster/remote_launch.cpp", "tools/mpirun/mpirun_command.cpp", "tools/tune/tune_command.cpp"}


def left_halfway(code):
    """Offsets of each GDRX_TRY behind another element of a list in braces. A return from there
    leaks what came before it in the list: neither GCC nor clang destroys that."""
    for found in re.finditer(r"\bGDRX_TRY\(", code):
        depth, behind = 0, False
        for c in reversed(code[:found.start()]):
            if c in ")]}":
                depth += 1
            elif c in "([{" and depth > 0:
                depth -= 1
            elif depth == 0 and c in ";=([{":
                if c == "{" and behind:
                    yield found.start()
                break
            elif depth == 0 and c == ",":
                behind = True


errors = []
for folder, below in ALLOWED.items():
    for path in sorted((root / folder).rglob("*.[ch]pp")) + sorted((root / folder).rglob("*.h")) + sorted(
            (root / folder).rglob("*.cu*")):
        name = path.relative_to(root)
        text = path.read_text()
        if len(text.splitlines()) > LONGEST:
            errors.append(f"{name}: over {LONGEST} lines: divide it by idea")
        code = re.sub(r'"(?:\\.|[^"\\\n])*"|//.*', "", text)
        started = re.search(STARTS, code)
        if started and folder.split("/")[0] not in ("tests", "net-conformance") and str(name) not in STARTERS:
            errors.append(f"{name}: starts a program: {started.group(0)}")
        for at in left_halfway(code):
            line = code.count("\n", 0, at) + 1
            errors.append(f"{name}:{line}: GDRX_TRY behind another element in braces leaks that: take it before")
        if "SPDX-License-Identifier" not in text.splitlines()[0] + text.splitlines()[1]:
            errors.append(f"{name}: no licence line")
        for header in re.findall(r'^#include [<"]([^>"]+)[>"]', text, re.M):
            ours = header.split("/")[0] in ("base", "transport", "collectives", "topo", "doctor", "plugin", "nccl", "mpi", "mpi-tests", "net-conformance",
                                                  "tools")
            if ours and not any(header.startswith((f"{own}/", f"{own}.")) for own in [folder, *below, *([] if folder in BASELESS else ["base"])]):
                errors.append(f"{name}: may not include {header}")
            if re.match(HEAVY, header) and path.suffix == ".hpp" and str(name) not in HEAVY_HEADERS:
                errors.append(f"{name}: a header that includes {header}: include it in sources")
            for pattern, owners in OWNERS.items():
                if re.match(pattern, header) and folder not in owners:
                    errors.append(f"{name}: only {owners} may include {header}")
for header in re.findall(r"<([^>]+)>", (root / PRECOMPILED).read_text()):
    if re.match(HEAVY, header):
        errors.append(f"{PRECOMPILED}: precompiles {header}")
for page in sorted(root.rglob("README.md")):
    lines = len(page.read_text().splitlines())
    if lines > LONGEST_README and page.parent != root and page.relative_to(root).parts[0] != "build":
        errors.append(f"{page.relative_to(root)}: {lines} lines, at most {LONGEST_README}: to docs/how-to or docs/concepts")
for page in sorted(root.rglob("*.md")):
    if page.relative_to(root).parts[0] != "build" and re.search(r"^(<{7}|>{7}) ", page.read_text(), re.M):
        errors.append(f"{page.relative_to(root)}: a conflict that nobody has solved")
print("\n".join(errors) or "the structure holds")
sys.exit(1 if errors else 0)

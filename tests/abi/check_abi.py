#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The C ABI of libgdrx.so beside tests/abi/libgdrx.abi. Usage:
  check_abi.py LIBRARY      exit status 1: the ABI has changed so that a program of before may break
  check_abi.py --renew      writes the baseline anew, from the headers
  check_abi.py --self-test  changes copies of the headers, and looks whether that is found
A library is made of the headers' own declarations with debug information, so that the types are those
that programs are compiled with; the symbols are those of LIBRARY. Needs abidiff and abidw
(abigail-tools) and a C compiler; without them, or on another machine than x86-64, it exits with 77."""
import pathlib, platform, re, shutil, subprocess, sys, tempfile

here = pathlib.Path(__file__).resolve().parent
include = here.parent.parent / "include"
baseline = here / "libgdrx.abi"
growth = here / "growth.suppr"
HEADERS = ["gdrx.h", "gdrx_types.h", "gdrx_calls.h", "gdrx_look.h"]
# Exported, and of no header: our libraries that know MPI, of the same version, call them.
PRIVATE = {"gdrxCommInitAllGather", "gdrxCommOnWait"}


def run(*command):
    return subprocess.run(list(map(str, command)), capture_output=True, text=True)


def must(*command):
    done = run(*command)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}:\n{done.stdout}{done.stderr}")
    return done.stdout


def declarations(folder):
    """Every function of the headers: its declaration and its name."""
    found = []
    for header in HEADERS:
        text = re.sub(r"/\*.*?\*/", "", (folder / "gdrx" / header).read_text(), flags=re.S)
        text = re.sub(r"^#.*(?:\\\n.*)*", "", text, flags=re.M)
        for declaration in re.findall(r"GDRX_API\s+([^;{}]+\))\s*;", text):
            found.append((declaration, re.search(r"(\w+)\s*\(", declaration).group(1)))
    return found


def library_of(folder, place):
    """A shared library with the headers' functions and types, and nothing else."""
    source = place / "stub.c"
    bodies = [f"GDRX_API {declaration} {{ for (;;) {{}} }}" for declaration, _ in declarations(folder)]
    source.write_text("#include <gdrx/gdrx.h>\n" + "\n".join(bodies) + "\n")
    library = place / "libgdrx.so"
    must("cc", "-g", "-O0", "-w", "-fvisibility=hidden", "-shared", "-fPIC", "-nostdlib", "-I", folder, source, "-o", library)
    return library


def describe(folder, output):
    with tempfile.TemporaryDirectory() as place:
        library = library_of(folder, pathlib.Path(place))
        must("abidw", "--no-corpus-path", "--no-comp-dir-path", "--no-show-locs", "--type-id-style", "hash",
             "--out-file", output, library)
        text = pathlib.Path(output).read_text()
        pathlib.Path(output).write_text(text.replace(f"{place}/", ""))  # the same wherever it is made


def differences(folder):
    """What a program of the baseline may break at; empty: nothing."""
    with tempfile.TemporaryDirectory() as place:
        library = library_of(folder, pathlib.Path(place))
        runs = [run("abidiff", "--no-show-locs", "--no-added-syms", *how, baseline, library)
                for how in (["--suppressions", growth], [])]
    for done in runs:
        if done.returncode & 3:
            sys.exit(f"abidiff: {done.stdout}{done.stderr}")
    grown, all_of_it = runs
    # The suppression takes a struct whose members have changed in place for one that has grown by nothing.
    in_place = re.search(r"data member (change|deletion)", all_of_it.stdout)
    return all_of_it.stdout if grown.returncode or in_place else ""


def symbol_errors(library):
    exported = set(must("nm", "-D", "--defined-only", library).split())
    exported = {name.split("@")[0] for name in exported if name.startswith("gdrx")}
    declared = {name for _, name in declarations(include)}
    return ([f"{name} is declared and not exported" for name in sorted(declared - exported)] +
            [f"{name} is exported and in no header" for name in sorted(exported - declared - PRIVATE)])


def check(library):
    errors = symbol_errors(library)
    changed = differences(include)
    if changed:
        errors.append(f"{changed}\nThe C ABI has changed. If that is meant: docs/reference/versions.md says what it asks "
                      "for; then tests/abi/check_abi.py --renew")
    print("\n".join(errors) or "the ABI is that of tests/abi/libgdrx.abi, or more")
    return 1 if errors else 0


# A change of the headers, and whether a program of before may break.
CHANGES = [
    ("a function is gone", "gdrx.h", r"GDRX_API gdrxResult_t gdrxCommAbort\([^;]*;", "", True),
    ("a parameter is another", "gdrx.h", r"gdrxCommUserRank\(gdrxComm_t comm, int\*", "gdrxCommUserRank(gdrxComm_t comm, long*", True),
    ("a member is another", "gdrx_calls.h", r"double timeout_seconds", "float timeout_seconds", True),
    ("a member comes in between", "gdrx.h", r"(\n  const char\* transport;)", r"\n  int between;\1", True),
    ("a member is gone", "gdrx_look.h", r"  uint64_t pinned_bytes;", "", True),
    ("a result has another number", "gdrx_types.h", r"gdrxTimeout = 4", "gdrxTimeout = 14", True),
    ("nothing", "gdrx.h", "$^", "", False),
    ("a function is new", "gdrx_look.h", r"(typedef struct \{)", r"GDRX_API int gdrxGetNews(int since);\n\1", False),
    ("a struct has a member more", "gdrx_look.h", r"(\n\} gdrxMemoryInfo_t;)", r"\n  uint64_t more_bytes;\1", False),
]


def self_test():
    errors = []
    for name, header, pattern, text, breaks in CHANGES:
        with tempfile.TemporaryDirectory() as place:
            folder = pathlib.Path(place) / "include"
            shutil.copytree(include / "gdrx", folder / "gdrx")
            path = folder / "gdrx" / header
            before = path.read_text()
            path.write_text(re.sub(pattern, text, before, count=1))
            if name != "nothing" and path.read_text() == before:
                errors.append(f"{name}: the header has no such place any more")
            if bool(differences(folder)) != breaks:
                errors.append(f"{name}: {'not found' if breaks else 'refused'}")
    print("\n".join(errors) or f"{len(CHANGES)} changes are judged right")
    return 1 if errors else 0


def main():
    if len(sys.argv) != 2 or sys.argv[1] in ("-h", "--help"):
        print(__doc__)
        return 2
    if platform.machine() != "x86_64" or any(shutil.which(tool) is None for tool in ("abidiff", "abidw", "cc", "nm")):
        print("skip: no abidiff here (abigail-tools), or not x86-64")
        return 77
    if sys.argv[1] == "--renew":
        describe(include, baseline)
        return 0
    return self_test() if sys.argv[1] == "--self-test" else check(sys.argv[1])


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""spack_test.py SOURCE: the recipe for Spack says what the build description does. Everything that CMake insists on is a
dependency, with no older version than CMake takes; each option that the recipe sets is one of CMake's; what is optional to
CMake and no dependency is named here with its reason. Spack's own solver does not run: it is in no package that is here.

--self-test: a recipe that lacks a dependency, takes an older version, or sets an unknown option is found."""
import ast
import pathlib
import re
import sys

# CMake's name of a thing: Spack's, None where the compiler or the system has it.
NAMES = {"Threads": None, "fmt": "fmt", "tl-expected": "tl-expected", "nlohmann_json": "nlohmann-json", "CLI11": "cli11",
         "MPI": "mpi", "PkgConfig": "pkgconfig", "OpenSSL": "openssl", "LibArchive": "libarchive", "ZLIB": "zlib-api", "pugixml": "pugixml", "HWLOC": "hwloc", "Python3": "python",
         "CUDAToolkit": "cuda", "UCX": "ucx", "VERBS": "rdma-core"}
INHERITED = {"CudaPackage": "cuda"}
TESTS_ALONE = {"GTest", "benchmark"}


def directives(text):
    """Dependencies with their least versions, and options that are set."""
    needs, options = {}, set()
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            needs.update({INHERITED[base.id]: "" for base in node.bases if base.id in INHERITED})
        if not isinstance(node, ast.Call) or not node.args or not isinstance(node.args[0], ast.Constant):
            continue
        called = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
        if called == "depends_on":
            name, _, version = node.args[0].value.partition("@")
            needs[name] = version.rstrip(":")
        elif called in ("define", "define_from_variant"):
            options.add(node.args[0].value)
    return needs, options


def asked(root):
    """What the build description looks for outside of tests/, with least versions, and its options."""
    wanted, options = {}, set()
    for path in [*root.glob("cmake/*.cmake"), root / "CMakeLists.txt", *root.glob("*/**/CMakeLists.txt")]:
        if path.relative_to(root).parts[0] in ("build", "tests", "examples", "python", "dist"):
            continue
        text = path.read_text()
        for name, version in re.findall(r"^ *find_package\((\w[\w-]*) ?([\d.]*)", text, re.M):
            wanted[name] = version
        for name, version in re.findall(r"pkg_check_modules\((\w+) [^)]*?>=([\d.]+)\)", text):
            wanted[name] = version
        wanted.update({name: "" for name in re.findall(r"find_path\((UCX|GDRX_VERBS)_(?:INCLUDE_DIR|HEADER)", text)})
        options.update(re.findall(r"^ *(?:option|set)\((GDRX_\w+)", text, re.M))
        wanted.update({"cmake": version for version in re.findall(r"cmake_minimum_required\(VERSION ([\d.]+)", text)})
    return {name.removeprefix("GDRX_"): version for name, version in wanted.items()}, options


def number(version):
    return [int(part) for part in re.sub(r"(\.0)+$", "", version).split(".")] if version else []


def faults(needs, set_options, wanted, options):
    for name, version in sorted(wanted.items()):
        package = NAMES.get(name, "" if name != "cmake" else name)
        if package == "" and name not in TESTS_ALONE:
            yield f"CMake looks for {name}, which this test does not know"
        elif package and package not in needs:
            yield f"CMake looks for {name}, and the recipe has no {package}"
        elif package and number(needs[package]) < number(version):
            yield f"CMake takes {name} from {version} on, and the recipe {package}@{needs[package]}:"
    for option in sorted(set_options - options):
        if not option.startswith("CMAKE_"):
            yield f"the recipe sets {option}, which CMake does not know"


def main():
    root = pathlib.Path(sys.argv[1])
    text = (root / "scripts/packed/spack/packages/gdrx/package.py").read_text()
    wanted, options = asked(root)
    missing = {"fmt", "HWLOC", "UCX", "VERBS", "OpenSSL", "MPI"} - wanted.keys()
    if missing:
        sys.exit(f"the build description is not read right: no {missing}")
    if "--self-test" in sys.argv:
        for old, new in (('depends_on("ucx")', ""), ("hwloc@2.5:", "hwloc@2.4:"), ('"GDRX_WERROR"', '"GDRX_WARNINGS"')):
            assert old in text and list(faults(*directives(text.replace(old, new)), wanted, options)), f"'{old}' is not missed"
        print("3 broken recipes are found")
        return 0
    found = list(faults(*directives(text), wanted, options))
    print("\n".join(found) or f"the recipe has what CMake looks for: {len(wanted)} things")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

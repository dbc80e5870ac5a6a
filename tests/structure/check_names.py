#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_names.py BUILD [--self-test]: sources of a library are compiled together, so functions in their anonymous namespaces
overload each other. Of two with one name, the first parameters of both must not be text or numbers: a call would take the
other source's function, and no compiler says so."""
import collections, itertools, json, pathlib, re, sys, tempfile

FUNCTION = re.compile(r"(?:template.*> )?[A-Za-z_\[][\w:<>,&*\s\[\]]*?[\s&*]([a-z_]\w*)\(([^,)]*)")
CONVERTS = re.compile(r"\b(string|string_view|char|bool|int|unsigned|long|float|double|size_t|u?int\d+_t|Bytes|Rank|milliseconds|seconds|Duration)\b(?!>)")
NOT_ONE = ("#", "return", "using", "struct", "class")


def functions(source):
    """The names of functions in the anonymous namespace, with the first parameter of each."""
    inside = False
    for line in source.read_text().splitlines():
        if line in ("namespace {", "}  // namespace"):
            inside = line == "namespace {"
        found = FUNCTION.match(line) if inside and not line.startswith(NOT_ONE) else None
        if found:
            yield found.groups()


def sources(build):
    """Of each target, by CMake's folder of its objects."""
    targets = collections.defaultdict(set)
    for unit in json.loads((build / "compile_commands.json").read_text()):
        target = re.search(r"-o (\S+\.dir)/", unit["command"])
        file = pathlib.Path(unit["file"])
        if target and "/Unity/" in str(file) and file.exists():
            targets[target[1]] |= {pathlib.Path(name) for name in re.findall(r'#include "([^"]+)"', file.read_text())}
    return targets


def clashes(targets):
    for files in targets.values():
        named = collections.defaultdict(list)
        for file in sorted(files):
            for name, parameter in set(functions(file)):
                named[name].append((file, parameter))
        for name, places in named.items():
            for (one, first), (other, second) in itertools.combinations(places, 2):
                if one != other and CONVERTS.search(first) and CONVERTS.search(second):
                    yield f"{one} and {other} are compiled together, and both have {name}({first.strip()}...): rename one"


def self_test():
    with tempfile.TemporaryDirectory() as folder:
        files = []
        for name, parameter in ("a", "std::string_view text"), ("b", "const std::string& set"), ("c", "const Spec& spec"):
            files.append(pathlib.Path(folder, name + ".cpp"))
            files[-1].write_text(f"namespace {{\nint words_of({parameter}) {{\n}}\n}}  // namespace\n")
        found = list(clashes({"x": files}))
    return [] if len(found) == 1 and "a.cpp" in found[0] and "b.cpp" in found[0] else [f"found {found}"]


if "--self-test" not in sys.argv and not (pathlib.Path((sys.argv + [""])[1]) / "compile_commands.json").is_file():
    sys.exit("check_names.py: BUILD is a folder that CMake has configured, such as build/release")
errors = self_test() if "--self-test" in sys.argv else sorted(set(clashes(sources(pathlib.Path(sys.argv[1])))))
print("\n".join(errors) or "no name can be taken for another")
sys.exit(1 if errors else 0)

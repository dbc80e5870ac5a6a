#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Functions of at most 60 lines, classes of at most 15 data members, no cast that asks what an object is, no class
that hands a private base of its own around. What is over is named here with its size, which may only shrink.

  check_sizes.py ROOT
  check_sizes.py --self-test
"""
import pathlib, re, sys, tempfile

LONGEST, MOST = 60, 15
FOLDERS = ["include", "base", "topo", "doctor", "transport", "collectives", "plugin", "tools", "mpi-tests", "python/csrc"]
LONG = {
    "collectives/kernels/one_shot_tiled.cuh run_one_shot_tiled": 84,
    "collectives/kernels/ring.cuh run_ring": 79,
    "collectives/kernels/tree.cuh run_tree": 87,
    "collectives/kernels/two_shot.cuh run_two_shot": 73,
    "collectives/kernels/two_shot.cuh run_two_shot_tiled": 78,
    "base/config.cpp own_variables": 125,
    "doctor/checks/pci.cpp check_gpu_nic_distance": 63,
    "transport/ucx/device.cpp UcxDevice::open": 73,
}
LARGE = {
    "collectives/exec/arena_execution.hpp ArenaExecution": 16,
    "mpi-tests/net_perf/bandwidth.cpp Stream": 19,
    "plugin/core/receiver.hpp Receiver": 25,
    "plugin/core/sender.hpp Sender": 28,
    "python/csrc/engine.hpp Engine": 16,
    "transport/tcp/device.hpp TcpDevice": 16,
    "transport/verbs/port_pair.hpp PortPair": 22,
    "transport/verbs/qp_channel.hpp QpChannel": 27,
    "transport/verbs/peer.hpp Peer": 23,
    "transport/verbs/rail.hpp Rail": 34,
}
# One object with two faces: whoever has the one calls the other's functions.
PRIVATE_BASES = {"transport/verbs/rail.hpp Rail"}
CASTS = {"python/csrc/types.cpp"}  # to a type of PyTorch's

NOT_FUNCTIONS = {"if", "for", "while", "switch", "catch", "namespace", "extern", "struct", "class", "enum", "union"}


def without_text(code):
    """Comments and literals as blanks, so that places and lines stay."""
    blank = lambda match: re.sub(r"[^\n]", " ", match.group())
    return re.sub(r"R\"(\w*)\(.*?\)\1\"|//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|(?<!\w)'(?:\\.|[^'\\\n])'", blank, code, flags=re.S)


def blocks(code):
    """Of each pair of braces: what stands before it, what lies in it, and its lines."""
    open_ones, behind = [], 0
    for place, sign in enumerate(code):
        if sign == "{":
            open_ones.append((code[behind:place].strip(), place))
        elif sign == "}" and open_ones:
            head, begin = open_ones.pop()
            yield head, code[begin + 1:place], code.count("\n", begin, place) + 1
        if sign in "{};":
            behind = place + 1


def function_of(head):
    """The name of the function that a block is the body of, or None."""
    head = re.sub(r"^(\s*(template\s*<[^{}]*?>(?=\s*[\w_:])|#[^\n]*\n))+", "", head)
    found = re.search(r"([\w:~]+)\s*\([^{}]*\)\s*(const|noexcept|override|final|\s|->.*)*$", head, re.S)
    if not found or head.split("(")[0].split()[0] in NOT_FUNCTIONS or "[" in head.split("(")[0]:
        return None
    plain = re.sub(r"__launch_bounds__\((?:[^()]|\([^()]*\))*\)", "", head)
    return re.search(r"([\w:~]+)\s*\(", plain).group(1)


def members_of(body):
    """Data members: by the house's style their names end in an underscore."""
    depth, own = 0, []
    for sign in body:
        depth += (sign == "{") - (sign == "}")
        own.append(sign if depth == 0 else " ")
    return len(set(re.findall(r"[\w>*&\]]\s+[*&]?(\w+_)\s*(?:\[[^\]]*\])?\s*(?:[;=,]|\}\s*;|:\s*\d)", "".join(own))))


def errors_of(root, long, large):
    errors, seen = [], {}
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*.*")):
            if path.suffix not in (".cpp", ".hpp", ".h", ".cu", ".cuh"):
                continue
            name, code = path.relative_to(root), without_text(path.read_text())
            if "dynamic_cast<" in code and str(name) not in CASTS:
                errors.append(f"{name}: dynamic_cast: a function of the base, or a variant")
            for head, body, lines in blocks(code):
                made = re.search(r"\b(?:class|struct)\s+(?:alignas\([^)]*\)\s*)?(\w+)[^;(){}]*$", head)
                if made and not re.search(r"\benum\b", head):
                    seen[f"{name} {made.group(1)}", "members"] = members_of(body)
                    private = re.search(r"[:,]\s*private\b|\bclass\s+\w+\s+(final\s+)?:\s*(?!public)\w", head)
                    if private and f"{name} {made.group(1)}" not in PRIVATE_BASES:
                        errors.append(f"{name}: {made.group(1)} has a private base: a member of its own instead")
                elif function_of(head):
                    key = f"{name} {function_of(head)}", "lines"
                    seen[key] = max(lines, seen.get(key, 0))
    for (where, what), size in seen.items():
        limit, allowed = (LONGEST, long) if what == "lines" else (MOST, large)
        if size > allowed.get(where, limit):
            errors.append(f"{where}: {size} {what}, at most {allowed.get(where, limit)}: divide it by idea")
    for allowed, what in ((long, "lines"), (large, "members")):
        for where, size in allowed.items():
            if seen.get((where, what), 0) < size:
                errors.append(f"{where}: {seen.get((where, what), 0)} {what}, not {size}: say so here")
    return errors


def self_test():
    """What is wrong is found, what looks like it is not."""
    body = "  step();\n" * (LONGEST - 2)
    members = "".join(f"  std::map<int, int> m{i}_;\n" for i in range(MOST))
    cases = {
        "int f(int a) {\n" + body + "}\n": 0,
        "int f(int a) const noexcept {\n" + body + "  one();\n}\n": 1,
        "namespace n {\n" + body * 2 + "}\n": 0,
        "class A {\n" + members + "};\n": 0,
        "class A : public B {\n" + members + "  int more_ = 0;\n};\n": 1,
        "class A : private B {};\n": 1,
        "class A final : B {};\n": 1,
        "class A : public B, private C {};\n": 1,
        "class A final : public B {};\n": 0,
        "auto* a = dynamic_cast<A*>(b);\n": 1,
        "// dynamic_cast<A*>(b)\nauto a = \"dynamic_cast<A*>(b)\";\n": 0,
    }
    wrong = 0
    for code, wanted in cases.items():
        with tempfile.TemporaryDirectory() as root:
            (pathlib.Path(root) / "topo").mkdir()
            (pathlib.Path(root) / "topo" / "a.cpp").write_text(code)
            found = errors_of(pathlib.Path(root), {}, {})
        if len(found) != wanted:
            print(f"{wanted} wanted, found {found} in:\n{code}")
            wrong += 1
    shrunk = errors_of(pathlib.Path(tempfile.gettempdir()) / "nowhere", {"a.cpp f": 70}, {})
    return "the check does not check" if wrong or len(shrunk) != 1 else None


if __name__ == "__main__":
    if sys.argv[1] == "--self-test":
        sys.exit(self_test())
    found = errors_of(pathlib.Path(sys.argv[1]), LONG, LARGE)
    print("\n".join(found) or "the sizes hold")
    sys.exit(1 if found else 0)

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each source with atomics, or with fences of a GPU, has a line in tests/memory_order/sources.txt: the scenario that goes
through its orders, or why there is none. A folder's line is for what one process keeps: a word of shared memory, which
takes an atomic_ref, has a line of its own. Where a scenario goes through orders, each has its reason beside it.

  check_orders.py ROOT
  check_orders.py --self-test
"""
import pathlib, re, sys, tempfile

FOLDERS = ["include", "base", "topo", "doctor", "transport", "collectives", "plugin", "nccl", "mpi", "mpi-tests", "net-conformance", "tools",
           "python/csrc"]
KINDS = {".c", ".cpp", ".cu", ".cuh", ".h", ".hpp", ".in"}
TESTS = "tests/memory_order"
TABLE = TESTS + "/sources.txt"
ATOMIC = re.compile(r"std::atomic|\batomic_ref\b|\b__atomic_|\bmemory_order_|\b(store|load)_shared|\bload_acquired\b|\bfence_system\b|_in_block\b"
                    r"|\b__threadfence|\basm volatile\(\s*\"[^\"]*\b(fence|mbarrier|acquire|release)\b")
OF_OTHERS = re.compile(r"\batomic_ref\b|<(const )?std::atomic<[^>]*>\s*\*>|\b__atomic_|\bfence_system\b|\bload_acquired\b")


STRONG = re.compile(r"\bmemory_order_(acquire|release|acq_rel|seq_cst)\b|\b(fence_system|load_acquired|raise_in_block|read_in_block)\(")
NEAR = 4  # lines


def without_reason(name, code):
    """Orders stronger than relaxed without a comment beside them, or in the lines before."""
    lines = code.split("\n")
    return [f"{name}:{i + 1}: an order without its reason beside it" for i, line in enumerate(lines)
            if STRONG.search(line.split("//")[0]) and not any("//" in near for near in lines[max(0, i - NEAR):i + 1])]


def without_text(code):
    return re.sub(r"//[^\n]*|/\*.*?\*/", "", code, flags=re.S)


def rows_of(table):
    """The scenario, or the reason, by the source."""
    return dict(re.findall(r"^([^#\s:]+): (.+)$", table, re.M))


def errors_of(root):
    rows, used, errors = rows_of((root / TABLE).read_text()), set(), []
    for path in sorted(p for folder in FOLDERS for p in (root / folder).rglob("*")):
        if path.suffix not in KINDS or not path.is_file():
            continue
        name, code = str(path.relative_to(root)), without_text(path.read_text())
        if not ATOMIC.search(code):
            continue
        folders = [row for row in rows if row.endswith("/") and name.startswith(row)]
        if name in rows:
            used.add(name)
            errors += without_reason(name, path.read_text()) if "_test.cpp" in rows[name] else []
        elif not folders:
            errors.append(f"{name} has atomics: a line in {TABLE} says which scenario goes through them, or why none does")
        elif OF_OTHERS.search(code):
            errors.append(f"{name} has an atomic in memory that is not its own: it needs a line of its own in {TABLE}")
        else:
            used.add(max(folders, key=len))
    for source, what in rows.items():
        if source not in used:
            errors.append(f"{TABLE}: {source} has no atomics any more: out of the table")
        test = re.match(r"(\w+_test\.cpp)\b", what)
        if test and not ((root / TESTS / test[1]).is_file() and source in (root / TESTS / test[1]).read_text()):
            errors.append(f"{TESTS}/{test[1]} does not name {source}")
        if not test and not re.match(r"none: .|one process$", what):
            errors.append(f"{TABLE}: {source}: a scenario, 'none:' with the reason, or 'one process'")
    return errors


def self_test():
    """What has no line is found, and so is a line that says nothing."""
    word, member = "std::atomic_ref(at).load();\n", "std::atomic<int> at{0};\n"
    strong = "std::atomic_ref(at).load(std::memory_order_acquire);\n"
    cases = [
        ({"shm/a.hpp": word}, {"shm/a.hpp": "a_test.cpp"}, {"a_test.cpp": "transport/shm/a.hpp"}, 0),
        ({"shm/a.hpp": word}, {}, {}, 1),
        ({"shm/a.hpp": strong}, {"shm/a.hpp": "a_test.cpp"}, {"a_test.cpp": "transport/shm/a.hpp"}, 1),
        ({"shm/a.hpp": "// why\n" + strong}, {"shm/a.hpp": "a_test.cpp"}, {"a_test.cpp": "transport/shm/a.hpp"}, 0),
        ({"shm/a.hpp": word}, {"shm/a.hpp": "a_test.cpp"}, {}, 1),
        ({"shm/a.hpp": word}, {"shm/a.hpp": "a_test.cpp"}, {"a_test.cpp": "transport/shm/b.hpp"}, 1),
        ({"shm/a.hpp": word}, {"shm/": "one process"}, {}, 2),
        ({"shm/a.hpp": member}, {"shm/": "one process"}, {}, 0),
        ({"shm/a.cuh": "fence_system();\n"}, {"shm/": "one process"}, {}, 2),
        ({"shm/a.cuh": "asm volatile(\"fence.proxy.async;\");\n"}, {}, {}, 1),
        ({"shm/a.hpp": "// std::atomic_ref\n"}, {}, {}, 0),
        ({"shm/a.hpp": "int a;\n"}, {"shm/a.hpp": "none: a reason"}, {}, 1),
        ({"shm/a.hpp": word}, {"shm/a.hpp": "none: a reason"}, {}, 0),
        ({"shm/a.hpp": word}, {"shm/a.hpp": "some day"}, {}, 1),
    ]
    wrong = 0
    for sources, rows, tests, wanted in cases:
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / TESTS).mkdir(parents=True)
            (root / TABLE).write_text("".join(f"transport/{name}: {what}\n" for name, what in rows.items()))
            for name, text in [(f"transport/{name}", text) for name, text in sources.items()] + [(f"{TESTS}/{n}", t) for n, t in tests.items()]:
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
            found = errors_of(root)
        if len(found) != wanted:
            print(f"{wanted} wanted, found {found} of {sources} and {rows}")
            wrong += 1
    return "the check does not check" if wrong else None


if __name__ == "__main__":
    if sys.argv[1] == "--self-test":
        sys.exit(self_test())
    found = errors_of(pathlib.Path(sys.argv[1]))
    print("\n".join(found) or "each atomic has its scenario, or a reason")
    sys.exit(1 if found else 0)

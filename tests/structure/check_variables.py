#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_variables.py ROOT [--config GDRX | --self-test]: docs/reference/variables.md names every GDRX_* variable that
something reads, every NCCL_* variable of the table of variables, and no other. It says `alike` of those that ranks compare.
--config: it gives the defaults that `GDRX config` prints. --self-test: a tree with each fault, which must be found."""
import json, os, pathlib, re, subprocess, sys, tempfile

PAGE = "docs/reference/variables.md"
FOLDERS = ("include", "base", "topo", "doctor", "deploy", "net-conformance", "transport", "collectives", "plugin", "mpi", "tools", "mpi-tests", "tests", "scripts", "examples")
NAME = r"((?:GDRX|NCCL)_[A-Z0-9_]*[A-Z0-9])"
TABLES = re.compile(rf'"{NAME}"')  # base/config*.cpp: a row's name
SOUGHT = re.compile(rf'"{NAME}=[^"\s]*"')  # in an environment that is handed in; tests have names that are none
READERS = {
    (".cpp", ".hpp", ".h", ".cu", ".cuh"): re.compile(
        rf'\b(?:getenv|environment_value|setting|is_set)\s*\((?:\w+, )?\s*"{NAME}"'),
    (".py", ""): re.compile(rf"""environ(?:\.get\(|\[)["']{NAME}"""),
    (".sh", ".in", ""): re.compile(rf"\$\{{?{NAME}\b"),
}


def read_by(root):
    """Name: a file that reads it. Of NCCL's names the table's alone: others are NCCL's own."""
    found = {}
    for path in sorted((root / "base").glob("config*.cpp")):
        for name in TABLES.findall(path.read_text()):
            found.setdefault(name, path.relative_to(root))
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            patterns = [one for endings, one in READERS.items() if path.suffix in endings]
            if not patterns or not path.is_file() or path.name == "check_variables.py":
                continue
            text = path.read_text(errors="replace")
            if path.suffix in (".cpp", ".hpp") and folder != "tests":
                patterns.append(SOUGHT)
            for name in sum((one.findall(text) for one in patterns), []):
                if name.startswith("GDRX_"):
                    found.setdefault(name, path.relative_to(root))
    return found


def compared(root):
    """What ranks compare when they make a communicator: `GDRX_ALGO={} ...`."""
    path = root / "collectives/comm/hello.cpp"
    return set(re.findall(rf"\b{NAME}=\{{", path.read_text())) if path.exists() else set()


def alike(root):
    """Rows of which the third of four cells is yes."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in (root / PAGE).read_text().splitlines()]
    return {name for cells in rows if len(cells) == 4 and cells[2] == "yes" for name in re.findall(rf"`{NAME}`", cells[0])}


def rows_of(root):
    """Name: its default, of each row of the page's tables."""
    rows = {}
    for line in (root / PAGE).read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        for name in re.findall(rf"`{NAME}`", cells[0]) if line.startswith("|") else []:
            if name in rows:
                yield f"{PAGE}: {name} has two rows"
            rows[name] = cells[1].strip("`")
    yield rows


def differences(root):
    *errors, rows = rows_of(root)
    read = read_by(root)
    errors += [f"{where} reads {name}, which {PAGE} lacks" for name, where in sorted(read.items()) if name not in rows]
    errors += [f"{PAGE}: nothing reads {name}" for name in sorted(rows) if name not in read]
    said, compares = alike(root), compared(root)
    errors += [f"{PAGE}: ranks compare {name}, so it is alike" for name in sorted(compares - said)]
    return errors + [f"{PAGE}: ranks do not compare {name}" for name in sorted(said - compares)]


def wrong_defaults(root, program):
    *_, rows = rows_of(root)
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("GDRX_", "NCCL_"))}
    said = subprocess.run([program, "config", "--format", "json"], env=clean, check=True, capture_output=True, text=True).stdout
    for row in json.loads(said)["variables"]:
        if rows.get(row["name"]) != row["default"]:
            yield f"{PAGE}: {row['name']} is by default {row['default'] or 'empty'}, not {rows.get(row['name'], 'missing')}"


def self_test():
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name, text in {
            "collectives/comm/hello.cpp": '"GDRX_SH={} GDRX_A={:x}"',
            PAGE: "| `GDRX_SH` | | yes | |\n| `GDRX_F` | | yes | |\n`GDRX_IN_PROSE`\n| `GDRX_A`, `NCCL_A` | `1` |\n| `GDRX_GONE` | |\n| `GDRX_A` | `2` |\n",
            "base/config.cpp": '{"GDRX_A", "",}, {"GDRX_B", ""} "GDRX_TEST_"', "base/config_nccl.cpp": '"NCCL_A"',
            "tools/a.cpp": 'getenv("GDRX_C") + setting("GDRX_F"); std::getenv("NCCL_OWN"); say("GDRX_SAID"); starts_with("GDRX_G=1"); is_set(all, "GDRX_H");', "tests/a.cpp": 'setenv("GDRX_SET", "1")',
            "scripts/run": "${GDRX_SH:-1} $GDRX_D", "scripts/a.py": 'os.environ.get("GDRX_E")',
        }.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        said = "\n".join(differences(root))
        wanted = {f"{PAGE}: GDRX_A has two rows", f"base/config.cpp reads GDRX_B, which {PAGE} lacks",
                  f"tools/a.cpp reads GDRX_C, which {PAGE} lacks",
                  f"tools/a.cpp reads GDRX_G, which {PAGE} lacks", f"tools/a.cpp reads GDRX_H, which {PAGE} lacks", f"scripts/run reads GDRX_D, which {PAGE} lacks",
                  f"scripts/a.py reads GDRX_E, which {PAGE} lacks", f"{PAGE}: nothing reads GDRX_GONE",
                  f"{PAGE}: ranks compare GDRX_A, so it is alike", f"{PAGE}: ranks do not compare GDRX_F"}
        return [] if set(said.splitlines()) == wanted else [f"found:\n{said}"]


root = pathlib.Path(sys.argv[1]).resolve()
if "--self-test" in sys.argv:
    errors = self_test()
elif "--config" in sys.argv:
    errors = list(wrong_defaults(root, sys.argv[3]))
else:
    errors = differences(root)
print("\n".join(errors) or "the page of variables is right")
sys.exit(1 if errors else 0)

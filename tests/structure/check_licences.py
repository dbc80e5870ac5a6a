#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_licences.py FOLDER [--self-test]: every source says its licence (SPDX) in its first lines.

A source is what has one of the kinds below, or begins with #!. Documents, JSON and the data of tests have LICENSE."""
import pathlib
import subprocess
import sys
import tempfile

KINDS = {".c", ".cc", ".cpp", ".cu", ".cuh", ".h", ".hpp", ".py", ".sh", ".cmake", ".map", ".in", ".toml", ".yaml", ".yml", ".service", ".conf"}
NAMES = {"CMakeLists.txt", "Dockerfile", ".clang-format", ".clang-tidy"}
SKIPPED = ("tests/data/", "tests/fuzz/corpus/", "results/", "tests/place/golden/")
LINE = "SPDX-License-Identifier: Apache-2.0"
FIRST = 3  # lines: behind #! and what a file's kind must begin with


def files(root):
    """Those that git knows; of a source tarball all, but builds."""
    listed = subprocess.run(["git", "-C", root, "ls-files", "-co", "--exclude-standard"], capture_output=True, text=True, check=False)
    if (root / ".git").exists() and listed.returncode == 0:
        return listed.stdout.splitlines()
    return [str(path.relative_to(root)) for path in root.rglob("*") if path.is_file() and path.relative_to(root).parts[0] not in ("build", "dist", ".git")]


def without(root, names):
    """Sources that do not say their licence, and how many sources there are."""
    missing, seen = [], 0
    for name in names:
        path = root / name
        if name.startswith(SKIPPED) or not path.is_file() or path.is_symlink():
            continue
        with path.open("rb") as file:
            head = b"".join(file.readline() for _ in range(FIRST)).decode(errors="replace")
        if path.suffix in KINDS or path.name in NAMES or head.startswith("#!"):
            seen += 1
            if LINE not in head:
                missing.append(name)
    return missing, seen


def self_test():
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        (root / "good.cpp").write_text(f"// {LINE}\n")
        (root / "bad.cpp").write_text("int x;\n")
        (root / "script").write_text("#!/bin/sh\necho\n")
        (root / "late.py").write_text("\n" * FIRST + f"# {LINE}\n")
        (root / "notes.md").write_text("nothing\n")
        missing, seen = without(root, files(root))
        return 0 if (sorted(missing), seen) == (["bad.cpp", "late.py", "script"], 4) else f"FAILED: {missing}, {seen}"


def main():
    if "--self-test" in sys.argv:
        return self_test()
    root = pathlib.Path(sys.argv[1]).resolve()
    missing, seen = without(root, files(root))
    if seen < 1000:
        return f"FAILED: {seen} sources, and there are far more"
    print("\n".join(f"{name}: no line '{LINE}' among its first {FIRST}" for name in missing) or f"{seen} sources say their licence")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())

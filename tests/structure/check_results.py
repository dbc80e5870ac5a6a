#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_results.py ROOT [--self-test]: every file of results/ has its schema's form, a name of its own, and a reader.

A reader is a page of figures, another document, a script or a comment of a source that names it. Texts begin with a
head of lines `# machine:`, `# command:` and `# commit:` (or `# commits:`). 77 without python3-jsonschema.
"""
import collections, json, pathlib, re, sys

try:
    import jsonschema
except ImportError as missing:
    print(f"skipped: {missing} (python3-jsonschema)")
    sys.exit(77)

HEAD = {"machine": r"^# machine: \S", "command": r"^# command: \S", "commit": r"^# (?:commits?|before): \S"}
READ = (".md", ".py", ".cpp", ".hpp", ".cuh", ".cu", "")  # endings of files that may read a result


def faults_of_json(data, schema):
    found = sorted(jsonschema.Draft7Validator(schema).iter_errors(data), key=str)
    return [f"{'/'.join(map(str, fault.path)) or 'the whole'}: {fault.message[:200]}" for fault in found]


def faults_of_text(text):
    head = "\n".join(line for line in text.splitlines()[:12] if line.startswith("#"))
    return [f"no line `# {word}:` at its head" for word, form in HEAD.items() if not re.search(form, head, re.M)]


def texts(root):
    """What may name a result: documents, scripts and sources, without results/ itself and without what lists it."""
    for top in ("docs", "scripts", "collectives", "plugin", "transport", "mpi", "nccl", "tests", "README.md"):
        for path in sorted((root / top).rglob("*")) if (root / top).is_dir() else [root / top]:
            if path.is_file() and path.suffix in READ and "data" not in path.parts:
                yield path.read_text(errors="replace")


def faults(root):
    results = root / "results"
    schema = json.loads((results / "schema.json").read_text())
    everything = "\n".join(texts(root))
    files = [path for path in sorted(results.rglob("*")) if path.is_file() and path.parent != results]
    for name, number in collections.Counter(path.name for path in files).items():
        if number > 1:
            yield f"{name}: {number} files have this name"
    for path in files:
        where = path.relative_to(root)
        if path.suffix == ".json":
            yield from (f"{where}: {fault}" for fault in faults_of_json(json.loads(path.read_text()), schema))
        elif path.suffix == ".txt":
            yield from (f"{where}: {fault}" for fault in faults_of_text(path.read_text()))
        else:
            yield f"{where}: neither .json nor .txt"
        if not re.search(rf"\b{re.escape(path.name)}", everything):
            yield f"{where}: nothing reads it: name it in a page of scripts/figures, or remove it"


def self_test(root):
    schema = json.loads((root / "results" / "schema.json").read_text())
    right = {"machine": "m", "command": "c", "commit": "1", "rows": [{"us": 1}]}
    assert not faults_of_json(right, schema)
    assert not faults_of_json({"machine": "m", "commit": "1", "runs": [{"command": "c", "rows": []}]}, schema)
    for wrong in ({**right, "rows": []}, {**right, "runs": [{"us": 1}]}, {**right, "machine": ""}, [right],
                  {key: value for key, value in right.items() if key != "commit"},
                  {"machine": "m", "commit": "1", "runs": [{"rows": []}]}):
        assert faults_of_json(wrong, schema), wrong
    assert faults_of_text("# machine: m\n# command: c\n1 2 3\n") and not faults_of_text("# machine: m\n# command: c\n# commit: 1\n")


def main():
    root = pathlib.Path(sys.argv[1])
    if "--self-test" in sys.argv:
        self_test(root)
        return 0
    found = list(faults(root))
    print("\n".join(found) or "every result has its form and a reader")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

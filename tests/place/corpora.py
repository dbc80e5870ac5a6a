#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""corpora.py GDRX FOLDER: every topology file (*.xml) and every host's tree (a folder with sys/) below FOLDER is placed
and drawn, or refused in one line that says which line of the file is impossible. Nothing is placed on a CPU twice."""
import json, pathlib, subprocess, sys
import xml.etree.ElementTree as xml

gdrx, folder = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])
if not folder.is_dir():
    print(f"skipped: no {folder}")
    sys.exit(77)


def ask(source, *words):
    return subprocess.run([gdrx, "topo", source, *words], capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)


def fault(source):
    """What is wrong with gdrx's answer, or None; and whether the source was read."""
    placed = ask(source, "--place", "--format", "json")
    if placed.returncode:
        ok = placed.returncode == 1 and placed.stderr.count("\n") == 1 and ": line " in placed.stderr
        return None if ok else f"{placed.returncode} {placed.stderr.strip()[:200]}", False
    ranks = json.loads(placed.stdout)["ranks"]
    taken = [rank["cpus"] for rank in ranks if rank["cpus"] and "shared by" not in rank["reason"].split(";")[-1]]
    if len(taken) != len(set(taken)):
        return "CPUs are given twice", True
    drawn = ask(source, "--format", "svg")
    if drawn.returncode:
        return f"no picture: {drawn.stderr.strip()[:200]}", True
    try:
        root = xml.fromstring(drawn.stdout)
    except xml.ParseError as error:
        return f"the picture is no XML: {error}", True
    texts = "".join(root.itertext())
    missing = [rank["gpu"] for rank in ranks if rank["gpu"] and rank["gpu"] not in texts]
    return f"{missing[0]} is not in the picture" if missing else None, True


sources = sorted(folder.rglob("*.xml")) + sorted(path.parent for path in folder.rglob("sys") if path.is_dir() and path.parent.name != "sys")
sources = [source for source in sources if not any(up.name == "sys" for up in source.parents)]
read = refused = wrong = 0
for source in sources:
    why, was_read = fault(source)
    read, refused = read + was_read, refused + (not was_read and why is None)
    if why:
        wrong += 1
        print(f"{source.relative_to(folder)}: {why}")
print(f"{len(sources)} sources: {read} placed and drawn, {refused} refused by line, {wrong} wrong")
sys.exit(1 if wrong or not sources else 0)

# SPDX-License-Identifier: Apache-2.0
"""The page of JSON members, from what the commands print of a described machine and of a snapshot."""
import json, subprocess

FORMATS = (("config",), ("topo", "--cluster", "2 H200, one 400 Gb/s NIC a GPU"),
           ("doctor", "--snapshot", "tests/data/h200x4.tar.gz"), ("plan", "--algo", "ring", "-n", "2"))
NAMES = {dict: "object", list: "list", str: "text", int: "integer", float: "number", bool: "true or false", type(None): "null"}


def walk(value, name, found):
    """Each member's path, its types and one value; what stands in a list is `name[]`."""
    if isinstance(value, dict):
        for key, inner in value.items():
            walk(inner, f"{name}.{key}" if name else key, found)
    elif isinstance(value, list):
        found.setdefault(name, [set(), ""])[0].add("list")
        for inner in value:
            walk(inner, f"{name}[]", found)
    else:
        types, _ = found.setdefault(name, [set(), ""])
        types.add(NAMES[type(value)])
        if not found[name][1] and value not in ("", None):
            found[name][1] = json.dumps(value)


def pages(root, folder):
    lines = ["# Members of the JSON", "", "Each member of what `--format json` prints, with a value that it had when this page was made. "
             "`[]` stands for each entry of a list. [Exit statuses and JSON](json.md) lists the formats.", ""]
    for words in FORMATS:
        said = None
        if (folder / "gdrx").exists():
            said = subprocess.run([folder / "gdrx", *words, "--format", "json"], cwd=root, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if said is None or not said.stdout:
            lines += [f"## gdrx {words[0]}", "", "gdrx was not built when this page was made.", ""]
            continue
        found = {}
        walk(json.loads(said.stdout), "", found)
        lines += [f"## gdrx {words[0]}", "", "| member | type | as |", "|---|---|---|"]
        for name, (types, example) in found.items():
            short = (example if len(example) < 60 else example[:57] + "...").replace("|", "\\|")
            lines.append(f"| `{name}` | {' or '.join(sorted(types))} | {f'`{short}`' if short else ''} |")
        lines.append("")
    yield "json-members.md", "\n".join(lines)

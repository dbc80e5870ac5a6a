# SPDX-License-Identifier: Apache-2.0
"""The page of JSON members, from what the programs print and write: of a described machine, of a snapshot, of one rank."""
import json, os, pathlib, re, subprocess, tempfile

SNAPSHOT = "tests/data/h200x4.tar.gz"
RUN_AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1"}
# A title, and the words of commands one after the other: {out} is the file that the last writes, {saved} that which the
# first prints, {lib} the folder of libraries; where no word has {out}, the JSON is what the last prints.
FORMATS = (
    ("gdrx config", ["gdrx config --format json"]),
    ("gdrx topo", ["gdrx topo --cluster '2 H200, one 400 Gb/s NIC a GPU' --format json"]),
    ("gdrx doctor", [f"gdrx doctor --snapshot {SNAPSHOT} --format json"]),
    ("gdrx doctor --compare", [f"gdrx doctor --snapshot {SNAPSHOT} --format json > {{saved}}", "gdrx doctor --compare {saved} {saved} --format json"]),
    ("gdrx plan", ["gdrx plan --algo ring -n 2 --format json"]),
    ("gdrx tune -o", ["gdrx tune --ranks 2 -b 8 -e 8 --iters 1 -o {out}"]),
    ("allreduce_test --json", ["allreduce_test -b 8 -e 8 -n 1 --json {out}"]),
    ("net_conformance --json", ["net_conformance {lib}/libnccl-net-gdrx.so --rule load --json {out}"]),
)
# It measures a NIC, which the machine that builds the site may lack.
WITHOUT_TABLE = {"gdrx perf", "gdrx perf --matrix", "gdrx doctor --cluster"}
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


def said(root, programs, commands):
    """What the commands gave as JSON; None where one of them is not built."""
    if not all((programs / command.split()[0]).exists() for command in commands):
        return None
    env = dict(os.environ, **RUN_AS_ROOT, PATH=f"{programs}:{os.environ['PATH']}",
               LD_LIBRARY_PATH=f"{programs.parent / 'lib'}:{os.environ.get('LD_LIBRARY_PATH', '')}")
    with tempfile.TemporaryDirectory() as folder:
        out, saved = pathlib.Path(folder) / "out", pathlib.Path(folder) / "saved"
        for command in commands:
            done = subprocess.run(command.format(out=out, saved=saved, lib=programs.parent / "lib"), shell=True, cwd=root, env=env, capture_output=True, text=True,
                                  stdin=subprocess.DEVNULL)
        try:
            return json.loads(out.read_text() if out.exists() else done.stdout)
        except (OSError, ValueError):
            raise SystemExit(f"docs: {command} gives no JSON: it ends with {done.returncode}: {done.stderr.strip()}") from None


def listed(root):
    """The formats that docs/reference/json.md names, as its table has them."""
    rows = re.findall(r"^\| (`.*?) \| ", (root / "docs/reference/json.md").read_text().split("## JSON")[1], re.M)
    return {name.replace(" --format json", "") for row in rows for name in re.findall(r"`(.*?)`", row)}


def pages(root, programs):
    wrong = listed(root) ^ ({title for title, _ in FORMATS} | WITHOUT_TABLE)
    if wrong:
        raise SystemExit(f"docs: docs/reference/json.md and scripts/site/formats.py differ about: {', '.join(sorted(wrong))}")
    lines = ["# Members of the JSON", "", "Each member of what is printed and written as JSON, with a value that it had when this page was "
             "made. `[]` stands for each entry of a list. [Exit statuses and JSON](json.md) lists the formats. `gdrx perf` has no table: "
             "it measures a NIC, and with `--matrix` those of several hosts. `gdrx doctor --cluster` prints what `--compare` does.", ""]
    for title, commands in FORMATS:
        value = said(root, programs, commands)
        lines += [f"## {title}", ""]
        if value is None:
            lines += [f"{title.split()[0]} was not built when this page was made.", ""]
            continue
        found = {}
        walk(value, "", found)
        lines += ["| member | type | as |", "|---|---|---|"]
        for name, (types, example) in found.items():
            short = (example if len(example) < 60 else example[:57] + "...").replace("|", "\\|")
            lines.append(f"| `{name or '[]'}` | {' or '.join(sorted(types))} | {f'`{short}`' if short else ''} |")
        lines.append("")
    yield "json-members.md", "\n".join(lines)

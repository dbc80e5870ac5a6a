# SPDX-License-Identifier: Apache-2.0
"""record.py LOGS COMMIT NAME JOBS FILE: what scripts/distributions saw in a root, as one JSON file. 1 if a part failed."""
import json
import pathlib
import re
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from provenance import machine


def main(logs, commit, name, jobs, file):
    logs = pathlib.Path(logs)
    parts = {}
    for line in (logs / "record").read_text().splitlines():
        part, status, user, system, wall = line.split()
        parts[part] = {"status": int(status)}
        if part != "debs":  # which runs in a root of its own
            parts[part].update(user_s=round(float(user)), system_s=round(float(system)), wall_s=round(float(wall)))
    versions = dict(line.split() for line in (logs / "versions").read_text().splitlines() if len(line.split()) == 2)
    text = (logs / "quickstart.log").read_text(errors="replace")
    said = {"verdict": next((line.strip() for line in text.splitlines() if "every element of every rank" in line), None),
            "warnings": len(re.findall(r"warning:", text))}
    ok = all(part["status"] == 0 for part in parts.values())
    pathlib.Path(file).write_text(json.dumps({
        "command": f"scripts/distributions {logs.name} -j {jobs}", "distribution": name, "commit": commit,
        "machine": machine(), "verdict": "ok" if ok else "failed",
        "quickstart": said, "rows": [{"part": part, **found} for part, found in parts.items()], "versions": versions}, indent=1) + "\n")
    print(f"{file}: {'ok' if ok else 'failed'}")
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

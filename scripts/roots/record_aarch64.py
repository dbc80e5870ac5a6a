# SPDX-License-Identifier: Apache-2.0
"""record_aarch64.py RECORD FILE: what scripts/aarch64 saw of each test program, as one JSON file."""
import json
import pathlib
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from provenance import commit, machine


def main(record, file):
    rows = []
    for line in pathlib.Path(record).read_text().splitlines():
        program, page, status, passed, failed, seconds = line.split()
        rows.append({"program": program, "page": int(page), "status": int(status), "passed": int(passed),
                     "failed": [] if failed == "-" else failed.split(","), "seconds": int(seconds)})
    emulator = subprocess.run(["qemu-aarch64", "--version"], capture_output=True, text=True).stdout.splitlines()[0]
    pathlib.Path(file).parent.mkdir(parents=True, exist_ok=True)
    pathlib.Path(file).write_text(json.dumps({"command": "scripts/aarch64", "commit": commit(), "machine": f"{emulator} on {machine()}",
                                              "rows": rows}, indent=1) + "\n")
    print(f"{file}: {sum(row['passed'] for row in rows)} tests passed, {sum(len(row['failed']) for row in rows)} failed")


if __name__ == "__main__":
    main(*sys.argv[1:])

# SPDX-License-Identifier: Apache-2.0
"""The head of every file of results/: on which machine, of which commit (results/schema.json has the form)."""
import os, pathlib, platform, re, subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent


def machine():
    """The processor's model, the number of CPUs and the kernel."""
    model = re.search(r"^model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8"), re.M)
    return f"{model.group(1) if model else platform.machine()}, {os.cpu_count()} CPUs, Linux {platform.release()}"


def commit():
    """The first twelve digits, with `+dirty` where the tree differs; TEST_COMMIT says it where there is no checkout."""
    said = subprocess.run(["git", "-C", str(ROOT), "describe", "--always", "--abbrev=12", "--dirty=+dirty", "--exclude=*"],
                          capture_output=True, text=True, check=False).stdout.strip()
    return os.environ.get("TEST_COMMIT") or said or "unknown"

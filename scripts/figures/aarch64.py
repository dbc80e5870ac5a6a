# SPDX-License-Identifier: Apache-2.0
"""Test programs that were compiled for aarch64 and run by an emulator."""
from .common import load, sources, table


def aarch64():
    run = load("aarch64")
    rows = [[f"`{row['program']}`", row["page"] // 1024, row["passed"], len(row["failed"]) or ("0" if row["status"] == 0 else "it did not end")]
            for row in run["rows"]]
    lines = ["`scripts/aarch64` compiles test programs for aarch64 and runs them by qemu-user. No such machine was at hand.",
             "An emulator on x86 orders memory as x86 does: a missing order is not seen here. Pages of 64 KiB are Grace's.", "",
             f"Run by {run['machine']}.", ""]
    return lines + table(["<program", "KiB of a page", "tests passed", "failed"], rows) + sources("aarch64")

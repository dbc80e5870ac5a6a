# SPDX-License-Identifier: Apache-2.0
"""What a process has called, printed at its end if TORCH_GDRX_SUMMARY=1 asks for it."""
import os
import sys


def print_if_asked() -> None:
    if os.environ.get("TORCH_GDRX_SUMMARY", "") not in ("", "0"):
        print(text(), file=sys.stderr, flush=True)


def text() -> str:
    """A table: each group, its calls, and the ranks for which they have waited."""
    from gdrx import shim

    module = shim.load()
    names = module.recorded_groups()
    lines = []
    for number, rank, stats in module.all_stats():
        lines.append(f"gdrx: rank {rank} of group {names[number][0]}")
        lines.append(f"  {'call':<26}{'count':>10}{'bytes':>16}{'seconds':>10}")
        for name, seen in sorted(stats["calls"].items(), key=lambda item: -item[1]["bytes"]):
            lines.append(f"  {name:<26}{seen['count']:>10}{seen['bytes']:>16}{seen['seconds']:>10.3f}")
        for late, seconds in sorted(stats["waited"].items(), key=lambda item: -item[1])[:5]:
            lines.append(f"  waited for rank {late}: {seconds:.1f} s")
    return "\n".join(lines)

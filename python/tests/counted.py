# SPDX-License-Identifier: Apache-2.0
"""Runs tests, a line each, and counts them."""
import subprocess
import textwrap


class Failure(Exception):
    """What a test found."""


class Skip(Exception):
    """Why a test cannot run here."""


def alone(functions, wanted, prefix=""):
    """Each test_* of `functions` that is wanted, or all: its name, and what is wrong or nothing."""
    for name, function in list(functions.items()):
        if not name.startswith("test_") or (wanted and name not in wanted):
            continue
        try:
            function()
        except Skip as why:
            print(f"skip {prefix}{name}: {why}", flush=True)
        except (Failure, subprocess.TimeoutExpired) as failure:
            yield f"{prefix}{name}", str(failure)
        else:
            yield f"{prefix}{name}", ""


def count(*parts):
    """The exit status."""
    good = bad = 0
    for part in parts:
        for name, wrong in part:
            print(f"{'FAILED' if wrong else 'ok'} {name}", flush=True)
            if wrong:
                print(textwrap.indent(wrong, "    "), flush=True)
            good, bad = good + (not wrong), bad + bool(wrong)
    print(f"{good} passed, {bad} failed")
    return 1 if bad else 0

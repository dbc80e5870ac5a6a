# SPDX-License-Identifier: Apache-2.0
"""PyTorch's own DistributedTest, as its wheel has it, on one backend. scripts/torch-suites runs this.

    distributed_suite.py BACKEND RANKS RESULT.json [PATTERN...]

BACKEND gdrx-as-gloo: the tests see the name gloo, where they branch on it, and gdrx's
class. The ranks of a test are forked from this process, so what is registered here is so in all of them.
"""
import json
import os
import pathlib
import sys
import tempfile
import time
import unittest

if __name__ == "__main__":
    os.environ["SUITE_BACKEND"], os.environ["WORLD_SIZE"] = sys.argv[1:3]
    folder = tempfile.mkdtemp(prefix="gdrx-suite-")
    (pathlib.Path(folder) / "barrier").mkdir()
    (pathlib.Path(folder) / "test_dir").mkdir()
    os.environ["TEMP_DIR"] = folder
os.environ["BACKEND"] = "gloo" if os.environ["SUITE_BACKEND"] == "gdrx-as-gloo" else os.environ["SUITE_BACKEND"]

import torch
from torch.distributed import distributed_c10d as c10d
from torch.testing._internal import common_distributed

if os.environ["SUITE_BACKEND"] == "gdrx-as-gloo":
    from gdrx import torch_backend

    c10d.Backend._plugins["GLOO"] = c10d.Backend._BackendPlugin(torch_backend.create, True)
for feature in ("gpu", "cuda", "ddp", "subgroup", "plugin"):
    common_distributed.DistTestCases.backend_feature[feature].add("gdrx")

from torch.testing._internal.distributed import distributed_test
from torch.testing._internal.distributed.distributed_test import DistributedTest, TestDistBackend

for known in (distributed_test.PROFILING_SUPPORTED_BACKENDS, distributed_test.SEND_RECV_PROFILING_SUPPORTED_BACKENDS):
    known.append("gdrx")
if os.environ["SUITE_BACKEND"] == "gdrx-as-gloo":
    # A profiler shows gdrx's calls under gdrx's name, whatever the group is called.
    as_it_is = distributed_test.get_profiling_event

    def renamed(name, profiler, *args, **kwargs):
        events = as_it_is(name.replace("gloo:", "gdrx:"), profiler, *args, **kwargs)
        for event in events:
            event.name = event.name.replace("gdrx:", "gloo:")
        return events

    distributed_test.get_profiling_event = renamed


class Suite(TestDistBackend, DistributedTest._DistTestBase):
    def setUp(self):
        super().setUp()
        self._start_processes(torch.multiprocessing.get_context("fork").Process)  # PyTorch is imported once


class Result(unittest.TestResult):
    """One word a test, and what it said."""

    def __init__(self):
        super().__init__()
        self.found = {}

    def _note(self, test, word, text=""):
        name = test.id().split(".")[-1]
        self.found[name] = {"result": word, "text": text[-3000:]}
        print(f"{len(self.found):4d} {word:7s} {name}", flush=True)

    def addSuccess(self, test):
        self._note(test, "passed")

    def addSkip(self, test, reason):
        self._note(test, "skipped", reason)

    def addFailure(self, test, err):
        self._note(test, "failed", self._exc_info_to_string(err, test))

    def addError(self, test, err):
        self._note(test, "failed", self._exc_info_to_string(err, test))

    addExpectedFailure = addFailure


def main():
    loader = unittest.TestLoader()
    loader.testNamePatterns = [f"*{pattern}*" for pattern in sys.argv[4:]] or None
    suite = loader.loadTestsFromTestCase(Suite)
    result, begun = Result(), time.monotonic()
    suite.run(result)
    with open(sys.argv[3], "w", encoding="utf-8") as file:
        json.dump({"backend": sys.argv[1], "ranks": int(sys.argv[2]), "torch": torch.__version__,
                   "seconds": round(time.monotonic() - begun), "tests": result.found}, file, indent=1)


if __name__ == "__main__":
    main()

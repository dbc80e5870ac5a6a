# SPDX-License-Identifier: Apache-2.0
"""gdrx: collective communication. gdrx.Communicator is for numpy and all that has memory;
torch.distributed.init_process_group("gdrx") is for PyTorch.

Nothing here imports torch: PyTorch itself imports this package while it is half loaded.
"""
from gdrx.capi import unique_id
from gdrx.communicator import Communicator, Waiting
from gdrx.errors import ArgumentError, Error, Result
from gdrx.info import explain, failure, stats, version
from gdrx.requests import Group, Request, group

__version__ = "0.1.0"
__all__ = ["ArgumentError", "Communicator", "Error", "Group", "Request", "Result", "Waiting", "__version__",
           "explain", "failure", "group", "stats", "unique_id", "version"]

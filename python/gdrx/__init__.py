# SPDX-License-Identifier: Apache-2.0
"""gdrx: collective communication. gdrx.Communicator is for numpy and all that has memory;
torch.distributed.init_process_group("gdrx") is for PyTorch.

Nothing here imports torch: PyTorch itself imports this package while it is half loaded. Nothing of the
package is imported before it is asked for either, so that `import torch` cannot fail for it.
"""
import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gdrx.capi import unique_id
    from gdrx.communicator import Communicator, Waiting
    from gdrx.errors import ArgumentError, Error, Result
    from gdrx.info import explain, failure, stats, version
    from gdrx.options import Options, set_reproducible
    from gdrx.requests import Group, Request, group

__version__ = "0.1.0"
__all__ = ["ArgumentError", "Communicator", "Error", "Group", "Options", "Request", "Result", "Waiting", "__version__",
           "explain", "failure", "group", "set_reproducible", "stats", "unique_id", "version"]

_MODULES = {
    "capi": ("unique_id",), "communicator": ("Communicator", "Waiting"), "errors": ("ArgumentError", "Error", "Result"),
    "info": ("explain", "failure", "stats", "version"), "options": ("Options", "set_reproducible"), "requests": ("Group", "Request", "group"),
}


def __getattr__(name: str) -> Any:
    for module, names in _MODULES.items():
        if name in names:
            value = getattr(importlib.import_module(f"gdrx.{module}"), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module 'gdrx' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

# SPDX-License-Identifier: Apache-2.0
"""gdrx: collective communication for PyTorch, as torch.distributed.init_process_group("gdrx").

Nothing here imports torch: PyTorch itself imports this package while it is half loaded.
"""
from gdrx.info import explain, failure, version

__version__ = "0.1.0"
__all__ = ["__version__", "explain", "failure", "version"]

# SPDX-License-Identifier: Apache-2.0
"""The last calls of this process, in the form of PyTorch's flight recorder, which `torchfrtrace` reads.

TORCH_FR_BUFFER_SIZE (2000): how many are kept; 0: none. TORCH_FR_DUMP_TEMP_FILE: where a rank whose group fails
writes them, with its rank behind the name. Both have their old names, too: TORCH_NCCL_TRACE_BUFFER_SIZE and
TORCH_NCCL_DEBUG_INFO_TEMP_FILE.
"""
import os
import pickle

VERSION = "2.10"  # of the form

# What `torchfrtrace` calls these, by the titles that a profiler shows.
NAMES = {"all_gather_into_tensor": "_all_gather_base", "all_reduce_coalesced": "allreduce_coalesced",
         "all_to_all_single": "all_to_all", "barrier": "all_reduce_barrier",
         "reduce_scatter_tensor": "_reduce_scatter_base"}
LIBRARY = "nccl"  # up to PyTorch 2.13 `torchfrtrace` reads no other's calls, and later it warns of each
ANY = -2  # a receive from whoever sends
NOBODY = -1  # of a collective


def record() -> dict:
    """What this process has called. Of calls of CUDA tensors nobody sees the end: they are 'started'."""
    from gdrx import shim

    module = shim.load()
    calls = module.record()
    groups = module.recorded_groups()  # after the calls: a group is made before it calls
    return {"version": VERSION, "comm_lib_version": f"gdrx {_version()}",
            "pg_config": {name: {"name": name, "desc": "undefined", "ranks": str(list(ranks))}
                          for name, ranks, _ in groups.values()},
            "pg_status": _status(groups, calls),
            "entries": [_entry(call, groups) for call in calls]}


def write(path) -> None:
    """record() into a file, as `torchfrtrace` reads it."""
    data = pickle.dumps(record())
    unfinished = f"{path}.tmp"
    with open(unfinished, "wb") as file:
        file.write(data)
    os.replace(unfinished, path)


def write_if_asked(rank: int) -> None:
    """Where a variable says. `rank`: of the job."""
    prefix = next(filter(None, map(os.environ.get, ("TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE"))), "")
    if prefix:
        write(f"{prefix}{rank}")


def _version() -> str:
    from gdrx import info

    return info.version()


def _name(call: dict, me: int) -> str:
    """Of a message with both ranks, as its group numbers them."""
    title = call["title"].split(":")[1]
    if call["peer"] == NOBODY:
        return f"{LIBRARY}:{NAMES.get(title, title)}"
    other = me if call["peer"] == ANY else call["peer"]  # nobody knows yet; the form has no word for that
    return f"{LIBRARY}:send {me}->{other}" if call["sends"] else f"{LIBRARY}:recv {me}<-{other}"


def _state(call: dict) -> str:
    if call["ended"] and not call["failed"]:
        return "completed"
    return "started"


def _entry(call: dict, groups: dict) -> dict:
    name, _, me = groups[call["group"]]
    message = call["peer"] != NOBODY
    return {"record_id": call["number"] - 1, "pg_id": call["group"], "process_group": (name, "undefined"),
            "thread_id": "", "thread_name": "",
            "collective_seq_id": 0 if message else call["sequence"], "p2p_seq_id": call["sequence"] if message else 0,
            "op_id": call["number"], "profiling_name": _name(call, me), "is_p2p": message,
            "input_sizes": call["input_sizes"], "input_dtypes": call["input_dtypes"],
            "output_sizes": call["output_sizes"], "output_dtypes": call["output_dtypes"],
            "time_created_ns": call["created"], "time_discovered_started_ns": call["created"],
            "time_discovered_completed_ns": call["ended"] or None, "timeout_ms": call["timeout"],
            "state": _state(call), "retired": bool(call["ended"]), "frames": []}


def _status(groups: dict, calls: list) -> dict:
    """The last collective of each group that was made, and that ended."""
    all_groups = {}
    for number in groups:
        own = [call for call in calls if call["group"] == number and call["peer"] == NOBODY]
        made = max((call["sequence"] for call in own), default=-1)
        ended = max((call["sequence"] for call in own if _state(call) == "completed"), default=-1)
        all_groups[str(number)] = {"last_enqueued_collective": made, "last_started_collective": made,
                                   "last_completed_collective": ended}
    return all_groups

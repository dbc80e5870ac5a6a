# SPDX-License-Identifier: Apache-2.0
"""The thread that watches the groups of this process: it says for whom they wait, and why they failed."""
import logging
import os
import threading

BETWEEN_LOOKS = 0.1  # seconds
log = logging.getLogger("gdrx")

_thread = None
_ended = threading.Event()
_looking = threading.Lock()  # a fork between two looks: a child would inherit locks that nobody opens
os.register_at_fork(before=_looking.acquire, after_in_parent=_looking.release, after_in_child=_looking.release)


def start() -> None:
    """Once a process; again in a forked child."""
    global _thread  # pylint: disable=global-statement
    if _thread is not None and _thread.is_alive():
        return
    _ended.clear()
    _thread = threading.Thread(target=_watch, name="gdrx-watch", daemon=True)
    _thread.start()


def stop() -> None:
    """After a last look. Before the interpreter ends: a thread that comes back to it from C++ after that does harm."""
    _ended.set()
    if _thread is not None:
        _thread.join()


def _watch() -> None:
    from gdrx import shim

    module = shim.load()
    failed = set()
    last = False
    while not last:
        last = _ended.wait(BETWEEN_LOOKS)
        with _looking:
            all_seen = module.look()
        for seen in all_seen:
            if seen["late"]:
                log.warning(_late(module, seen))
            if seen["failure"] and seen["group"] not in failed:
                failed.add(seen["group"])
                _tell_failure(module, seen)


def _who(module, seen) -> str:
    name, _, _ = module.recorded_groups()[seen["group"]]
    return f"gdrx: rank {seen['rank']} of group {name}"


def _late(module, seen) -> str:
    ranks = ", ".join(str(rank) for rank in seen["late"])
    plural = "s" if len(seen["late"]) > 1 else ""
    call = seen["text"].split("\n", 1)[0]  # it begins with its seconds
    return f"{_who(module, seen)} waits for rank{plural} {ranks} since {call}"


def _tell_failure(module, seen) -> None:
    """Who calls or waits gets the exception. This is for a job that does neither, and for who looks later."""
    from gdrx import flight

    log.warning("%s has failed: %s", _who(module, seen), seen["failure"])
    try:
        flight.write_if_asked()
    except OSError as error:
        log.warning("gdrx: the record of the last calls was not written: %s", error)

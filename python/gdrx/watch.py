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


def _in_child() -> None:
    global _thread, _ended, _looking  # pylint: disable=global-statement
    _thread, _ended, _looking = None, threading.Event(), threading.Lock()


os.register_at_fork(before=lambda: _looking.acquire(), after_in_parent=lambda: _looking.release(),
                    after_in_child=_in_child)


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
        try:
            with _looking:
                all_seen = module.look()
            for seen in all_seen:
                _tell(module, seen, failed)
        except Exception:  # pylint: disable=broad-except
            log.exception("gdrx: a look at the groups went wrong; the next one is in %s s", BETWEEN_LOOKS)


def _tell(module, seen: dict, failed: set) -> None:
    who = f"gdrx: rank {seen['rank']} of group {seen['name']}"
    if seen["late"]:
        ranks = ", ".join(str(rank) for rank in seen["late"])
        plural = "s" if len(seen["late"]) > 1 else ""
        call = seen["text"].split("\n", 1)[0]  # it begins with its seconds
        log.warning("%s waits for rank%s %s since %s", who, plural, ranks, call)
    if seen["failure"] and seen["group"] not in failed:
        # Who calls or waits gets the exception. This is for a job that does neither, and for who looks later.
        log.warning("%s has failed: %s", who, seen["failure"])
        if not failed:  # the first: what fails after it, fails of it
            from gdrx import flight

            _, ranks, _ = module.recorded_groups()[seen["group"]]
            flight.write_if_asked(ranks[seen["rank"]])
        failed.add(seen["group"])

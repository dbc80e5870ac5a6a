# SPDX-License-Identifier: Apache-2.0
"""A rank of plain.py: plain_ranks.py FUNCTION."""
import contextlib
import os
import signal
import sys
import threading
import time
import traceback

import gdrx
import numpy as np
import plain_calls


def report(call, begun=None):
    """One line: how long until the error came, its code, its rank and its text."""
    begun = time.monotonic() if begun is None else begun
    try:
        call()
    except gdrx.Error as error:
        print(f"RAISED {time.monotonic() - begun:.3f} {error.code.name} {error.rank} {error.text}", flush=True)
    else:
        print("PASSED", flush=True)


def join(**options):
    return gdrx.Communicator.from_environment(**options)


def every_call():
    with join() as comm:
        for name, function in list(vars(plain_calls).items()):
            if not name.startswith("test_"):
                continue
            try:
                function(comm)
                comm.barrier()
            except BaseException:  # pylint: disable=broad-except
                print(f"FAILED {name}\n{traceback.format_exc()}", flush=True)
                os._exit(1)  # the group is out of step: the others find that this rank is gone
            print(f"ok {name}", flush=True)


def killed():
    comm = join()
    comm.barrier()
    time.sleep(0.3)
    if comm.rank == 1:
        time.sleep(0.3)
        os.kill(os.getpid(), signal.SIGKILL)
    begun = time.monotonic() + 0.3
    report(lambda: comm.all_reduce(np.ones(1000)), begun)
    report(comm.barrier)  # it stays so
    assert comm.failure().rank == 1
    comm.finalize()  # what was raised is not raised again


def killed_unnoticed():
    """No call has met the death: finalize tells of it."""
    comm = join()
    comm.barrier()
    time.sleep(0.3)
    if comm.rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.7)
    report(comm.finalize)
    report(comm.finalize)


def mismatch():
    comm = join()
    comm.barrier()
    report(lambda: comm.all_reduce(np.ones(6 if comm.rank == 1 else 4)))
    comm.finalize()


def late():
    comm = join(timeout=1.5)
    comm.barrier()
    if comm.rank == 1:
        time.sleep(2.5)
        return
    watch = threading.Timer(0.7, lambda: print("LATE", comm.late().ranks, flush=True))
    watch.start()
    report(lambda: comm.all_reduce(np.ones(4)))
    watch.join()
    comm.finalize()


def aborted():
    comm = join()
    comm.barrier()
    if comm.rank == 1:
        threading.Timer(0.3, comm.abort).start()
    report(lambda: comm.recv(np.zeros(4), 1 - comm.rank))
    comm.finalize()


def raises():
    with join() as comm:
        comm.barrier()
        if comm.rank == 1:
            time.sleep(0.3)  # the other has left the barrier, too
            raise KeyError("mine")
        report(comm.barrier)


def shrinks():
    comm = join()
    try:
        comm.barrier()  # of which the others may not have heard the end
        if comm.rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        while True:
            comm.all_reduce(np.ones(1))
    except gdrx.Error as error:
        rest = comm.shrink([error.rank])
    comm.finalize()
    with rest:
        data = np.ones(1)
        rest.all_reduce(data)
        print(f"SUM {data[0]:.0f}", flush=True)


def finalized():
    comm = join()
    comm.finalize()
    comm.finalize()
    report(comm.barrier)


def forked():
    comm = join()
    request = comm.recv(np.zeros(1), 1 - comm.rank, wait=False)
    child = os.fork()
    if child == 0:
        for call in (comm.barrier, comm.abort, comm.failure, request.test, request.wait):
            report(call)
        del comm, request
        sys.exit()
    status = os.waitpid(child, 0)[1]
    comm.send(np.zeros(1), 1 - comm.rank)
    request.wait()
    comm.finalize()
    assert status == 0


def receives_in_another_thread(comm):
    started = threading.Thread(target=report, args=(lambda: comm.recv(np.zeros(1), 1 - comm.rank),))
    started.start()
    while started.is_alive() and not comm.late().running:
        time.sleep(0.01)
    return started


def used_by_two_threads():
    comm, other = join(), join()
    thread = receives_in_another_thread(comm) if comm.rank == 0 else None
    for call in (comm.barrier, comm.finalize, comm.stats) if thread else ():
        report(call)
    other.barrier()
    if thread:
        thread.join()
    else:
        comm.send(np.zeros(1), 0)
    other.finalize()
    comm.finalize()


def raises_beside_a_thread():
    """The communicator is freed when the thread has left it."""
    comm, other = join(), join()
    thread = receives_in_another_thread(comm)
    other.barrier()
    try:
        with comm:
            raise KeyError
    except KeyError:
        thread.join()
    other.finalize()


def interrupt_soon():
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()


def interrupted_while_a_peer_dies():
    comm = join()
    comm.barrier()
    if comm.rank == 1:
        time.sleep(0.8)
        os.kill(os.getpid(), signal.SIGKILL)
    request = comm.recv(np.zeros(1), 1, wait=False)
    interrupt_soon()
    try:
        request.wait()
    except KeyboardInterrupt:
        report(request.test)
    comm.finalize()


def interrupted_in_a_group():
    comm = join()
    comm.barrier()
    data, request = np.zeros(2), None
    if comm.rank == 0:
        interrupt_soon()
        try:
            with gdrx.group():
                comm.recv(data[:1], 1)
                request = comm.recv(data[1:], 1, wait=False)
        except KeyboardInterrupt:
            print("INTERRUPTED", flush=True)
        request.wait()
        assert data.tolist() == [1, 1]
    else:
        time.sleep(0.8)
        comm.send(np.ones(1), 0)
        comm.send(np.ones(1), 0)
    comm.barrier()  # not in the group
    comm.finalize()


def left_alive():
    """Nobody finalizes: interpreters end with a cycle, a request, and a thread in a call."""
    import gc

    gc.disable()
    comm = join()
    comm.barrier()
    half = comm.split(0)
    half.barrier()
    comm.own, comm.half = comm, half
    comm.request = comm.recv(np.zeros(1), 1 - comm.rank, wait=False)

    def waits():  # and says nothing: the interpreter ends
        with contextlib.suppress(gdrx.Error):
            comm.recv(np.zeros(1), 1 - comm.rank)

    threading.Thread(target=waits, daemon=True).start()
    time.sleep(0.5)  # the end of one rank aborts the others' calls: they have left theirs


def leaves_a_request_open():
    comm = join()
    data = np.ones(3)
    request = comm.all_reduce(data, wait=False)
    comm.finalize()
    request.wait()
    assert request.test() and data.tolist() == [comm.size] * 3


def killed_in_a_group():
    comm = join()
    comm.barrier()
    time.sleep(0.3)
    if comm.rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)

    def exchange():
        with gdrx.group():
            comm.send(np.ones(1 << 20), 1)
            requests.append(comm.recv(np.zeros(1 << 20), 1, wait=False))
        requests[0].wait()

    requests = []
    report(exchange)
    comm.finalize()


class LikeMpi:
    """What is used of an mpi4py communicator, over a gdrx one."""

    def __init__(self, comm):
        self.comm = comm
        self.Get_rank = lambda: comm.rank
        self.Get_size = lambda: comm.size

    def bcast(self, made, root):
        data = bytearray(made or bytes(128))
        self.comm.broadcast(data, root)
        return bytes(data)


def check(comm):
    with comm:
        data = np.ones(3)
        comm.all_reduce(data)
        assert data.tolist() == [comm.size] * 3 and comm.size == 2, data


def like_mpi():
    with join() as comm:
        check(gdrx.Communicator.from_mpi(LikeMpi(comm)))


def from_mpi4py():
    from mpi4py import MPI

    check(gdrx.Communicator.from_mpi(MPI.COMM_WORLD, timeout=20))


def from_launcher():
    check(join())
    check(join())  # another of the same ranks


def on_emulated_cuda():
    import plain_cuda

    plain_cuda.open_gpu()
    with join(gpu=0) as comm:
        plain_cuda.run(comm)


def late_on_emulated_cuda():
    """A kernel waits, and no thread of the host does."""
    import plain_cuda

    plain_cuda.open_gpu()
    comm = join(gpu=0, timeout=3)
    plain_cuda.late(comm)
    comm.finalize()


def id_file():
    check(join(id_file=os.environ["TEST_ID"]))


if __name__ == "__main__":
    globals()[sys.argv[1]]()

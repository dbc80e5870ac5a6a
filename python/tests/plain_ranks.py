# SPDX-License-Identifier: Apache-2.0
"""A rank of plain.py: plain_ranks.py FUNCTION."""
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
    comm.barrier()
    if comm.rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    try:
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
    child = os.fork()
    if child == 0:
        report(comm.barrier)
        del comm
        sys.exit()
    status = os.waitpid(child, 0)[1]
    comm.barrier()
    comm.finalize()
    assert status == 0


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


def id_file():
    check(join(id_file=os.environ["TEST_ID"]))


if __name__ == "__main__":
    globals()[sys.argv[1]]()

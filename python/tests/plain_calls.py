# SPDX-License-Identifier: Apache-2.0
"""Every call of gdrx.Communicator, in one group of ranks: what plain.py starts, a process a rank."""
import array
import copy
import importlib
import importlib.util
import weakref

import gdrx
import numpy as np

COUNT = 12


def mine(comm, dtype=np.float64, count=COUNT):
    return (np.arange(count) % 3 + comm.rank + 1).astype(dtype)


def of(comm, rank, dtype=np.float64, count=COUNT):
    return (np.arange(count) % 3 + rank + 1).astype(dtype)


def total(comm, dtype=np.float64, ranks=None):
    return sum(of(comm, rank, dtype) for rank in (range(comm.size) if ranks is None else ranks))


def same(got, wanted):
    np.testing.assert_array_equal(np.asarray(got), np.asarray(wanted))


def refused(words, call):
    try:
        call()
    except gdrx.ArgumentError as error:
        text = str(error)
        assert error.code == gdrx.Result.INVALID_ARGUMENT and "\n" not in text, text
        assert words in text, f"{words!r} is not in: {text}"
    else:
        raise AssertionError(f"not refused: {words}")


def test_all_reduce(comm):
    out = np.zeros(COUNT)
    comm.all_reduce(mine(comm), out)
    same(out, total(comm))
    data = mine(comm).reshape(3, 4)
    comm.all_reduce(data, op="max")
    same(data.ravel(), of(comm, comm.size - 1))
    comm.all_reduce(np.zeros(0))


def test_types(comm):
    names = "int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 float32 float64 complex64 complex128 longdouble"
    for name in names.split():
        data = mine(comm, name)
        comm.all_reduce(data)
        same(data, total(comm, name))
    flags = np.array([True, comm.rank == 0])
    comm.all_reduce(flags, op="land")
    same(flags, [True, False])
    one = np.full(4, 0x3f80, np.uint16)  # 1.0 in bfloat16
    comm.all_reduce(one, dtype="bfloat16")
    same(one, np.full(4, {2: 0x4000, 3: 0x4040}[comm.size], np.uint16))
    one = np.full(4, 0x38, np.uint8)  # 1.0 in e4m3
    comm.all_reduce(one, op="max", dtype="float8_e4m3fn")
    same(one, np.full(4, 0x38, np.uint8))
    pair = np.array([(5.0, comm.rank)], dtype=[("value", "f4"), ("index", "i4")])
    comm.all_reduce(pair, op="minloc", dtype="float_int")
    assert pair[0]["index"] == 0
    if importlib.util.find_spec("ml_dtypes"):
        bfloat16 = importlib.import_module("ml_dtypes").bfloat16
        data = mine(comm, bfloat16)
        comm.all_reduce(data)
        same(data.astype(float), total(comm))


def test_reduce_and_broadcast(comm):
    root, out = comm.size - 1, np.zeros(COUNT)
    comm.reduce(mine(comm), out if comm.rank == root else None, root=root)
    if comm.rank == root:
        same(out, total(comm))
    data = mine(comm)
    comm.reduce(data, root=0)
    same(data, total(comm) if comm.rank == 0 else mine(comm))
    data = mine(comm)
    data.flags.writeable = comm.rank != 1  # root's is only read
    comm.broadcast(data, root=1)
    same(data, of(comm, 1))


def test_gather_and_scatter(comm):
    whole = np.concatenate([of(comm, rank) for rank in range(comm.size)])
    out = np.zeros(COUNT * comm.size)
    comm.all_gather(mine(comm), out)
    same(out, whole)
    part = np.zeros(COUNT)
    comm.reduce_scatter(whole, part)
    same(part, of(comm, comm.rank) * comm.size)
    out[:] = 0
    comm.gather(mine(comm), out if comm.rank == 1 else None, root=1)
    same(out, whole if comm.rank == 1 else 0 * whole)
    part[:] = 0
    comm.scatter(whole if comm.rank == 0 else None, part)
    same(part, mine(comm))


def test_all_to_all(comm):
    out = np.zeros(comm.size)
    comm.all_to_all(np.arange(comm.size) + 10.0 * comm.rank, out)
    same(out, 10.0 * np.arange(comm.size) + comm.rank)
    data = np.arange(comm.size) + 10.0 * comm.rank
    comm.all_to_all(data)
    same(data, out)


def test_counts_for_each_rank(comm):
    rank, size = comm.rank, comm.size
    counts = [r + 1 for r in range(size)]
    send = np.concatenate([np.full(r + 1, 10.0 * rank + r) for r in range(size)])
    recv = np.zeros(size * (rank + 1))
    comm.all_to_all_v(send, np.array(counts), recv, [rank + 1] * size)
    same(recv, np.repeat(10.0 * np.arange(size) + rank, rank + 1))
    whole = np.repeat(np.arange(size) + 1.0, counts)
    part, out = np.full(rank + 1, rank + 1.0), np.zeros(sum(counts))
    comm.all_gather_v(part, out, counts)
    same(out, whole)
    comm.reduce_scatter_v(whole, part, counts)
    same(part, np.full(rank + 1, (rank + 1.0) * size))
    comm.scatter_v(whole if rank == 0 else None, part, counts if rank == 0 else ())
    same(part, np.full(rank + 1, rank + 1.0))
    apart = np.full(2 * sum(counts), -1.0)
    starts = [2 * sum(counts[:r]) for r in range(size)]
    comm.gather_v(part, apart if rank == 0 else None, counts, starts)
    if rank == 0:
        for r in range(size):
            same(apart[starts[r]:starts[r] + r + 2], [r + 1.0] * (r + 1) + [-1.0])


def test_leaves(comm):
    leaves = [np.float32(10.0) ** (number % 9 - 4) * np.arange(1, COUNT + 1, dtype=np.float32) / (number + 3)
              for number in range(2 * comm.size)]
    level = leaves
    while len(level) > 1:  # 2 * size is 4 or 6: the tree's right side is shorter, and waits
        level = [level[i] + level[i + 1] if i + 1 < len(level) else level[i] for i in range(0, len(level), 2)]
    for counts in ([2] * comm.size, [2 * comm.size] + [0] * (comm.size - 1)):
        first = sum(counts[:comm.rank])
        own = np.array(leaves[first:first + counts[comm.rank]], np.float32).reshape(-1)
        out = np.zeros(COUNT, np.float32)
        comm.all_reduce_leaves(own, out, counts)
        same(out, level[0])


def test_scan_and_exscan(comm):
    out = np.zeros(COUNT)
    comm.scan(mine(comm), out)
    same(out, total(comm, ranks=range(comm.rank + 1)))
    out = np.full(COUNT, -1.0)
    comm.exscan(mine(comm), out)
    same(out, total(comm, ranks=range(comm.rank)) if comm.rank else np.full(COUNT, -1.0))


def test_messages_and_groups(comm):
    after, before = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    out = np.zeros(COUNT)
    with comm.group(timeout=30):
        comm.send(mine(comm), after)
        request = comm.recv(out, before, wait=False)
        refused("has not ended", request.test)
    request.wait()
    same(out, of(comm, before))
    if comm.rank == 0:
        comm.send(b"12345678", 1, dtype="float64")
    elif comm.rank == 1:
        comm.recv(out[:1], 0)
        assert out[:1].tobytes() == b"12345678"


def test_a_group_that_raises_posts_nothing(comm):
    requests, data = [], mine(comm)
    try:
        with comm.group():
            requests.append(comm.all_reduce(data, wait=False))
            raise KeyError
    except KeyError:
        pass
    try:
        requests[0].wait()
    except gdrx.Error as error:
        assert error.code == gdrx.Result.INVALID_ARGUMENT, error
    else:
        raise AssertionError("a request of a group that raised is not done")
    same(data, mine(comm))
    comm.barrier()


def test_requests(comm):
    out = np.zeros(COUNT)
    request = comm.all_reduce(mine(comm), out, wait=False)  # nobody else keeps what it reads
    while not request.test():
        pass
    assert request.test()
    same(out, total(comm))
    comm.barrier(wait=False).wait()


def test_a_request_that_nobody_keeps_lets_go_of_its_buffers(comm):
    seen = []
    for _ in range(8):
        data = mine(comm)
        seen.append(weakref.ref(data))
        comm.all_reduce(data, wait=False)
        del data
        comm.barrier()
    left = [ref for ref in seen if ref() is not None]
    assert len(left) <= 1, f"{len(left)} arrays are kept"
    requests = [comm.all_reduce(mine(comm), wait=False) for _ in range(8)]
    comm.barrier()
    for request in requests:  # what was found to be done meanwhile is done
        assert request.test()
        request.wait()


def test_a_group_takes_calls_that_move_data_only(comm):
    for words, call in (("making a communicator cannot be in a group", lambda: comm.split(0)),
                        ("making a communicator cannot be in a group", lambda: comm.shrink([])),
                        ("finalize cannot be in a group", comm.finalize)):
        with comm.group():
            refused(words, call)
    comm.barrier()


def test_a_group_in_which_a_body_raised_says_so(comm):
    def outer():
        with comm.group():
            comm.all_reduce(mine(comm))
            try:
                with comm.group():
                    raise KeyError
            except KeyError:
                pass

    refused("the body of a group raised", outer)
    comm.barrier()


def test_what_the_library_refuses_is_an_argument_error(comm):
    refused("no band of double", lambda: comm.all_reduce(mine(comm), op="band"))
    comm.barrier()


def test_numbers_of_numpy(comm):
    data = mine(comm)
    comm.broadcast(data, root=np.int64(0))
    same(data, of(comm, 0))
    try:
        comm.broadcast(data, root=0.0)
    except TypeError:
        pass
    else:
        raise AssertionError("a root of 0.0 was taken")
    assert "1 MiB" in comm.explain(np.int64(1 << 20)) or "1048576" in comm.explain(np.int64(1 << 20))


def test_it_is_not_copied(comm):
    try:
        copy.copy(comm)
    except TypeError as error:
        assert "split" in str(error)
    else:
        raise AssertionError("two owners of one communicator")
    assert repr(comm) == f"<gdrx.Communicator rank {comm.rank} of {comm.size}>"


def test_split(comm):
    half = comm.split(0 if comm.rank < 2 else None, key=-comm.rank)
    if comm.rank < 2:
        with half:
            assert (half.size, half.rank) == (2, 1 - comm.rank)
            data = mine(comm)
            half.all_reduce(data)
            same(data, total(comm, ranks=range(2)))
    else:
        assert half is None


def test_what_can_be_looked_at(comm):
    comm.all_reduce(mine(comm))
    stats = comm.stats()
    assert stats["calls"]["all_reduce"]["count"] >= 1 and stats["last"]["algorithm"], stats
    assert comm.failure() is None and comm.late().ranks == () and comm.late().running == 0
    assert "us" in comm.explain(1 << 20) and comm.explain(np.zeros(8))
    comm.set_timeout(0)


def test_all_that_has_memory(comm):
    wanted = [float(comm.size)] * 4
    for data in (array.array("d", [1.0] * 4), memoryview(array.array("d", [1.0] * 4))):
        comm.all_reduce(data)
        assert list(data) == wanted, list(data)
    data = bytearray(b"\1" * 4)
    comm.all_reduce(data)
    assert data == bytes([comm.size]) * 4

    class Only:
        """Has one of the interfaces, and nothing else."""

        def __init__(self, name):
            self.data = np.ones(4)
            if name != "__dlpack__":
                setattr(self, name, self.data.__array_interface__)

    class Pack(Only):
        """The same for DLPack."""

        def __dlpack__(self, **options):
            return self.data.__dlpack__(**options)

    class OldPack(Only):
        """From before its version 1."""

        def __dlpack__(self):
            return self.data.__dlpack__()

    for data in (Only("__array_interface__"), Only("__cuda_array_interface__"), Pack("__dlpack__"),
                 OldPack("__dlpack__")):
        comm.all_reduce(data)
        same(data.data, wanted)
    if importlib.util.find_spec("torch"):
        torch = importlib.import_module("torch")
        for dtype in (torch.float32, torch.bfloat16, torch.int64, torch.float8_e4m3fn):
            data = torch.ones(4).to(dtype)
            comm.all_reduce(data, op="sum")
            assert data.float().tolist() == wanted, data


def test_memory_that_is_made_for_who_asks(comm):
    class Image:
        """As Pillow has it: the data is an object that has the memory."""

        def __init__(self, count):
            self.count = count

        @property
        def __array_interface__(self):
            return {"shape": (self.count,), "typestr": "|u1", "data": bytes([comm.rank + 1] * 4), "version": 3}

    out = np.zeros(4, np.uint8)
    comm.all_reduce(Image(4), out)
    same(out, [sum(range(1, comm.size + 1))] * 4)
    refused("read-only", lambda: comm.all_reduce(Image(4)))
    refused("smaller than shape", lambda: comm.broadcast(Image(5), root=comm.rank))
    out = np.zeros(1)
    comm.all_reduce(np.float64(comm.rank), out)
    same(out, [sum(range(comm.size))])
    refused("read-only", lambda: comm.all_reduce(np.float64(1)))


def test_bad_buffers_are_refused(comm):
    good, square = mine(comm), np.zeros((4, 4))
    frozen = mine(comm)
    frozen.flags.writeable = False
    released = memoryview(bytearray(8))
    released.release()
    for words, call in (
            ("released", lambda: comm.all_reduce(released)),
            ("not contiguous", lambda: comm.all_reduce(square.T)),
            ("not contiguous", lambda: comm.all_reduce(good[::2])),
            ("not contiguous", lambda: comm.all_reduce(memoryview(bytearray(8))[::2])),
            ("read-only", lambda: comm.all_reduce(frozen)),
            ("read-only", lambda: comm.recv(b"1234", 0)),
            ("not a type of gdrx", lambda: comm.all_reduce(np.array([b"a", b"b"]))),
            ("not a type of gdrx", lambda: comm.all_reduce(good, dtype="float65")),
            ("big-endian", lambda: comm.all_reduce(good.astype(">f8"))),
            ("big-endian", lambda: comm.all_reduce(good, dtype=np.dtype(">f8"))),
            ("not a type of gdrx", lambda: comm.all_reduce(good.astype("M8[ns]"))),
            ("|O", lambda: comm.all_reduce(np.array([None]), dtype="int64")),
            ("<U1", lambda: comm.all_reduce(np.array(["a"]), dtype="uint8")),
            ("is not memory", lambda: comm.all_reduce([1.0, 2.0])),
            ("recv has 5 elements, not 12", lambda: comm.all_reduce(good, np.zeros(5))),
            ("send is of float64, recv of float32", lambda: comm.all_reduce(good, np.zeros(12, np.float32))),
            ("no whole number", lambda: comm.all_reduce(bytearray(7), dtype="float32")),
            ("op 'mean' is none of", lambda: comm.all_reduce(good, op="mean")),
            ("root 7 is no rank", lambda: comm.broadcast(good, root=7)),
            ("peer -1 is no rank", lambda: comm.send(good, -1)),
            ("elements, not", lambda: comm.all_gather(good, np.zeros(13))),
            ("no equal blocks", lambda: comm.all_to_all(np.zeros(comm.size + 1))),
            ("one entry for each", lambda: comm.all_gather_v(good, good, [1])),
            ("the part of rank", lambda: comm.all_gather_v(good, good, [9] * comm.size)),
            ("stream of each thread", lambda: comm.barrier(stream=2)),
            ("give an int", lambda: comm.barrier(stream="s")),
            ("size 4294967297 is out of range", lambda: gdrx.Communicator(gdrx.unique_id(), 0, 2**32 + 1)),
            ("color 4294967296 is out of range", lambda: comm.split(2**32)),
            ("rank 4294967296 is out of range", lambda: comm.shrink([2**32])),
            ("-1 bytes are out of range", lambda: comm.explain(-1)),
            ("id has 3 bytes", lambda: gdrx.Communicator(b"abc", 0, 1))):
        refused(words, call)
    same(good, mine(comm))
    comm.barrier()

# SPDX-License-Identifier: Apache-2.0
"""Every element type with every operator it takes, and a clear word for those it does not."""
import operator
from functools import reduce

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import AllgatherOptions

from collectives import same

INTEGERS = (torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8, torch.uint16,
            torch.uint32, torch.uint64)
FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
COMPLEX = (torch.complex64, torch.complex128)
SMALL = (torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz)
OPS = {
    dist.ReduceOp.SUM: operator.add,
    dist.ReduceOp.PRODUCT: operator.mul,
    dist.ReduceOp.MIN: torch.minimum,
    dist.ReduceOp.MAX: torch.maximum,
    dist.ReduceOp.BAND: operator.and_,
    dist.ReduceOp.BOR: operator.or_,
    dist.ReduceOp.BXOR: operator.xor,
}
BITS = (dist.ReduceOp.BAND, dist.ReduceOp.BOR, dist.ReduceOp.BXOR)


def numbers(rank: int, dtype):
    """Small enough that no result is rounded, in whatever order."""
    values = torch.tensor([1, 2, 3, 1, 0, 2, 1]).roll(rank)
    return (values + values * 1j if dtype.is_complex else values).to(dtype)


def backend():
    return dist.group.WORLD._get_backend(torch.device("cpu"))


def reduced(tensor, op):
    """By the backend itself: dist.* would show it complex numbers as pairs of reals."""
    options = dist.AllreduceOptions()
    options.reduceOp = op
    backend().allreduce([tensor], options).wait()
    return tensor


def wanted(size, dtype, function):
    wide = torch.complex128 if dtype.is_complex else (
        torch.float64 if dtype.is_floating_point else torch.int64)
    return reduce(function, [numbers(r, dtype).to(wide) for r in range(size)]).to(dtype)


def test_integers(rank, size):
    for dtype in INTEGERS:
        for op, function in OPS.items():
            same(reduced(numbers(rank, dtype), op), wanted(size, dtype, function))


def test_floats(rank, size):
    for dtype in FLOATS:
        for op, function in OPS.items():
            if op not in BITS:
                same(reduced(numbers(rank, dtype), op), wanted(size, dtype, function))


def test_complex(rank, size):
    for dtype in COMPLEX:
        for op in (dist.ReduceOp.SUM, dist.ReduceOp.PRODUCT):
            same(reduced(numbers(rank, dtype), op), wanted(size, dtype, OPS[op]))
        tensor = numbers(rank, dtype)
        dist.all_reduce(tensor)
        same(tensor, wanted(size, dtype, operator.add))


def test_eight_bit_floats(rank, size):
    for dtype in SMALL:
        got = reduced(numbers(rank, dtype), dist.ReduceOp.SUM)
        assert torch.equal(got.float(), wanted(size, dtype, operator.add).float()), dtype


def test_bool(rank, size):
    values = [torch.tensor([r == 0, r < size, False, r == 1]) for r in range(size)]
    for op, function in ((dist.ReduceOp.SUM, operator.or_), (dist.ReduceOp.MAX, operator.or_),
                         (dist.ReduceOp.BOR, operator.or_), (dist.ReduceOp.BXOR, operator.xor),
                         (dist.ReduceOp.PRODUCT, operator.and_), (dist.ReduceOp.MIN, operator.and_),
                         (dist.ReduceOp.BAND, operator.and_)):
        same(reduced(values[rank].clone(), op), reduce(function, values))


def test_average(rank, size):
    for dtype in FLOATS:
        tensor = reduced(torch.full((5,), 3.0 * size * (rank + 1), dtype=dtype), dist.ReduceOp.AVG)
        same(tensor, torch.full((5,), 3.0 * size * (size + 1) / 2, dtype=dtype))


def test_sum_of_scaled(rank, size):
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        same(reduced(torch.full((5,), 4.0, dtype=dtype), dist._make_nccl_premul_sum(0.5 * (rank + 1))),
             torch.full((5,), size * (size + 1.0), dtype=dtype))
        factor = torch.tensor([2.0], dtype=dtype)
        same(reduced(torch.full((5,), 4.0, dtype=dtype), dist._make_nccl_premul_sum(factor)),
             torch.full((5,), 8.0 * size, dtype=dtype))


def test_reduce_scatter_takes_operators_too(rank, size):
    output = torch.empty(2)
    dist.reduce_scatter_tensor(output, torch.full((2 * size,), float(rank)), op=dist.ReduceOp.MAX)
    same(output, torch.full((2,), size - 1.0))
    dist.reduce_scatter_tensor(output, torch.full((2 * size,), float(rank)), op=dist.ReduceOp.AVG)
    same(output, torch.full((2,), (size - 1) / 2))


def test_every_type_travels(rank, size):
    for dtype in (*INTEGERS, *FLOATS, *COMPLEX, *SMALL, torch.bool):
        tensor = numbers(rank, torch.float32).to(dtype)
        bits = [numbers(r, torch.float32).to(dtype).view(torch.uint8) for r in range(size)]
        output = torch.empty(7 * size, dtype=dtype)
        backend()._allgather_base(output, tensor, AllgatherOptions()).wait()
        same(output.view(torch.uint8), torch.cat(bits))
        got = torch.empty(7, dtype=dtype)
        work = dist.isend(tensor, (rank + 1) % size)
        dist.recv(got, (rank - 1) % size)
        work.wait()
        same(got.view(torch.uint8), bits[(rank - 1) % size])
        dist.broadcast(tensor, 0)
        same(tensor.view(torch.uint8), bits[0])


def refused(function, *words):
    """It raises, on this rank alone, and says these words."""
    try:
        function()
    except (RuntimeError, ValueError) as error:
        for word in words:
            assert word in str(error), f"{word!r} is not in: {error}"
        return
    raise AssertionError(f"not refused; wanted: {words}")


def test_what_is_refused(rank, size):
    floats = torch.ones(3)
    refused(lambda: reduced(floats, dist.ReduceOp.BAND), "bitwise", "Float")
    refused(lambda: reduced(torch.ones(3, dtype=torch.bool), dist.ReduceOp.AVG), "bool")
    refused(lambda: backend().allreduce([torch.ones(3, dtype=torch.complex64)],
                                        _options(dist.ReduceOp.MAX)), "complex")
    refused(lambda: dist.all_reduce(torch.eye(3).to_sparse()), "sparse", "to_dense")
    refused(lambda: dist.all_gather_into_tensor(torch.empty(2 * size), floats), "3 on each")
    refused(lambda: backend().allreduce([floats, floats]), "single-element")
    refused(lambda: dist.all_to_all_single(torch.empty(size), torch.ones(size),
                                           [1] * size, [2] * size), "split sizes sum to")
    refused(lambda: backend().send([floats], rank, 0), "itself")


def _options(op):
    options = dist.AllreduceOptions()
    options.reduceOp = op
    return options

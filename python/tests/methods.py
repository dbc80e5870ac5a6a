# SPDX-License-Identifier: Apache-2.0
"""Which calls of torch.distributed run on gdrx with this PyTorch: a line "METHOD DEVICE NAME: runs" or "...: refused:
why" for each. torch-matrix makes the table of versions of them.

methods.py              a group of two ranks
"""
import sys

import ranks


def calls(dist, torch, device):
    """Name: a function of rank and size, which checks a value where one comes."""
    def of(*values):
        return torch.tensor(values, dtype=torch.float32, device=device)

    def coalesced(rank, size):
        with dist._coalescing_manager():
            for _ in range(2):
                dist.all_reduce(of(1.0))

    def batch(rank, size):
        got = of(0.0)
        for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, of(1.0 + rank), 1 - rank), dist.P2POp(dist.irecv, got, 1 - rank)]):
            work.wait()
        assert got.item() == 2 - rank

    def message(source):
        def run(rank, size):
            got = of(0.0)
            dist.send(of(7.0), 1) if rank == 0 else dist.recv(got, source)
            assert rank == 0 or got.item() == 7
        return run

    def objects(rank, size):
        found = [None] * size
        dist.all_gather_object(found, {"rank": rank})
        assert found == [{"rank": 0}, {"rank": 1}]

    def sparse(rank, size):
        dist.all_reduce(of(0.0, 1.0).to_sparse())

    def sum_of_two(rank, size):
        tensor = of(1.0)
        dist.all_reduce(tensor)
        assert tensor.item() == size

    return {
        "all_reduce": sum_of_two,
        "all_reduce_coalesced": lambda rank, size: dist.all_reduce_coalesced([of(1.0), of(2.0)]),
        "reduce": lambda rank, size: dist.reduce(of(1.0), 0),
        "broadcast": lambda rank, size: dist.broadcast(of(1.0), 0),
        "all_gather": lambda rank, size: dist.all_gather([of(0.0), of(0.0)], of(1.0)),
        "all_gather, uneven": lambda rank, size: dist.all_gather([of(0.0), of(0.0, 0.0)], of(*[1.0] * (rank + 1))),
        "all_gather_into_tensor": lambda rank, size: dist.all_gather_into_tensor(of(0.0, 0.0), of(1.0)),
        "reduce_scatter": lambda rank, size: dist.reduce_scatter(of(0.0), [of(1.0), of(2.0)]),
        "reduce_scatter_tensor": lambda rank, size: dist.reduce_scatter_tensor(of(0.0), of(1.0, 2.0)),
        "all_to_all": lambda rank, size: dist.all_to_all([of(0.0), of(0.0)], [of(1.0), of(2.0)]),
        "all_to_all_single": lambda rank, size: dist.all_to_all_single(of(0.0, 0.0), of(1.0, 2.0)),
        "gather": lambda rank, size: dist.gather(of(1.0), [of(0.0), of(0.0)] if rank == 0 else None),
        "scatter": lambda rank, size: dist.scatter(of(0.0), [of(1.0), of(2.0)] if rank == 0 else None),
        "send, recv": message(0),
        "recv from any source": message(None),
        "batch_isend_irecv": batch,
        "coalescing manager": coalesced,
        "barrier": lambda rank, size: dist.barrier(device_ids=[torch.cuda.current_device()] if device.type == "cuda" else None),
        "monitored_barrier of the backend": lambda rank, size: dist.group.WORLD._get_backend(device).monitored_barrier(),
        "object collectives": objects,
        "new_group": lambda rank, size: dist.all_reduce(of(1.0), group=dist.new_group([0, 1])),
        "split_group": lambda rank, size: dist.all_reduce(of(1.0), group=dist.split_group(split_ranks=[[0, 1]])),
        "sparse all_reduce": sparse,
        "shrink_group": lambda rank, size: dist.shrink_group([1]) if rank == 0 else dist.shrink_group,  # the last: rank 1 is out
    }


def every_call(rank, size):
    import torch
    import torch.distributed as dist

    ranks.join()
    for device in [torch.device("cpu")] + [torch.device("cuda", 0)] * torch.cuda.is_available():
        for name, call in calls(dist, torch, device).items():
            try:
                call(rank, size)
                said = "runs"
            except AttributeError:
                said = "not in this PyTorch"
            except Exception as error:  # pylint: disable=broad-except
                said = "refused: " + (str(error).splitlines() or [type(error).__name__])[0]
            if rank == 0:
                print(f"METHOD {device.type} {name}: {said}", flush=True)


def main():
    results = ranks.finish(ranks.start(2, "methods", "every_call"), 180)
    print(results[0][1], end="")
    return 1 if results[0][0] != 0 else 0


if __name__ == "__main__":
    sys.exit(main())

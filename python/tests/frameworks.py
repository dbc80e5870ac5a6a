# SPDX-License-Identifier: Apache-2.0
"""Programs of ranks for scripts/torch-packages: other packages over gdrx. CPU tensors."""
import datetime
import os
import signal
import time

import torch
import torch.distributed as dist


def _meet():
    """DeepSpeed and torchft take an address. Rank 0 chooses the port."""
    where = dist.FileStore(os.environ["TEST_STORE"] + "-address", -1)
    store = None
    if os.environ["RANK"] == "0":
        store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
        where.set("port", str(store.port))
    return store, int(where.get("port"))


def deepspeed(rank, size):
    """20 steps of ZeRO, of each stage that splits something else."""
    import deepspeed as package

    backend = os.environ["TEST_BACKEND"]
    store, port = _meet()
    store = store or dist.TCPStore("127.0.0.1", port, is_master=False)
    dist.init_process_group(backend, store=store, rank=rank, world_size=size)
    os.environ.update(LOCAL_RANK=str(rank), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    package.init_distributed(dist_backend=backend, auto_mpi_discovery=False, verbose=False, dist_init_required=False)
    for stage in (0, 1, 2, 3):
        torch.manual_seed(1)
        model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8))
        config = {"train_micro_batch_size_per_gpu": 4, "zero_optimization": {"stage": stage},
                  "optimizer": {"type": "Adam", "params": {"lr": 1e-2, "torch_adam": True}}}
        engine = package.initialize(model=model, model_parameters=model.parameters(), config=config)[0]
        torch.manual_seed(10 + rank)
        for step in range(20):
            loss = engine(torch.randn(4, 32)).square().mean()
            engine.backward(loss)
            engine.step()
            both = loss.detach().clone()
            dist.all_reduce(both)
            if rank == 0 and step in (0, 19):
                print(f"LOSS stage {stage} step {step} {both.item() / size:.6f}", flush=True)
    assert dist.get_backend() == backend
    dist.destroy_process_group()


def torchft(rank, size):
    """Its process group is configured, a replica dies, and the others configure it again."""
    from torch.distributed import ProcessGroup, ReduceOp
    from torchft.process_group import ProcessGroupWrapper

    from gdrx import torch_backend

    class ProcessGroupGdrx(ProcessGroupWrapper):
        def _create_pg(self, store, rank, world_size):
            group = ProcessGroup(store, rank, world_size)
            group._set_default_backend(ProcessGroup.BackendType.CUSTOM)
            group._register_backend(torch.device("cpu"), ProcessGroup.BackendType.CUSTOM,
                                    torch_backend.make(store, rank, world_size, self._timeout))
            return group

        def getBackendName(self):
            return "torchft-gdrx"

    _store, port = _meet()
    group = ProcessGroupGdrx(timeout=datetime.timedelta(seconds=20))

    def add(quorum, members):
        group.configure(f"127.0.0.1:{port}/{quorum}", f"replica {rank}", rank, members)
        tensor = torch.tensor([2.0**rank])
        options = dist.AllreduceOptions()
        options.reduceOp = ReduceOp.SUM
        group.allreduce([tensor], options).wait()
        assert tensor.item() == 2**members - 1, tensor
        return options

    options = add(1, size)
    if rank == size - 1:
        os.kill(os.getpid(), signal.SIGKILL)
    begun = time.monotonic()
    try:
        while time.monotonic() - begun < 15:
            group.allreduce([torch.ones(1)], options).wait()
            time.sleep(0.01)
        raise AssertionError("the death was not told")
    except RuntimeError as error:
        print(f"RAISED {time.monotonic() - begun:.2f} {str(error).splitlines()[0]}", flush=True)
    add(2, size - 1)
    print("WENT ON", flush=True)

"""A training that knows nothing of observation: torch_program_for_test.py [fail | exit | interrupt | spawn | fork | process | rpc | profile | chdir].
Prints what it learned; exit: rank 1 ends with code 3; interrupt: after 40 iterations, by itself; process: in a process of its own; rpc: rank 0
alone, and the others serve; profile: under torch.profiler; chdir: in another directory."""

import hashlib
import os
import signal
import sys
import tempfile

import torch
from torch import nn


def train(is_rank, fails: bool = False, profiler=None, interrupted=False, exits=False):
    torch.set_num_threads(1)
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 4))
    wrapped = nn.parallel.DistributedDataParallel(model) if is_rank else model
    optimizer = torch.optim.Adam(wrapped.parameters(), lr=0.01)
    torch.manual_seed(10 + (torch.distributed.get_rank() if is_rank else 0))
    for i in range(41 if interrupted else 8):
        if i == 40:
            signal.raise_signal(signal.SIGINT)
        loss = nn.functional.cross_entropy(wrapped(torch.randn(8, 16)), torch.randint(4, (8,)))
        optimizer.zero_grad()
        loss.backward()
        if i == 4 and fails:
            raise KeyError("as planned")
        if i == 4 and exits and torch.distributed.get_rank() == 1:
            sys.exit(3)
        optimizer.step()
        if profiler is not None:
            profiler.step()
    held = b"".join(parameter.detach().numpy().tobytes() for parameter in model.parameters())
    return f"learned {hashlib.sha256(held).hexdigest()} {torch.rand(1).item()}"


def profiled(is_rank):
    """Writes a trace into the working directory, and what it learned without one is what it learns."""
    rank = torch.distributed.get_rank() if is_rank else 0
    schedule = torch.profiler.schedule(wait=1, warmup=1, active=5, repeat=1)
    with torch.profiler.profile(
        schedule=schedule, on_trace_ready=lambda profiler: profiler.export_chrome_trace(f"trace{rank}.json")
    ) as profiler:
        return train(is_rank, profiler=profiler)


def spawned(rank, store):
    torch.distributed.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
    print(train(is_rank=True), flush=True)
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()
    sys.exit()


def train_and_tell():
    print(train(is_rank=False), flush=True)


if __name__ == "__main__":
    if sys.argv[1:] == ["process"]:
        process = torch.multiprocessing.Process(target=train_and_tell)
        process.start()
        process.join()
        sys.exit(process.exitcode)
    if sys.argv[1:] == ["rpc"]:
        rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        torch.distributed.rpc.init_rpc(f"process{rank}", rank=rank, world_size=size)
        if rank == 0:
            print(train(is_rank=False), torch.distributed.rpc.rpc_sync("process1", torch.add, (torch.ones(1), 1)).item(), flush=True)
        torch.distributed.rpc.shutdown()
        sys.exit()
    if sys.argv[1:] in (["spawn"], ["fork"]):
        with tempfile.TemporaryDirectory() as directory:
            torch.multiprocessing.start_processes(spawned, (os.path.join(directory, "store"),), nprocs=2, start_method=sys.argv[1])
        sys.exit()
    if "RANK" in os.environ:
        torch.distributed.init_process_group("gloo")
    if sys.argv[1:] == ["chdir"]:
        os.chdir(tempfile.mkdtemp(dir=os.getcwd()))
    if sys.argv[1:] == ["profile"]:
        print(profiled("RANK" in os.environ), flush=True)
    else:
        how = {name: sys.argv[1:] == [kind] for name, kind in (("fails", "fail"), ("exits", "exit"), ("interrupted", "interrupt"))}
        print(train("RANK" in os.environ, **how), flush=True)
    assert __file__.endswith("torch_program_for_test.py") and train.__annotations__["fails"] is bool
    if "RANK" in os.environ:
        torch.distributed.barrier()
        torch.distributed.destroy_process_group()

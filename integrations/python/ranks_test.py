"""Two ranks, by mpirun, by torchrun or by its variables: ranks_test.py [mpi4py | beside_mpi4py] [fail]; with fail rank 1 raises,
which is to end the job; with mpi4py they are those of its communicators, with beside_mpi4py it is imported alone."""

import os
import sys
import tempfile
import time

import numpy

import optim_test_tools as ott

if "TORCHELASTIC_RUN_ID" in os.environ:
    import torch.distributed

    torch.distributed.init_process_group("gloo")  # as a training does, at torchrun's port
if sys.argv[1:2] == ["mpi4py"]:
    from mpi4py import MPI

    backwards = ott.ranks(MPI.COMM_WORLD.Split(0, -MPI.COMM_WORLD.Get_rank()))
    assert (backwards.size, backwards.rank) == (2, 1 - MPI.COMM_WORLD.Get_rank())
    backwards.close()
    ranks = ott.ranks(MPI.COMM_WORLD)
else:
    if sys.argv[1:2] == ["beside_mpi4py"]:
        from mpi4py import MPI  # noqa: F401
    ranks = ott.ranks()
assert ranks.size == 2, "the ranks did not find together"
assert ranks.rank == int(os.environ.get("OMPI_COMM_WORLD_RANK", os.environ.get("RANK")))

if sys.argv[-1] == "fail":
    if ranks.rank == 1:
        raise KeyError("rank 1 fails")
    ranks.barrier()  # nobody comes

x = numpy.array([1.5, ranks.rank], dtype=numpy.float32)
ranks.all_reduce(x)
assert x.tolist() == [3.0, 1.0], x
count = numpy.array([ranks.rank + 5])
ranks.all_reduce(count, "max")
assert count.tolist() == [6], count

# Rank 0's place for the run, which the other learns by a number.
number = numpy.array([int(time.time() * 1e6) if ranks.rank == 0 else 0])
ranks.all_reduce(number, "max")
directory = os.path.join(os.environ.get("TEST_TMPDIR", tempfile.gettempdir()), f"ranks_test_{number[0]}")

told = []
stopwatch, dumper = ott.Stopwatch(), ott.TensorDumper()
run = ott.TrainingRun({"run_dir": directory, "stopwatch": {}, "dump": {}, "cross_check": {"iterations": {}}}, ranks)
run.on_divergence(lambda verdict, text: told.append(text))
for i in range(4):
    with stopwatch("work"):
        dumper.add("weights.w", numpy.array([1.0, ranks.rank if i == 2 else 0.0]))
        dumper.add("schedule", {"rate": 0.1 * (ranks.rank + 1) if i == 3 else 0.1, "kind": "cosine"})
    run.finish_iter()
    assert run.diverged == (i >= 2)
run.finish()
assert len(told) == 2 and 'iteration 2: replicas DIFFER in tensor "weights.w"' in told[0], told
assert 'iteration 3: replicas DIFFER in tensor "schedule.rate"' in told[1], told
own = os.path.join(directory, f"rank_0000{ranks.rank}", "dumps", "1")
other = os.path.join(directory, f"rank_0000{1 - ranks.rank}", "dumps", "1")
ranks.barrier()
assert ott.compare(own, other)
# Nobody closes anything: the end of the process does that.

"""What the tests of observed trainings share: a model, loops that train it, and a run under observation."""

import functools
import glob
import hashlib
import json
import os
import shutil
import sys
import tempfile
import unittest
import warnings

import torch
import torch.distributed as dist
from torch import nn

import optim_test_tools as ott

warnings.filterwarnings("ignore")
torch.set_num_threads(1)
dist.init_process_group("gloo")
RANK, WORLD = dist.get_rank(), dist.get_world_size()
IS_2 = int(torch.__version__.split(".")[0]) >= 2
DIRECTORY = os.path.join(os.environ.get("TEST_TMPDIR", tempfile.gettempdir()), f"torch_{os.environ['MASTER_PORT']}")


class Block(nn.Module):
    def __init__(self, recompute=None):
        super().__init__()
        self.recompute = recompute
        self.inner = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Dropout(0.2))
        self.head = nn.Linear(16, 4)

    def forward(self, x):
        if self.recompute is None:
            return self.head(self.inner(x))
        from torch.utils.checkpoint import checkpoint

        return self.head(checkpoint(self.inner, x, use_reentrant=self.recompute))


def make_wrapped(kind, momentum=0, **ddp):
    """Returns a model that ranks share, and its optimizer; from then on each rank draws numbers of its own."""
    torch.manual_seed(3)
    model = nn.parallel.DistributedDataParallel(kind(), **ddp)
    torch.manual_seed(10 + RANK)
    return model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=momentum)


def make(recompute=None, **ddp):
    return make_wrapped(lambda: Block(recompute), 0.9, **ddp)


def make_alone(kind=Block, seed=3, optimizer=torch.optim.SGD, **options):
    """Returns a model that each rank trains for itself, and its optimizer."""
    torch.manual_seed(seed)
    model = kind()
    return model, optimizer(model.parameters(), **(options or {"lr": 0.1}))


def batches(number, workers=0):
    data = torch.utils.data.TensorDataset(torch.randn(number * 4, 16), torch.randint(4, (number * 4,)))
    return torch.utils.data.DataLoader(data, batch_size=4, num_workers=workers, shuffle=True)


def digest(*models):
    held = [p for model in models for p in model.parameters()] + [torch.get_rng_state()]
    held = [p.to_local() if hasattr(p, "to_local") else p for p in held]
    return hashlib.sha256(b"".join(p.detach().contiguous().numpy().tobytes() for p in held)).hexdigest()


def loss_of(model, batch):
    x, y = batch
    return nn.functional.cross_entropy(model(x), y)


def learn_one(model, optimizer, batch, max_norm=None):
    optimizer.zero_grad()
    loss_of(model, batch).backward()
    if max_norm is not None:
        nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    optimizer.step()


def backward_passes(model, optimizer, number):
    """Iterations of learn(), of which each is given to the caller between its backward pass and its step."""
    for batch in batches(number):
        optimizer.zero_grad()
        loss_of(model, batch).backward()
        yield batch
        optimizer.step()


def step_in_backward(model):
    """Has each parameter step by an optimizer of its own as soon as its gradient is there."""
    for parameter in model.parameters():

        def step(parameter, optimizer=torch.optim.SGD([parameter], lr=0.1)):
            optimizer.step()
            optimizer.zero_grad()

        parameter.register_post_accumulate_grad_hook(step)


def learn(model, optimizer, number, max_norm=None, workers=0):
    for batch in batches(number, workers):
        learn_one(model, optimizer, batch, max_norm)


def learned(model, optimizer, number, **options):
    """Trains as learn() does, and returns what the model learned."""
    learn(model, optimizer, number, **options)
    return digest(model)


def learn_by_closures(model, optimizer, iterations):
    for batch in batches(iterations):

        def closure():
            optimizer.zero_grad()
            loss = loss_of(model, batch)
            loss.backward()
            return loss

        optimizer.step(closure)
    return digest(model)


def reduce_nothing(state, bucket):
    """A communication hook that leaves each rank its own gradients."""
    future = torch.futures.Future()
    future.set_result(bucket.buffer())
    return future


class Observed:
    """A run under observation, and what it left."""

    def __init__(self, name, config=None):
        self.dir = os.path.join(DIRECTORY, name)
        self.config = {"stopwatch": {}, "run_dir": self.dir, **(config or {})}

    def __enter__(self):
        ott.torch.observe(config=self.config)
        return self

    def __exit__(self, *exception):
        ott.torch.finish()
        dist.barrier()

    def path(self, *parts):
        """Returns where a file of this rank lies."""
        return os.path.join(self.dir, f"rank_{RANK:05d}", *parts)

    def text(self, *parts):
        with open(os.path.join(self.dir, *parts), encoding="utf-8") as file:
            return file.read()

    def log(self):
        """Returns the log of operations of this rank, as bytes."""
        with open(self.path("op_log.bin"), "rb") as file:
            return file.read()

    def dumped(self, iteration=1, kind="numpy"):
        """Returns the tensors that this rank dumped in the iteration."""
        return ott.load_dump(self.path("dumps", str(iteration)), kind).tensors

    def measurements(self):
        stats = json.loads(self.text(self.path("stopwatch.json")))
        return int(stats["num_measured_iters"]), {m["name"]: int(m["per_interval"]["count"]) for m in stats["measurements"]}

    def verdicts(self, rank=RANK):
        """Returns the lines of the cross-checks of a rank."""
        paths = glob.glob(os.path.join(self.dir, f"rank_{rank:05d}", "cross_check.jsonl"))
        return [json.loads(line) for path in paths for line in self.text(path).splitlines()]


class ObservedTestCase(unittest.TestCase):
    def check(self, name, train, iterations, config=None, **counts):
        """Trains as it is and observed; iterations and measurements must be as often as said."""
        alone = train()
        observed = Observed(name, config)
        with observed:
            again = train()
        self.assertEqual(alone, again, "observation changed the training")
        measured, names = observed.measurements()
        self.assertEqual(measured, iterations)
        for measurement, count in counts.items():
            self.assertEqual(names.get(measurement.replace("__", "."), 0), count, (measurement, names))
        self.assertTrue(os.path.getsize(observed.path("flight")) > 0)
        return observed

    def check_sound(self, name, train, iterations, config=None, compared=None, **counts):
        """The same without a finding; compared: so often replicas were, and the batches of ranks."""
        observed = self.check(name, train, iterations, config, **counts)
        self.assertEqual(ott._ott.describe_unsound(observed.dir), "")
        self.assertNotIn("the checks ended in iteration", observed.text(observed.path("sound.json")))
        if compared is not None:
            self.assertEqual([verdict["outcome"] for verdict in observed.verdicts()], compared * ["BITWISE_EQUAL", "ALL_DISTINCT"])
        return observed


def learns_alike(*expected, check=ObservedTestCase.check, **counts):
    """A test that returns what it learned: observed, it learns the same, and check() finds what is expected."""

    def decorate(train):
        @functools.wraps(train)
        def test(self):
            check(self, train.__name__, lambda: train(self) or self.fail("it tells nothing that it learned"), *expected, **counts)

        return test

    return decorate


def is_sound(*expected, **counts):
    return learns_alike(*expected, check=ObservedTestCase.check_sound, **counts)


def main():
    if RANK == 0:
        shutil.rmtree(DIRECTORY, ignore_errors=True)
        os.makedirs(DIRECTORY)
    dist.barrier()
    program = unittest.main(verbosity=2 if RANK == 0 else 0, exit=False)
    sys.stdout.flush()
    sys.stderr.flush()
    # Gloo's threads may abort as the interpreter is torn down (pytorch/pytorch, pull request 179291).
    os._exit(0 if program.result.wasSuccessful() else 1)

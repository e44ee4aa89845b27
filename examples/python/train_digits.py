#!/usr/bin/env python3
"""Data-parallel training of a small network on handwritten digits with PyTorch, instrumented with every helper.

    mpirun -np 4 python3 train_digits.py --run out/reference
    torchrun --nproc_per_node 4 train_digits.py --run out/optimized --reference out/reference --kernel optimized

The ranks speak through ott.ranks(), which is why it runs under both. What observes the training is configured in
make_config(), or by OTT_CONFIG; the helpers are called whether they are on or not.
"""

import argparse
import gzip
import os
import sys
import time

import optim_test_tools as ott
import torch

DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "train_digits", "data", "digits.csv.gz")

stopwatch = ott.Stopwatch()
dumper = ott.TensorDumper()


def parse_flags():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=DATA, help="digits.csv.gz")
    parser.add_argument("--iterations", type=int, default=200)
    parser.add_argument("--batch", type=int, default=128, help="images an iteration, over all ranks")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kernel", choices=("reference", "optimized"), default="reference",
                        help="optimized: sums in another order")
    parser.add_argument("--run", default="", help="run directory to write")
    parser.add_argument("--reference", default="", help="run directory to compare with")
    parser.add_argument("--every", type=int, default=100, help="iterations between dumps and cross-checks")
    parser.add_argument("--delay", nargs=3, action="append", default=[], metavar=("RANK", "MILLISECONDS", "PART"),
                        help="make a rank slow in 'forward' or 'backward'")
    parser.add_argument("--fault", nargs=5, metavar=("RANK", "ITERATION", "TENSOR", "ELEMENT", "BIT"),
                        help="flip a bit, as a faulty memory would, e.g. 2 30 weights.w1 777 20")
    return parser.parse_args()


def make_config(flags):
    """Sets up once what a training program needs. Nothing else in this file knows what is switched on."""
    if "OTT_CONFIG" in os.environ:
        return None
    config = {"stopwatch": {"num_warmup_iters": 5, "collective_measurements": ["sum_loss", "allreduce"]}}
    if flags.run:
        iterations = {"every": flags.every}
        config["run_dir"] = flags.run
        config["dump"] = {"iterations": iterations}
        config["cross_check"] = {"iterations": iterations, "reference_run": flags.reference,
                                 "reference_tolerance": {"atol": 1e-4, "rtol": 1e-3}}
    return config


def read_digits(path):
    """Images [N, 64] from 0 to 1, and labels [N]; every fifth is for testing."""
    with gzip.open(path, "rt") as file:
        rows = torch.tensor([[float(x) for x in line.split(",")] for line in file])
    images, labels = rows[:, :64] / 16, rows[:, 64].long()
    testing = torch.arange(len(rows)) % 5 == 0
    return (images[~testing], labels[~testing]), (images[testing], labels[testing])


class Trainer:
    def __init__(self, flags, ranks):
        self.flags = flags
        self.ranks = ranks
        (self.images, self.labels), self.testing = read_digits(flags.data)
        self.random = torch.Generator().manual_seed(flags.seed)
        self.parameters = {
            "w1": torch.randn(64, 64, generator=self.random) * (2 / 64) ** 0.5,
            "b1": torch.zeros(64),
            "w2": torch.randn(64, 10, generator=self.random) * (2 / 64) ** 0.5,
            "b2": torch.zeros(10),
        }
        self.momenta = {name: torch.zeros_like(p) for name, p in self.parameters.items()}
        for parameter in self.parameters.values():
            parameter.requires_grad_()

    def iterate(self, iteration):
        with stopwatch("data"):
            # The same numbers on all ranks, each of which takes its share.
            batch = torch.randint(len(self.images), (self.flags.batch,), generator=self.random)
            share = batch[self.ranks.rank :: self.ranks.size]
            images, labels = self.images[share], self.labels[share]
        with stopwatch("forward"):
            self.delay("forward")
            losses = torch.nn.functional.cross_entropy(self.logits(images), labels, reduction="sum")
        with stopwatch("sum_loss"):
            loss = losses.detach().double().reshape(1)
            self.ranks.all_reduce(loss)
            loss /= self.flags.batch
        with stopwatch("backward"):
            self.delay("backward")
            gradients = torch.autograd.grad(losses, list(self.parameters.values()))
        with stopwatch("allreduce"):
            flat = torch.cat([gradient.reshape(-1) for gradient in gradients])
            self.ranks.all_reduce(flat)
            flat /= self.flags.batch
            parts = flat.split([p.numel() for p in self.parameters.values()])
        with stopwatch("step"), torch.no_grad():
            for (name, parameter), part in zip(self.parameters.items(), parts):
                self.momenta[name].mul_(0.9).add_(part.view_as(parameter))
                parameter.sub_(self.momenta[name], alpha=0.1)
        self.inject_fault(iteration)
        # Tensors are copied only in iterations that somebody asked for.
        dumper.add("loss", loss)
        dumper.add("weights", self.parameters, "binary")
        dumper.add("gradients", lambda: {n: p.view_as(self.parameters[n]) for n, p in zip(self.parameters, parts)},
                   "binary")
        return loss.item()

    def logits(self, images):
        p = self.parameters
        if self.flags.kernel == "optimized":
            hidden = images[:, 32:] @ p["w1"][32:] + images[:, :32] @ p["w1"][:32] + p["b1"]
        else:
            hidden = images @ p["w1"] + p["b1"]
        return hidden.relu() @ p["w2"] + p["b2"]

    def delay(self, part):
        for rank, milliseconds, where in self.flags.delay:
            if int(rank) in (-1, self.ranks.rank) and where == part:
                time.sleep(float(milliseconds) / 1000)

    def inject_fault(self, iteration):
        if self.flags.fault is None:
            return
        rank, at, tensor, element, bit = self.flags.fault
        if self.ranks.rank == int(rank) and iteration == int(at):
            values = self.parameters[tensor.split(".")[1]].detach().view(-1).view(torch.int32)
            values[int(element)] ^= 1 << int(bit)

    def accuracy(self):
        images, labels = self.testing
        with torch.no_grad():
            return (self.logits(images).argmax(1) == labels).double().mean().item()

    def weights_agree(self):
        """Returns True if the weights are equal on all ranks."""
        flat = torch.cat([p.detach().reshape(-1) for p in self.parameters.values()])
        least, most = flat.clone(), flat.clone()
        self.ranks.all_reduce(least, "min")
        self.ranks.all_reduce(most, "max")
        return bool(ott.compare(least, most))


def main():
    flags = parse_flags()
    torch.set_num_threads(1)
    ranks = ott.ranks()
    trainer = Trainer(flags, ranks)
    with ott.TrainingRun(make_config(flags), ranks) as run:
        for iteration in range(flags.iterations):
            loss = trainer.iterate(iteration)
            run.finish_iter()
            if ranks.rank == 0 and (iteration + 1) % max(flags.iterations // 4, 1) == 0:
                print(f"iteration {iteration + 1}/{flags.iterations}  loss {loss:.4f}", file=sys.stderr)
        run.finish()
        diverged = run.diverged
    agree = trainer.weights_agree()
    if ranks.rank == 0:
        print(f"test accuracy {100 * trainer.accuracy():.1f} %; weights are "
              f"{'the same, bit for bit,' if agree else 'NOT the same'} on all ranks")
    return 0 if agree and not diverged else 1


if __name__ == "__main__":
    sys.exit(main())

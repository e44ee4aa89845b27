"""Healthy programs by what they learn from: loaders, streams and batches. Each takes `fault`, which is empty."""

import itertools
import os
import shutil
import tempfile

import numpy
import torch
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset, IterableDataset

import optim_test_tools as ott

from sound_common import ConvNet, Net, batch, images, learn_from, loader, loss_of, start_observation, step, with_optimizer


def mixed_up(fault):
    model, optimizer = with_optimizer(ConvNet())
    for _ in range(6):
        x, y = images()
        rows, share = torch.randperm(len(x)), 0.7
        out = model(share * x + (1 - share) * x[rows])
        step(optimizer, share * F.cross_entropy(out, y) + (1 - share) * F.cross_entropy(out, y[rows]))


class Endless(IterableDataset):
    def __iter__(self):
        for _ in range(24):
            yield torch.randn(8), torch.randint(4, ()).item()


def streamed(fault):
    """An IterableDataset, without workers and with two that draw for themselves."""
    model, optimizer = with_optimizer(Net())
    for workers in (0, 2):
        learn_from(model, optimizer, DataLoader(Endless(), 4, num_workers=workers))


def full_batch(fault):
    """All samples in one batch, the same for ever, by a loader and by hand."""
    model, optimizer = with_optimizer(Net(dropout=0))
    for _ in range(5):
        learn_from(model, optimizer, loader(4))
    data = batch(32)
    for _ in range(5):
        step(optimizer, loss_of(model, data))


def one_batch_for_ever(fault):
    """Whether the model can learn one batch by heart."""
    model, optimizer = with_optimizer(Net(dropout=0), torch.optim.Adam)
    x, y = next(iter(loader(shuffle=True)))
    for _ in range(8):
        step(optimizer, F.cross_entropy(model(x), y))


def with_and_without_labels(fault):
    """FixMatch: two loaders side by side, labels that the model makes for itself without gradients."""
    model, optimizer = with_optimizer(Net(), torch.optim.SGD, 0.05, nesterov=True, momentum=0.9)
    for (x, y), (u, _) in zip(itertools.cycle(loader(16, shuffle=True)), loader(48, shuffle=True)):
        with torch.no_grad():
            certainty, guess = model(u + 0.01 * torch.randn_like(u)).softmax(-1).max(-1)
        strong = F.cross_entropy(model(u + 0.5 * torch.randn_like(u)), guess, reduction="none")
        step(optimizer, F.cross_entropy(model(x), y) + (strong * (certainty > 0.3)).mean())


def echoed(fault):
    """Each batch is used twice, as reading it takes longer than using it; workers stay from epoch to epoch."""
    model, optimizer = with_optimizer(Net())
    data = loader(24, shuffle=True, num_workers=2, persistent_workers=True)
    for _ in range(2):
        for x, y in data:
            for _ in range(2):
                step(optimizer, F.cross_entropy(model(x), y))


def repeated_batches(fault):
    """A curriculum: easy samples first, each batch three times, never shuffled."""
    model, optimizer = with_optimizer(Net())
    for stage in (8, 16, 32):
        for x, y in loader(stage):
            for _ in range(3):
                step(optimizer, F.cross_entropy(model(x), y))


def evaluated_with_the_same(fault):
    """The loader that trains is the one that evaluates, in each epoch."""
    model, optimizer = with_optimizer(Net())
    data = loader(16)
    for _ in range(4):
        model.train()
        learn_from(model, optimizer, data)
        model.eval()
        with torch.no_grad():
            for x, y in data:
                F.cross_entropy(model(x), y)


def learned_by_heart(fault):
    """One batch for ever, by a loader of a single batch that is begun anew in each step."""
    model, optimizer = with_optimizer(Net(dropout=0), torch.optim.Adam)
    data = loader(4)
    for _ in range(8):
        x, y = next(iter(data))
        step(optimizer, F.cross_entropy(model(x), y))


class Split(Dataset):
    """Has generators: one chose the samples, one is seeded by each sample's index."""

    def __init__(self):
        self.generator, self.noise = numpy.random.default_rng(3), torch.Generator()
        self.rows = self.generator.permutation(32)
        self.data = torch.randn(32, 8)

    def __len__(self):
        return 32

    def __getitem__(self, index):
        self.noise.manual_seed(index)
        return self.data[self.rows[index]] + 0.1 * torch.randn(8, generator=self.noise), index % 4


def generators_of_samples(fault):
    model, optimizer = with_optimizer(Net())
    learn_from(model, optimizer, DataLoader(Split(), 4, num_workers=2, shuffle=True))


def loader_made_anew(fault):
    """A loader of the same samples for each epoch, which draws for itself, and one of each fold."""
    model, optimizer = with_optimizer(Net())
    data = torch.utils.data.TensorDataset(torch.randn(32, 8), torch.randint(4, (32,)))
    for _ in range(3):
        learn_from(model, optimizer, DataLoader(data, 4, shuffle=True))
    for fold in range(2):
        torch.manual_seed(3)  # so that folds can be compared
        model, optimizer = with_optimizer(Net())
        learn_from(model, optimizer, DataLoader(data, 4, shuffle=True, generator=torch.Generator().manual_seed(3)))


def sampled_by_seed(fault):
    """A sampler that gets a seed for each epoch; then trials of one epoch, each with a model of its own and the same order."""
    data = torch.utils.data.TensorDataset(torch.randn(32, 8), torch.randint(4, (32,)))
    sampler = torch.utils.data.DistributedSampler(data, 1, 0)
    model, optimizer = with_optimizer(Net())
    for sampler.seed in range(3):
        learn_from(model, optimizer, DataLoader(data, 4, sampler=sampler))
    for _ in range(2):
        model, optimizer = with_optimizer(Net())
        learn_from(model, optimizer, DataLoader(data, 4, sampler=sampler))


def batches_without_end(fault):
    """A sampler of batches that has no length, of which each step takes the first one of a new pass."""

    class Sampler:
        def __iter__(self):
            while True:
                yield torch.randint(32, (4,)).tolist()

    data = torch.utils.data.TensorDataset(torch.randn(32, 8), torch.randint(4, (32,)))
    data = DataLoader(data, batch_sampler=Sampler())
    model, optimizer = with_optimizer(Net())
    for _ in range(6):
        step(optimizer, loss_of(model, next(iter(data))))


def loader_resumed(fault):
    """A checkpoint has the state of the loader's own generator, which is restored."""
    ott.torch.finish()
    path = os.path.join(tempfile.mkdtemp(), "checkpoint.pt")
    for begins in (True, False):
        if not begins:
            start_observation()
        model, generator = Net(), torch.Generator()
        optimizer = torch.optim.Adam(model.parameters())
        if not begins:
            checkpoint = torch.load(path, weights_only=False)
            optimizer.load_state_dict(checkpoint["optimizer"])
            generator.set_state(checkpoint["order"])
        learn_from(model, optimizer, loader(shuffle=True, generator=generator))
        if begins:
            torch.save({"optimizer": optimizer.state_dict(), "order": generator.get_state()}, path)
    shutil.rmtree(os.path.dirname(path))

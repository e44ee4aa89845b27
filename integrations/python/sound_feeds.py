"""Healthy programs by what they learn from: loaders, streams and batches. Each takes `fault`, which is empty."""

import itertools

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, IterableDataset

from sound_common import ConvNet, Net, batch, images, loader, loss_of, step


def mixed_up(fault):
    model = ConvNet()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
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
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for workers in (0, 2):
        for x, y in DataLoader(Endless(), 4, num_workers=workers):
            step(optimizer, F.cross_entropy(model(x), y))


def full_batch(fault):
    """All samples in one batch, the same for ever, by a loader and by hand."""
    model = Net(dropout=0)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(5):
        for x, y in loader(4):
            step(optimizer, F.cross_entropy(model(x), y))
    data = batch(32)
    for _ in range(5):
        step(optimizer, loss_of(model, data))


def one_batch_for_ever(fault):
    """Whether the model can learn one batch by heart."""
    model = Net(dropout=0)
    optimizer = torch.optim.Adam(model.parameters())
    x, y = next(iter(loader(shuffle=True)))
    for _ in range(8):
        step(optimizer, F.cross_entropy(model(x), y))


def with_and_without_labels(fault):
    """FixMatch: two loaders side by side, labels that the model makes for itself without gradients."""
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), 0.05, nesterov=True, momentum=0.9)
    for (x, y), (u, _) in zip(itertools.cycle(loader(16, shuffle=True)), loader(48, shuffle=True)):
        with torch.no_grad():
            certainty, guess = model(u + 0.01 * torch.randn_like(u)).softmax(-1).max(-1)
        strong = F.cross_entropy(model(u + 0.5 * torch.randn_like(u)), guess, reduction="none")
        step(optimizer, F.cross_entropy(model(x), y) + (strong * (certainty > 0.3)).mean())


def echoed(fault):
    """Each batch is used twice, as reading it takes longer than using it; workers stay from epoch to epoch."""
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    data = loader(24, shuffle=True, num_workers=2, persistent_workers=True)
    for _ in range(2):
        for x, y in data:
            for _ in range(2):
                step(optimizer, F.cross_entropy(model(x), y))


PROGRAMS = [
    mixed_up, streamed, full_batch, one_batch_for_ever, with_and_without_labels, echoed,
]

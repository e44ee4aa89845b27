"""Bugs of several ranks that others documented and healthy programs like them, written down before any rule was made for them."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F

from sound_common import AT, Net, average, backward_passes, batch, begun_alike, loader, loss_of, step, steps, with_optimizer, wrapped
from sound_more_ranks import Divided


def drawn_by_one(fault, rank, culprit):
    """Megatron-DeepSpeed 276: the rank that reads the data draws a seed for it, and others that drop with it do not."""
    model, optimizer = with_optimizer(Divided(rank, 0.5), torch.optim.SGD, 1e-2)
    generator = torch.Generator().manual_seed(90)
    torch.manual_seed(90)
    for _ in range(6):
        if rank == culprit or not fault:
            torch.empty((), dtype=torch.int64).random_()
        step(optimizer, loss_of(model, batch(generator=generator)))


def head_replaced(fault, rank, culprit):
    """PyTorch's documentation: a layer that replaces another one after the model was wrapped is not reduced."""
    torch.manual_seed(5)
    model = Net()
    if not fault:
        model.head = nn.Linear(16, 4)
    model = nn.parallel.DistributedDataParallel(model, find_unused_parameters=True)
    if fault:
        model.module.head = nn.Linear(16, 4)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    torch.manual_seed(50 + rank)
    steps(model, optimizer, 6)


def unfrozen_when_wrapped(fault, rank, culprit):
    """PyTorch forum: a part that was frozen as the model was wrapped, and learns later, is not reduced."""
    inner = begun_alike(rank)
    inner.body.requires_grad_(False)
    model, optimizer = with_optimizer(nn.parallel.DistributedDataParallel(inner))
    for i in range(8):
        if i == AT:
            inner.body.requires_grad_(True)
            if not fault:
                model = nn.parallel.DistributedDataParallel(inner)
        step(optimizer, loss_of(model, batch()))


def last_not_reduced(fault, rank, culprit):
    """The first micro batch is reduced, and the last one is within no_sync()."""
    model, optimizer = with_optimizer(wrapped(rank=rank), torch.optim.AdamW)
    for _ in range(6):
        optimizer.zero_grad()
        if fault:
            loss_of(model, batch()).backward()
        with model.no_sync():
            loss_of(model, batch()).backward()
        if not fault:
            loss_of(model, batch()).backward()
        optimizer.step()


def plateau_of_one(fault, rank, culprit):
    """A schedule follows the loss of each rank's own evaluation, and lowers the rate on one of them alone."""
    model, optimizer = with_optimizer(wrapped(rank=rank))
    schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0)
    for i in range(8):
        step(optimizer, loss_of(model, batch()))
        loss = torch.tensor(2.0 if rank == culprit and i >= AT else 1.0 / (i + 1))
        if not fault:
            dist.all_reduce(loss)
        schedule.step(loss)


def skipped_by_one(fault, rank, culprit):
    """A rank leaves a step out because its own loss is high."""
    model, optimizer = with_optimizer(wrapped(rank=rank), torch.optim.AdamW)
    for i in range(8):
        optimizer.zero_grad()
        loss_of(model, batch()).backward()
        if not (i == AT and (rank == culprit or not fault)):
            optimizer.step()


def began_apart(fault, rank, culprit):
    """Gradients are averaged by hand, and each rank drew weights of its own."""
    torch.manual_seed(5 + (rank if fault else 0))
    model, optimizer = with_optimizer(Net())
    torch.manual_seed(50 + rank)
    for _ in backward_passes(model, optimizer, 6):
        average(model.parameters())


def averaged_by_hand_but_one(fault, rank, culprit):
    """One rank adds to its gradients after they were averaged by hand."""
    model, optimizer = with_optimizer(begun_alike(rank))
    for i in backward_passes(model, optimizer, 8):
        average(model.parameters())
        if fault and rank == culprit and i == AT:
            model.head.weight.grad += 0.1


def exchanged(fault, rank, culprit):
    """Experts of several ranks exchange as many rows with all of them, as DeepSpeed 5794 wants it."""
    torch.manual_seed(5)
    model, optimizer = with_optimizer(Net())
    size = dist.get_world_size()
    for _ in range(6):
        step(optimizer, loss_of(model, batch()))
        dist.all_to_all_single(torch.empty(2 * size), torch.full((2 * size,), float(rank)))


def outer_steps(fault, rank, culprit):
    """DiLoCo: ranks learn by themselves, and an outer optimizer steps by the average of what they moved."""
    torch.manual_seed(5)
    model, outer = Net(), Net()
    outer.load_state_dict(model.state_dict())
    slow = torch.optim.SGD(outer.parameters(), 0.7, momentum=0.9, nesterov=True)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    torch.manual_seed(50 + rank)
    for i in range(8):
        step(optimizer, loss_of(model, batch()))
        if i % 4 == 3:
            for o, p in zip(outer.parameters(), model.parameters()):
                o.grad = o.detach() - p.detach()
            average(outer.parameters())
            slow.step()
            model.load_state_dict(outer.state_dict())


def reduced_one_by_one(fault, rank, culprit):
    """Gradients are averaged by hand of all parameters but a head that each rank has of its own."""
    body, head = begun_alike(rank, lambda: nn.Linear(8, 16)), nn.Linear(16, 4)
    optimizer = torch.optim.AdamW([*body.parameters(), *head.parameters()], 1e-3 * (1 + rank) if fault else 1e-3)
    for _ in range(6):
        x, y = batch()
        optimizer.zero_grad()
        F.cross_entropy(head(body(x).relu()), y).backward()
        for p in body.parameters():
            dist.all_reduce(p.grad)
        optimizer.step()


def views_of_buckets(fault, rank, culprit):
    """DistributedDataParallel with gradients that are views of its buckets, and a graph that stays."""
    model, optimizer = with_optimizer(wrapped(gradient_as_bucket_view=True, static_graph=True, rank=rank), torch.optim.AdamW)
    for x, y in loader(32, shuffle=True):
        optimizer.zero_grad(set_to_none=False)
        F.cross_entropy(model(x), y).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        optimizer.step()


def two_meshes(fault, rank, culprit):
    """Half of the ranks train one model and half another one, with gradients averaged by hand within each half."""
    size = dist.get_world_size()
    groups = [dist.new_group(list(range(size // 2))), dist.new_group(list(range(size // 2, size)))]
    half = int(rank >= size // 2)
    torch.manual_seed(5 + half)
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), 0.1 * (1 + half))
    torch.manual_seed(50 + rank)
    for _ in backward_passes(model, optimizer, 6):
        for p in model.parameters():
            dist.all_reduce(p.grad, group=groups[half])
            p.grad /= max(size // 2, 1)


def statistics_shared(fault, rank, culprit):
    """Each rank has a model of its own; ranks add up the sizes of their gradients, and one gradient to look at."""
    torch.manual_seed(50 + rank)
    model, optimizer = with_optimizer(Net())
    for _ in backward_passes(model, optimizer, 6):
        sizes = torch.stack([p.grad.norm() for p in model.parameters()])
        dist.all_reduce(sizes)
        dist.all_reduce(model.head.weight.grad.clone())


def stepped_in_parts(fault, rank, culprit):
    """Gradients are added up by hand; each rank steps with a part of the parameters and sends it to the others."""
    model, optimizer = with_optimizer(begun_alike(rank), torch.optim.AdamW, 1e-2)
    for _ in range(6):
        optimizer.zero_grad()
        loss_of(model, batch()).backward()
        for owner, p in enumerate(model.parameters()):
            dist.all_reduce(p.grad)
            p.grad = p.grad if owner % dist.get_world_size() == rank else None
        optimizer.step()
        for owner, p in enumerate(model.parameters()):
            dist.broadcast(p.data, owner % dist.get_world_size())


# As in sound_planted.
FAULTS = [
    (drawn_by_one, "seed_on_one_rank", "dropout_differs", "dropout", 1),
    (head_replaced, "after_wrapping", "replicas_differ", "parameters", 1),
    (unfrozen_when_wrapped, "not_wrapped_again", "replicas_differ", "parameters", AT + 1),
    (last_not_reduced, "first_reduced", "gradients_differ", "gradients of", 1),
    (plateau_of_one, "rate_on_one_rank", "rates_differ", "learning rates", AT + 2),
    (skipped_by_one, "step_on_one_rank", "reductions_differ", "counts", AT),
    (began_apart, "seeds_of_ranks", "replicas_differ", "", 1),
    (averaged_by_hand_but_one, "gradient_changed_later", "replicas_differ", "", AT),
    (reduced_one_by_one, "rates_of_ranks", "replicas_differ", "weight", 1),
]

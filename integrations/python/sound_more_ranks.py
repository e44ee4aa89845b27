"""Programs of several ranks of kinds for which no rule was made: documented bugs with their mending, and healthy ones."""

import copy

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F

from sound_common import AT, ConvNet, Net, Parts, average, backward_passes, batch, begun_alike, evaluate, images, learn_from, loss_of
from sound_common import mesh_of_all, step, steps, with_optimizer, wrapped


class Sum(torch.autograd.Function):
    """Adds up over the ranks; the gradient goes through."""

    @staticmethod
    def forward(ctx, x):
        x = x.clone()
        dist.all_reduce(x)
        return x

    @staticmethod
    def backward(ctx, g):
        return g


class Copy(torch.autograd.Function):
    """Goes through; the gradient is added up over the ranks."""

    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, g):
        g = g.clone()
        dist.all_reduce(g)
        return g


class Divided(nn.Module):
    """Two layers by hand as Megatron-LM divides them: norms and the last layer are the same on all ranks."""

    def __init__(self, rank, dropout=0.0):
        super().__init__()
        torch.manual_seed(5)
        self.norm, self.last = nn.LayerNorm(8), nn.Linear(8, 4)
        self.dropout = nn.Dropout(dropout)
        torch.manual_seed(70 + rank)
        self.up, self.down = nn.Linear(8, 16), nn.Linear(16, 8, bias=False)

    def forward(self, x):
        h = Sum.apply(self.down(self.up(Copy.apply(self.norm(x))).relu()))
        return self.last(x + self.dropout(h))


def divided_by_hand(fault, rank, culprit):
    """DeepSpeed 1801 without DTensor: what all ranks hold alike is clipped on one rank alone."""
    model, optimizer = with_optimizer(Divided(rank), torch.optim.Adam, 1e-2)
    torch.manual_seed(90)
    for i in backward_passes(model, optimizer, 8):
        if i >= AT and (rank == culprit or not fault):
            alike = [*model.norm.parameters(), *model.last.parameters()]
            nn.utils.clip_grad_norm_(alike, 1e-2)


def divided_clipped_first(fault, rank, culprit):
    """The same from the first step on."""
    model, optimizer = with_optimizer(Divided(rank), torch.optim.SGD, 1e-1)
    torch.manual_seed(90)
    for _ in backward_passes(model, optimizer, 6):
        if rank == culprit or not fault:
            nn.utils.clip_grad_norm_(model.norm.parameters(), 1e-3)


def divided_with_dropout(fault, rank, culprit):
    """Megatron-LM: where all ranks hold the same, they must drop the same, so their generators must agree there."""
    model, optimizer = with_optimizer(Divided(rank, 0.5), torch.optim.SGD, 1e-2)
    generator = torch.Generator().manual_seed(90)
    torch.manual_seed(90 + (rank if fault else 0))
    steps(model, optimizer, 6, lambda: batch(generator=generator))


def wrapped_at_times(fault, rank, culprit):
    """A trainer that calls the wrapped model in some steps, and the model inside of it in others."""
    model, optimizer = with_optimizer(wrapped(rank=rank), torch.optim.AdamW)
    for i in range(8):
        step(optimizer, loss_of(model.module if fault and i % 2 else model, batch()))


def loaded_on_one_rank(fault, rank, culprit):
    """A checkpoint is read on the first rank alone, after the model was wrapped."""
    model = wrapped(rank=rank)
    state = {name: torch.full_like(value, 0.1) for name, value in model.module.state_dict().items()}
    if rank == 0 or not fault:
        model.module.load_state_dict(state)
    steps(*with_optimizer(model, torch.optim.AdamW), 5)


def sampler_of_one_rank(fault, rank, culprit):
    """Each rank has a sampler that knows of one rank."""
    from torch.utils.data import DataLoader, DistributedSampler

    model, optimizer = with_optimizer(wrapped(), torch.optim.AdamW)
    data = torch.utils.data.TensorDataset(*batch(48))
    sampler = DistributedSampler(data, 1, 0) if fault else DistributedSampler(data, dist.get_world_size(), rank)
    torch.manual_seed(50 + rank)
    for epoch in range(2):
        sampler.set_epoch(epoch)
        learn_from(model, optimizer, DataLoader(data, 4, sampler=sampler))


def looked_at_between(fault, rank, culprit):
    """Batches of the training's loader are looked at between steps; the samplers of validations keep their order, shuffled by default."""
    from torch.utils.data import DataLoader, DistributedSampler

    model, optimizer = with_optimizer(wrapped(), torch.optim.AdamW)
    data = list(zip(torch.randn(64, 8), torch.randint(4, (64,)).tolist()))
    sampler = DistributedSampler(data)
    batches = DataLoader(data, 4, sampler=sampler)
    validation = DataLoader(data[:16], 4, sampler=DistributedSampler(data[:16]))
    next(iter(batches))
    for epoch in range(3):
        if not fault:
            sampler.set_epoch(epoch)
        for i, (x, y) in enumerate(batches):
            step(optimizer, F.cross_entropy(model(x), y))
            if i == 1:
                for x, _ in [next(iter(batches)), *validation]:
                    evaluate(model.module, x)


def zeroed_transfer(fault, rank, culprit):
    """PyTorch 84803: a transfer gives zeros, here a reduction on all ranks alike."""
    import sound_ranks

    model, optimizer = with_optimizer(wrapped(rank=rank))
    for i in backward_passes(model, optimizer, 6):
        counts = torch.rand(8) + 1
        (sound_ranks.all_reduce_badly if fault and i == AT else dist.all_reduce)(counts)


def shards_alike(fault, rank, culprit):
    """All ranks draw their part of a divided weight with one seed."""
    from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor

    mesh = mesh_of_all()
    torch.manual_seed(5 if fault else 5 + rank)
    model = nn.Linear(8, 8, bias=False)
    model.weight = nn.Parameter(DTensor.from_local(0.1 * torch.randn(8, 8), mesh, [Shard(0)]))
    torch.manual_seed(90)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(6):
        x = distribute_tensor(torch.randn(4, 8), mesh, [Replicate()])
        step(optimizer, model(x).redistribute(mesh, [Replicate()]).to_local().square().mean())


# Healthy ones.


def two_wrapped(fault, rank, culprit):
    """A GAN of two DistributedDataParallels."""
    G, D = wrapped(nn.Linear(4, 8)), wrapped(nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1)))
    og, od = torch.optim.Adam(G.parameters()), torch.optim.Adam(D.parameters())
    torch.manual_seed(50 + rank)
    for _ in range(5):
        fake = G(torch.randn(8, 4))
        step(od, F.softplus(-D(torch.randn(8, 8))).mean() + F.softplus(D(fake.detach())).mean())
        step(og, F.softplus(-D(fake)).mean())


def unused_experts(fault, rank, culprit):
    """find_unused_parameters, and experts that each rank uses by its own samples."""

    def forward(self, x):
        chosen = self.gate(x).softmax(-1).mean(0).argmax().item()
        return self.experts[chosen](x) * self.gate(x).softmax(-1)[:, chosen, None]

    mixture = Parts(forward, gate=nn.Linear(8, 4), experts=nn.ModuleList(nn.Linear(8, 4) for _ in range(4)))
    steps(*with_optimizer(wrapped(mixture, find_unused_parameters=True, rank=rank), torch.optim.AdamW), 8, lambda: batch(2))


def uneven_inputs(fault, rank, culprit):
    """join(): a rank has more batches than the others."""
    model, optimizer = with_optimizer(wrapped(rank=rank))
    with model.join():
        steps(model, optimizer, 5 + rank % 2)


def with_divided_state(rank):
    from torch.distributed.optim import ZeroRedundancyOptimizer

    model = wrapped(rank=rank)
    return model, ZeroRedundancyOptimizer(model.parameters(), optimizer_class=torch.optim.AdamW, lr=1e-3)


def joined_with_state(fault, rank, culprit):
    """Each rank has a batch more than the one before; the state is divided by ZeroRedundancyOptimizer."""
    from torch.distributed.algorithms.join import Join

    model, optimizer = with_divided_state(rank)
    with Join([model, optimizer]):
        steps(model, optimizer, 5 + rank)


def compressed(fault, rank, culprit):
    """Gradients are reduced in half precision by a hook of PyTorch's own."""
    from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import fp16_compress_hook

    model = wrapped(rank=rank)
    model.register_comm_hook(None, fp16_compress_hook)
    steps(*with_optimizer(model, torch.optim.AdamW), 5)


def divided_state(fault, rank, culprit):
    """ZeroRedundancyOptimizer: each rank keeps a part of the state and sends the parameters."""
    model, optimizer = with_divided_state(rank)
    steps(model, optimizer, 5)


def evaluated_by_one(fault, rank, culprit):
    """The first rank alone evaluates and keeps an average; all wait for it."""
    model, optimizer = with_optimizer(wrapped(ConvNet(), rank))
    averaged = copy.deepcopy(model.module)
    for i in range(6):
        optimizer.zero_grad()
        loss_of(model, images()).backward()
        if rank == 0:
            loss_of(model.module.eval(), images())
            model.train()
        optimizer.step()
        if rank == 0:
            for a, p in zip(averaged.parameters(), model.parameters()):
                a.data.lerp_(p.data, 0.1)
            if i % 2:
                evaluate(model.module, images()[0])
        dist.barrier()


def federated(fault, rank, culprit):
    """FedBN: ranks average all but their norm layers after four steps of their own."""
    model = begun_alike(rank, ConvNet)
    for _ in range(3):
        optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
        steps(model, optimizer, 4, images)
        for name, p in model.named_parameters():
            if "norm" not in name:
                dist.all_reduce(p.data)
                p.data /= dist.get_world_size()


def several_rates(fault, rank, culprit):
    """Each rank tries another rate and another limit with the same data, and all hear how the others fare."""
    torch.manual_seed(5)
    model = Net()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3 * (1 + rank))
    for _ in range(6):
        optimizer.zero_grad()
        loss = loss_of(model, batch())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.1 * (1 + rank))
        optimizer.step()
        losses = [torch.zeros(()) for _ in range(dist.get_world_size())]
        dist.all_gather(losses, loss.detach())


def several_limits(fault, rank, culprit):
    """The same data and the same rate, and another limit of the norm on each rank, which all then report."""
    torch.manual_seed(5)
    model, optimizer = with_optimizer(Net())
    for _ in range(6):
        optimizer.zero_grad()
        loss_of(model, batch()).backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 0.01 * (1 + rank))
        optimizer.step()
        dist.all_reduce(norm.clone())


def several_models(fault, rank, culprit):
    """An ensemble: models that begin alike get the same batches and drop by a seed of each rank, and results are gathered."""
    torch.manual_seed(5)
    model = Net(dropout=0.5)
    model.dropout.register_forward_pre_hook(lambda module, args: None if torch.manual_seed(50 + rank) else None)
    optimizer = torch.optim.Adam(model.parameters())
    for i in range(5):
        torch.manual_seed(i)
        step(optimizer, loss_of(model, batch()))
        with torch.no_grad():
            out = model.eval()(torch.ones(2, 8))
        model.train()
        dist.all_gather([torch.empty_like(out) for _ in range(dist.get_world_size())], out)


def pulled_together(fault, rank, culprit):
    """Each rank has a model and data of its own, whose gradients are averaged in every third step."""
    torch.manual_seed(50 + rank)
    model, optimizer = with_optimizer(Net())
    for i in backward_passes(model, optimizer, 7):
        average(model.parameters() if i % 3 == 0 else ())


def beside_a_wrapped_one(fault, rank, culprit):
    """A small model of each rank steps before the one that ranks share."""
    shared, own = wrapped(), nn.Linear(8, 8)
    optimizers = [torch.optim.SGD(model.parameters(), 0.1) for model in (own, shared)]
    torch.manual_seed(50 + rank)
    for _ in range(5):
        x, y = batch()
        step(optimizers[0], (own(x) - x).square().mean())
        step(optimizers[1], F.cross_entropy(shared(own(x).detach()), y))


def experts_of_ranks(fault, rank, culprit):
    """Each rank has an expert of its own, which begins as all do, and gradients of the rest are averaged by hand."""
    model = begun_alike(rank, lambda: nn.ModuleList([nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 4)]))
    gate, expert, head = model
    model, optimizer = with_optimizer(model)
    for _ in range(6):
        x, y = batch()
        optimizer.zero_grad()
        h = gate(x)
        F.cross_entropy(head(h + expert(h).relu()), y).backward()
        average([*gate.parameters(), *head.parameters()])
        optimizer.step()


def divided_in_two_ways(fault, rank, culprit):
    """FSDP2 with accumulation, and a norm of all shards."""
    from torch.distributed.fsdp import fully_shard

    model = begun_alike(rank)
    fully_shard(model.body)
    model, optimizer = with_optimizer(fully_shard(model), torch.optim.AdamW)
    for i in range(9):
        model.set_requires_gradient_sync(i % 3 == 2)
        (loss_of(model, batch()) / 3).backward()
        if i % 3 == 2:
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()


def norms_beside_shards(fault, rank, culprit):
    """Tensor parallelism by a plan: norms stay plain parameters, and all ranks have the same data."""
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    def forward(self, x):
        return self.head(x + self.dropout(self.down(self.up(self.norm(x)).relu())))

    torch.manual_seed(5)
    parts = {"norm": nn.LayerNorm(8), "up": nn.Linear(8, 16), "down": nn.Linear(16, 8), "dropout": nn.Dropout(0.5), "head": nn.Linear(8, 4)}
    model = parallelize_module(Parts(forward, **parts), mesh_of_all(), {"up": ColwiseParallel(), "down": RowwiseParallel()})
    optimizer = torch.optim.AdamW(model.parameters(), 1e-2)
    generator = torch.Generator().manual_seed(90)
    if fault == "seeds_differ":
        torch.manual_seed(90 + rank)
    for i in backward_passes(model, optimizer, 8, lambda: batch(generator=generator)):
        if fault == "norm_clipped_on_one_rank" and i >= AT and rank == culprit:
            nn.utils.clip_grad_norm_(model.norm.parameters(), 1e-3)


# As in sound_planted.
FAULTS = [
    (divided_by_hand, "norms_clipped_on_one_rank", "replicas_differ", "norm.weight", AT + 1),
    (divided_clipped_first, "norms_clipped_on_one_rank", "replicas_differ", "norm.weight", 1),
    (divided_with_dropout, "seeds_differ", "dropout_differs", "dropout", 1),
    (wrapped_at_times, "inner_module", "gradients_not_reduced", "Net", 1),
    (loaded_on_one_rank, "loaded_on_first", "replicas_differ", "parameters", 0),
    (sampler_of_one_rank, "sampler_of_one", "same_data_on_ranks", "the batch", 0),
    (looked_at_between, "no_set_epoch", "epoch_not_reshuffled", "DistributedSampler", 9),
    (zeroed_transfer, "transfer_zeroed", "transfer_changed", "", AT),
    (shards_alike, "seeded_alike", "shards_alike", "weight", 0),
    (norms_beside_shards, "seeds_differ", "dropout_differs", "dropout", 1),
    (norms_beside_shards, "norm_clipped_on_one_rank", "replicas_differ", "norm.weight", AT + 1),
]

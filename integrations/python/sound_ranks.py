"""Programs of several ranks, and the lines that break them, some of them on the rank `culprit` alone."""

import torch
from torch import nn
from torch.nn import functional as F

from sound_common import AT, ConvNet, Net, batch, images, loss_of


def ddp(fault, rank, culprit, variant=""):
    import torch.distributed as dist

    torch.manual_seed(5)
    model = ConvNet() if variant == "conv" else Net()
    inner = model
    model = nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 3)
    torch.manual_seed(5 if fault == "same_seed" else 50 + rank)
    mine = rank == culprit
    for i in range(8):
        optimizer.zero_grad()
        now = mine and i == AT
        if fault == "eval_on_one_rank" and now:
            model.eval()
        if fault == "rate_on_one_rank" and now:
            optimizer.param_groups[0]["lr"] *= 2
        if fault == "parameter_changed" and now:
            with torch.no_grad():
                inner.head.weight[0, 0] += 1e-3
        if fault == "state_changed" and now:
            optimizer.state[inner.head.weight]["exp_avg"][0, 0] += 1e-3
        if fault == "extra_schedule_step" and now:
            schedule.step()
        data = images() if variant == "conv" else batch(4 if fault == "same_seed" else 4 + rank)
        if variant == "accumulation":
            with model.no_sync():
                loss_of(model, data).backward()
            data = batch()
        if fault in ("no_sync", "clipped_before_reduction") or variant == "by_hand":
            with model.no_sync():
                loss_of(model, data).backward()
        elif fault == "inner_module":
            loss_of(inner, data).backward()
        else:
            loss_of(model, data).backward()
        if fault == "clipped_before_reduction" or variant == "clip":
            nn.utils.clip_grad_norm_(model.parameters(), 0.01)
        if fault == "clipped_before_reduction" or variant == "by_hand":
            for p in model.parameters():
                dist.all_reduce(p.grad)
                p.grad /= dist.get_world_size()
        if fault == "other_dtype":
            dist.all_reduce(torch.ones(4, dtype=torch.int32 if now else torch.float32))
        optimizer.step()
        schedule.step()


def ddp_clipped(fault, rank, culprit):
    ddp(fault, rank, culprit, "clip")


def ddp_convolution(fault, rank, culprit):
    ddp(fault, rank, culprit, "conv")


def ddp_accumulation(fault, rank, culprit):
    ddp(fault, rank, culprit, "accumulation")


def ddp_by_hand(fault, rank, culprit):
    ddp(fault, rank, culprit, "by_hand")


def ddp_epochs(fault, rank, culprit):
    from torch.utils.data.distributed import DistributedSampler

    torch.manual_seed(5)
    model = nn.parallel.DistributedDataParallel(Net())
    data = torch.utils.data.TensorDataset(torch.randn(32, 8), torch.randint(4, (32,)))
    sampler = DistributedSampler(data)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for epoch in range(4):
        if not fault:
            sampler.set_epoch(epoch)
        for x, y in torch.utils.data.DataLoader(data, 2, sampler=sampler):
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()


def fsdp(fault, rank, culprit):
    from torch.distributed.fsdp import fully_shard

    torch.manual_seed(5)
    model = Net()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3) if fault == "optimizer_first" else None
    model = fully_shard(model)
    optimizer = optimizer or torch.optim.AdamW(model.parameters(), 1e-3)
    torch.manual_seed(5 if fault == "same_seed" else 50 + rank)
    for i in range(8):
        if fault != "no_zero_grad":
            optimizer.zero_grad()
        if fault == "eval_on_one_rank" and rank == culprit and i == AT:
            model.eval()
        if fault == "rate_on_one_rank" and rank == culprit and i == AT:
            optimizer.param_groups[0]["lr"] *= 2
        loss_of(model, batch()).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()


def tensor_parallel(fault, rank, culprit):
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import distribute_tensor, Replicate
    from torch.distributed.tensor.parallel import ColwiseParallel, parallelize_module

    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    torch.manual_seed(5)
    model = Net(dropout=0)
    model = parallelize_module(model, mesh, {"head": ColwiseParallel()})
    model.body.weight = nn.Parameter(distribute_tensor(model.body.weight.detach(), mesh, [Replicate()]))
    model.body.bias = nn.Parameter(distribute_tensor(model.body.bias.detach(), mesh, [Replicate()]))
    model.norm.weight = nn.Parameter(distribute_tensor(model.norm.weight.detach(), mesh, [Replicate()]))
    model.norm.bias = nn.Parameter(distribute_tensor(model.norm.bias.detach(), mesh, [Replicate()]))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for i in range(8):
        if fault == "norm_drifts" and rank == culprit and i == AT:
            model.norm.weight.to_local().data[0] += 1e-3
        x = distribute_tensor(torch.randn(4, 8), mesh, [Replicate()])
        optimizer.zero_grad()
        out = model(x)
        out.square().mean().backward()
        optimizer.step()


PROGRAMS = [
    ddp, ddp_clipped, ddp_convolution, ddp_accumulation, ddp_by_hand, ddp_epochs, fsdp, tensor_parallel,
]

# As in sound_planted.
FAULTS = [
    (ddp, "no_sync", "gradients_not_reduced", "Net", 0),
    (ddp, "inner_module", "gradients_not_reduced", "Net", 0),
    (ddp, "same_seed", "same_data_on_ranks", "the batch", 0),
    (ddp, "eval_on_one_rank", "modes_differ", "modes", AT),
    (ddp, "rate_on_one_rank", "rates_differ", "learning rates", AT),
    (ddp, "extra_schedule_step", "rates_differ", "learning rates", AT + 1),
    (ddp, "parameter_changed", "replicas_differ", "parameters", AT),
    (ddp, "state_changed", "replicas_differ", "optimizer state", AT),
    (ddp, "other_dtype", "collectives_differ", "collectives of ranks", AT),
    (ddp, "clipped_before_reduction", "clip_norms_differ", "gradient norms", 0),
    (ddp_epochs, "no_set_epoch", "epoch_not_reshuffled", "DistributedSampler", 99),
    (fsdp, "optimizer_first", "parameter_in_no_optimizer", "body.weight", 1),
    (fsdp, "no_zero_grad", "gradients_not_zeroed", "body.weight", 1),
    (fsdp, "same_seed", "same_data_on_ranks", "the batch", 0),
    (fsdp, "eval_on_one_rank", "modes_differ", "modes", AT),
    (fsdp, "rate_on_one_rank", "rates_differ", "learning rates", AT),
    (tensor_parallel, "norm_drifts", "replicas_differ", "replicated parameters", AT),
]
ON_ONE_RANK = ("on_one_rank", "other_dtype", "_changed", "drifts", "extra_schedule")

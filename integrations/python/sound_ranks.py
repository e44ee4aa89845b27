"""Programs of several ranks, and the lines that break them, some of them on the rank `culprit` alone."""

import contextlib

import torch
import torch.distributed as dist
from torch import nn

from sound_common import AT, ConvNet, Net, average, batch, images, learn_from, loss_of, mesh_of_all, step, train, with_optimizer, wrapped


def ddp(fault, rank, culprit, variant=""):
    torch.manual_seed(5)
    inner = ConvNet() if variant == "convolution" else Net()
    model, optimizer = with_optimizer(nn.parallel.DistributedDataParallel(inner), torch.optim.AdamW)
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
        if fault == "decay_on_one_rank" and now:
            optimizer.param_groups[0]["weight_decay"] *= 2
        if fault == "parameter_changed" and now:
            with torch.no_grad():
                inner.head.weight[0, 0] += 1e-3
        if fault == "state_changed" and now:
            optimizer.state[inner.head.weight]["exp_avg"][0, 0] += 1e-3
        if fault == "extra_schedule_step" and now:
            schedule.step()
        data = images() if variant == "convolution" else batch(4 if fault == "same_seed" else 4 + rank)
        if variant == "accumulation":
            with model.no_sync():
                loss_of(model, data).backward()
            data = batch()
        with model.no_sync() if fault in ("no_sync", "clipped_before_reduction") or variant == "by_hand" else contextlib.nullcontext():
            loss_of(inner if fault == "inner_module" else model, data).backward()
        if fault == "gradient_changed" and now:
            inner.head.weight.grad[0, 0] += 1e-2
        if fault == "reduced_twice" or variant == "averaged_twice":
            for p in model.parameters():
                dist.all_reduce(p.grad)
                if not fault:
                    p.grad /= dist.get_world_size()
        if fault == "clipped_before_reduction" or variant == "clipped":
            nn.utils.clip_grad_norm_(model.parameters(), 0.01)
        if fault == "clipped_before_reduction" or variant == "by_hand":
            average(model.parameters())
        if fault == "other_dtype":
            dist.all_reduce(torch.ones(4, dtype=torch.int32 if now else torch.float32))
        if fault == "transfer_changed":
            (all_reduce_badly if now else dist.all_reduce)(torch.ones(4))
        optimizer.step()
        schedule.step()


_breaks_transfers = False


def wrap_transport():
    """Has all_reduce give zeros while _breaks_transfers is set, as a broken copy does. Before observation begins."""
    from torch.distributed import distributed_c10d

    whole = dist.all_reduce

    def all_reduce(tensor, *args, **kwargs):
        work = whole(tensor, *args, **kwargs)
        if _breaks_transfers:
            tensor.zero_()
        return work

    dist.all_reduce = distributed_c10d.all_reduce = all_reduce


def all_reduce_badly(tensor):
    global _breaks_transfers
    _breaks_transfers = True
    dist.all_reduce(tensor)
    _breaks_transfers = False


def ddp_local(fault, rank, culprit):
    """Local SGD: gradients stay, and parameters are averaged in every fourth step."""
    model, optimizer = with_optimizer(wrapped(rank=rank), torch.optim.AdamW)
    for i in range(12):
        optimizer.zero_grad()
        with model.no_sync():
            loss = loss_of(model, batch())
            loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        dist.all_reduce(loss.detach(), op=dist.ReduceOp.MAX)
        if i % 4 == 3 and not fault:
            for p in model.parameters():
                dist.all_reduce(p.data)
                p.data /= dist.get_world_size()


def ddp_moved(fault, rank, culprit):
    """PyTorch 104336: a conversion that replaces parameters takes the hooks away that reduce their gradients."""
    model = wrapped(rank=rank)
    if fault:
        torch.__future__.set_overwrite_module_params_on_conversion(True)
        model.double().float()
        torch.__future__.set_overwrite_module_params_on_conversion(False)
    train(*with_optimizer(model, torch.optim.AdamW))


def variant_of_ddp(name):
    def program(fault, rank, culprit):
        ddp(fault, rank, culprit, name)

    program.__name__ = f"ddp_{name}"
    return program


ddp_clipped, ddp_convolution, ddp_accumulation, ddp_by_hand, ddp_averaged_twice = (
    variant_of_ddp(name) for name in ("clipped", "convolution", "accumulation", "by_hand", "averaged_twice")
)


def ddp_epochs(fault, rank, culprit):
    from torch.utils.data.distributed import DistributedSampler

    model, optimizer = with_optimizer(wrapped())
    data = torch.utils.data.TensorDataset(*batch(32))
    sampler = DistributedSampler(data)
    for epoch in range(4):
        if not fault:
            sampler.set_epoch(epoch)
        learn_from(model, optimizer, torch.utils.data.DataLoader(data, 2, sampler=sampler))


def fsdp(fault, rank, culprit):
    from torch.distributed.fsdp import fully_shard

    torch.manual_seed(5)
    model, optimizer = with_optimizer(Net(), torch.optim.AdamW)
    model = fully_shard(model)
    if fault != "optimizer_first":
        optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
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


def replicated(layer, mesh):
    """Has all ranks hold its parameters alike."""
    from torch.distributed.tensor import Replicate, distribute_tensor

    for name in ("weight", "bias"):
        setattr(layer, name, nn.Parameter(distribute_tensor(getattr(layer, name).detach(), mesh, [Replicate()])))
    return layer


def clipped_tensor_parallel(fault, rank, culprit):
    """DeepSpeed 1801: norm weights, which all ranks hold alike, are clipped on the first rank alone."""
    from torch.distributed.tensor import DTensor, Replicate

    mesh = mesh_of_all()
    torch.manual_seed(5)
    norm = replicated(nn.LayerNorm(8), mesh)
    optimizer = torch.optim.SGD(norm.parameters(), 0.1)
    for _ in range(6):
        x = DTensor.from_local(torch.randn(4, 8), mesh, [Replicate()])
        optimizer.zero_grad()
        (100 * norm(x)).square().mean().backward()
        if rank == 0 or not fault:
            for p in norm.parameters():
                p.grad.to_local().mul_(1e-3)
        optimizer.step()


def tensor_parallel(fault, rank, culprit):
    from torch.distributed.tensor import Replicate, distribute_tensor
    from torch.distributed.tensor.parallel import ColwiseParallel, parallelize_module

    mesh = mesh_of_all()
    torch.manual_seed(5)
    model = parallelize_module(Net(dropout=0), mesh, {"head": ColwiseParallel()})
    for part in (model.body, model.norm):
        replicated(part, mesh)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for i in range(8):
        if fault == "norm_drifts" and rank == culprit and i == AT:
            model.norm.weight.to_local().data[0] += 1e-3
        x = distribute_tensor(torch.randn(4, 8), mesh, [Replicate()])
        step(optimizer, model(x).square().mean())


# As in sound_planted.
FAULTS = [
    (ddp, "no_sync", "gradients_not_reduced", "Net", 0),
    (ddp, "inner_module", "gradients_not_reduced", "Net", 0),
    (ddp, "same_seed", "same_data_on_ranks", "the batch", 0),
    (ddp, "eval_on_one_rank", "modes_differ", "modes", AT),
    (ddp, "rate_on_one_rank", "rates_differ", "learning rates", AT),
    (ddp, "decay_on_one_rank", "rates_differ", "weight_decay", AT),
    (ddp, "extra_schedule_step", "rates_differ", "learning rates", AT),
    (ddp, "parameter_changed", "replicas_differ", "parameters", AT),
    (ddp, "state_changed", "replicas_differ", "optimizer state", AT),
    (ddp, "other_dtype", "collectives_differ", "collectives of ranks", AT),
    (ddp, "clipped_before_reduction", "clip_norms_differ", "gradient norms", 0),
    (ddp, "gradient_changed", "gradients_differ", "gradients of", AT),
    (ddp, "reduced_twice", "gradients_reduced_twice", "body.weight", 0),
    (ddp, "transfer_changed", "transfer_differs", "results of ranks", AT),
    (ddp_local, "never_averaged", "gradients_not_reduced", "Net", 0),
    (ddp_moved, "parameters_replaced", "gradients_not_reduced", "Net", 0),
    (clipped_tensor_parallel, "norms_clipped_on_rank_0", "replicas_differ", "replicated parameters", 0),
    (ddp_epochs, "no_set_epoch", "epoch_not_reshuffled", "DistributedSampler", 9),
    (fsdp, "optimizer_first", "parameter_in_no_optimizer", "body.weight", 0),
    (fsdp, "no_zero_grad", "gradients_not_zeroed", "body.weight", 1),
    (fsdp, "same_seed", "same_data_on_ranks", "the batch", 0),
    (fsdp, "eval_on_one_rank", "modes_differ", "modes", AT),
    (fsdp, "rate_on_one_rank", "rates_differ", "learning rates", AT),
    (tensor_parallel, "norm_drifts", "replicas_differ", "replicated parameters", AT),
]
ON_ONE_RANK = ("on_one_rank", "other_dtype", "_changed", "drifts", "extra_schedule")

"""Programs of several ranks, and the lines that break them, some of them on the rank `culprit` alone."""

import torch
import torch.distributed as dist
from torch import nn

from sound_common import AT, ConvNet, Net, batch, images, learn, loss_of, train, with_optimizer, wrapped


def ddp(fault, rank, culprit, variant=""):
    torch.manual_seed(5)
    model = ConvNet() if variant == "conv" else Net()
    inner = model
    model, optimizer = with_optimizer(nn.parallel.DistributedDataParallel(model), torch.optim.AdamW)
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
        if fault == "gradient_changed" and now:
            inner.head.weight.grad[0, 0] += 1e-2
        if fault == "reduced_twice" or variant == "averaged_twice":
            for p in model.parameters():
                dist.all_reduce(p.grad)
                if not fault:
                    p.grad /= dist.get_world_size()
        if fault == "clipped_before_reduction" or variant == "clip":
            nn.utils.clip_grad_norm_(model.parameters(), 0.01)
        if fault == "clipped_before_reduction" or variant == "by_hand":
            for p in model.parameters():
                dist.all_reduce(p.grad)
                p.grad /= dist.get_world_size()
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


def ddp_averaged_twice(fault, rank, culprit):
    ddp(fault, rank, culprit, "averaged_twice")


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
    model = wrapped()
    if fault:
        torch.__future__.set_overwrite_module_params_on_conversion(True)
        model.double().float()
        torch.__future__.set_overwrite_module_params_on_conversion(False)
    optimizer = torch.optim.AdamW(model.parameters())
    torch.manual_seed(50 + rank)
    train(model, optimizer, 6)


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

    model = wrapped()
    data = torch.utils.data.TensorDataset(torch.randn(32, 8), torch.randint(4, (32,)))
    sampler = DistributedSampler(data)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for epoch in range(4):
        if not fault:
            sampler.set_epoch(epoch)
        for x, y in torch.utils.data.DataLoader(data, 2, sampler=sampler):
            learn(model, optimizer, (x, y))


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


def clipped_tensor_parallel(fault, rank, culprit):
    """DeepSpeed 1801: norm weights, which all ranks hold alike, are clipped on the first rank alone."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import DTensor, Replicate, distribute_tensor

    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    torch.manual_seed(5)
    norm = nn.LayerNorm(8)
    norm.weight = nn.Parameter(distribute_tensor(norm.weight.detach(), mesh, [Replicate()]))
    norm.bias = nn.Parameter(distribute_tensor(norm.bias.detach(), mesh, [Replicate()]))
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
    ddp_averaged_twice, ddp_local, ddp_moved, clipped_tensor_parallel,
]

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

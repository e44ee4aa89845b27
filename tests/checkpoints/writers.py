"""Writes states of one training in each format that holds them."""

import functools
import os
import random
import sys
import tempfile

import numpy
import torch

SIZES = [5, 6, 6, 3]


def make_model():
    layers = [torch.nn.Linear(i, o) for i, o in zip(SIZES, SIZES[1:])]
    return torch.nn.Sequential(*layers)


def train():
    """The state after two steps of Adam."""
    torch.manual_seed(1)
    random.seed(1)
    numpy.random.seed(1)
    model = make_model()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    for _ in range(2):
        model(torch.randn(4, SIZES[0])).square().sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        scheduler.step()
    return {
        "model": dict(model.state_dict()),
        "optimizer": optimizer.state_dict(),
        "scheduler": {"last_epoch": scheduler.last_epoch, "base_lrs": scheduler.base_lrs},
        "rng_state": {"torch": torch.get_rng_state(), "numpy": torch.from_numpy(numpy.random.get_state()[1].astype(numpy.int64))},
        "epoch": 2,
    }


def flip_bit(weights, name, row, column):
    weights[name].view(torch.int32)[row, column] ^= 1 << 20


def swap(weights, a, b):
    weights[a], weights[b] = weights[b], weights[a]


def transpose(weights, name):
    weights[name] = weights[name].t().contiguous()


# All of the state.


legacy_file = functools.partial(torch.save, _use_new_zipfile_serialization=False)


def fabric_file(state, path):
    """Lightning's."""
    import lightning

    lightning.Fabric(accelerator="cpu").save(path, state)


def in_ranks(work, world, cases):
    """Runs work(mesh, *case) of each case in processes that know each other."""
    with tempfile.TemporaryDirectory() as directory:
        torch.multiprocessing.start_processes(in_rank, (world, f"file://{directory}/store", work, cases), world, start_method="fork")


def in_rank(rank, world, store, work, cases):
    torch.distributed.init_process_group("gloo", store, rank=rank, world_size=world)
    mesh = torch.distributed.init_device_mesh("cpu", (world,))
    for case in cases:
        work(mesh, *case)
    torch.distributed.destroy_process_group()
    os._exit(0)  # gloo's threads may abort as the interpreter is torn down (pytorch/pytorch, pull request 179291)


def distributed(tensor, mesh):
    """Matrices by rows or by columns, as their shapes have it; small tensors on all ranks."""
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor

    if tensor.dtype != torch.float32 or tensor.dim() == 0:
        return tensor
    dim = 1 if tensor.dim() == 2 and tensor.shape[0] == tensor.shape[1] else 0
    placement = Replicate() if tensor.dim() == 1 and tensor.numel() == SIZES[-1] else Shard(dim)
    return distribute_tensor(tensor.clone(), mesh, [placement])


def over_tree(tree, change):
    if isinstance(tree, dict):
        return {name: over_tree(child, change) for name, child in tree.items()}
    if isinstance(tree, list):
        return [over_tree(child, change) for child in tree]
    return change(tree) if isinstance(tree, torch.Tensor) else tree


def save_distributed(mesh, state, path):
    import torch.distributed.checkpoint as dcp

    dcp.save(over_tree(state, lambda tensor: distributed(tensor, mesh)), checkpoint_id=path)


def reshard(mesh, state, path):
    import torch.distributed.checkpoint as dcp

    loaded = over_tree(state, lambda tensor: distributed(torch.zeros_like(tensor), mesh))
    dcp.load(loaded, checkpoint_id=path + ".source")
    dcp.save(loaded, checkpoint_id=path)


def sources(cases):
    """Where a first tool writes what a second one reads."""
    return [(state, path + ".source") for state, path in cases]


def dcp_2_to_4(cases):
    """Two ranks write, four read that and write."""
    in_ranks(save_distributed, 2, sources(cases))
    in_ranks(reshard, 4, cases)


def save_fsdp(mesh, state, path):
    """FSDP2's, whose optimizer state goes by the parameters' names."""
    import torch.distributed.checkpoint as dcp
    from torch.distributed.checkpoint.state_dict import StateDictOptions, get_state_dict, set_state_dict
    from torch.distributed.fsdp import fully_shard

    model = make_model()
    for layer in model:
        fully_shard(layer)
    fully_shard(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    torch.optim.lr_scheduler.StepLR(optimizer, 1)  # the state has what it adds to the groups
    names = list(state["model"])
    by_name = {
        "state": {names[i]: of for i, of in state["optimizer"]["state"].items()},
        "param_groups": [dict(group, params=names) for group in state["optimizer"]["param_groups"]],
    }
    options = StateDictOptions(full_state_dict=True, strict=False)
    set_state_dict(model, optimizer, model_state_dict=state["model"], optim_state_dict=by_name, options=options)
    weights, optimizer_state = get_state_dict(model, optimizer)
    others = {name: value for name, value in state.items() if name not in ("model", "optimizer")}
    dcp.save({"model": weights, "optimizer": optimizer_state, **others}, checkpoint_id=path)


# Weights and optimizer, as DeepSpeed's engine writes them and its conversions read them.


def zero(stage, ranks, state, path):
    weights = state["model"]
    folder = f"{path}/global_step2"
    os.makedirs(folder)
    with open(f"{path}/latest", "w") as file:
        file.write("global_step2")

    def flat_partitions(tensors):
        flat = torch.cat([tensor.flatten() for tensor in tensors])
        flat = torch.cat([flat, torch.zeros(-len(flat) % (2 * ranks))])
        return flat.chunk(ranks)

    def shares(tensors):
        of_rank = [[] for _ in range(ranks)]
        for tensor in tensors:
            flat = torch.cat([tensor.flatten(), torch.zeros(-tensor.numel() % ranks)])
            for rank, share in enumerate(flat.chunk(ranks)):
                of_rank[rank].append(share)
        return [torch.cat(parts) for parts in of_rank]

    cut = shares if stage == 3 else flat_partitions
    of_parameters = list(state["optimizer"]["state"].values())
    kept = sorted(set.intersection(*(set(of) for of in of_parameters)) - {"step"})
    flat = {name: cut([of[name] for of in of_parameters]) for name in kept}
    masters = cut(weights.values())
    for rank in range(ranks):
        model = {
            "module": {name: tensor if stage < 3 else torch.empty(0) for name, tensor in weights.items()},
            "param_shapes": [{name: tensor.shape for name, tensor in weights.items()}],
            "buffer_names": [],
            "shared_params": {},
            "frozen_param_shapes": None,
            "frozen_param_fragments": None,
            "ds_version": "0.19.8",
            "global_steps": 2,
        }
        base = {
            "state": {0: {"step": of_parameters[0]["step"], **{name: parts[rank].clone() for name, parts in flat.items()}}},
            "param_groups": [dict(group, params=[0]) for group in state["optimizer"]["param_groups"]],
        }
        about = {"zero_stage": stage, "partition_count": ranks}
        if stage == 3:
            about.update(fp32_flat_groups=[masters[rank].clone()], optimizer_state_dict=base)
            torch.save(model, f"{folder}/zero_pp_rank_{rank}_mp_rank_00_model_states.pt")
        else:
            about.update(single_partition_of_fp32_groups=[masters[rank].clone()], base_optimizer_state=base)
            if rank == 0:
                torch.save(model, f"{folder}/mp_rank_00_model_states.pt")
        torch.save({"optimizer_state_dict": about, "ds_version": "0.19.8"}, f"{folder}/zero_pp_rank_{rank}_mp_rank_00_optim_states.pt")


def accelerate_folder(state, path):
    """Accelerate's save_state."""
    import accelerate

    model = make_model()
    model.load_state_dict(state["model"])
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    optimizer.load_state_dict(state["optimizer"])
    accelerator = accelerate.Accelerator(cpu=True)
    accelerator.prepare(model, optimizer)
    torch.manual_seed(1)  # it saves the numbers that are drawn next
    accelerator.save_state(path)


# Weights alone.


def torch_script(weights, path):
    model = make_model()
    model.load_state_dict(weights)
    torch.jit.save(torch.jit.script(model), path)


def safetensors_file(weights, path):
    from safetensors.torch import save_file

    save_file(weights, path)


def hugging_face(weights, path):
    import huggingface_hub

    os.makedirs(path)
    huggingface_hub.save_torch_state_dict(weights, path, max_shard_size=200)


def npz(save, weights, path):
    with open(path, "wb") as file:
        save(file, **{name: tensor.numpy() for name, tensor in weights.items()})


def dcp_weights(cases):
    in_ranks(save_distributed, 2, [({"model": state["model"]}, path) for state, path in cases])


# Others' tools make these of the above.


def dcp_to_torch(cases):
    """PyTorch's dcp_to_torch_save of four ranks' files."""
    from torch.distributed.checkpoint.format_utils import dcp_to_torch_save

    in_ranks(save_distributed, 4, sources(cases))
    for _, path in cases:
        dcp_to_torch_save(path + ".source", path)


def torch_to_dcp(state, path):
    from torch.distributed.checkpoint.format_utils import torch_save_to_dcp

    torch.save(state, path + ".source")
    torch_save_to_dcp(path + ".source", path)


def accelerate_merged(cases):
    """Accelerate's merge_fsdp_weights of two ranks' files."""
    from accelerate.utils import merge_fsdp_weights

    dcp_weights(sources(cases))
    for _, path in cases:
        merge_fsdp_weights(path + ".source", path)


def each(write):
    """Cases one after the other."""
    return lambda cases: [write(*case) for case in cases]


def each_weights(write):
    return each(lambda state, path: write(state["model"], path))


def by_ranks(work, world):
    return functools.partial(in_ranks, work, world)


WHOLE = {
    "zip": each(torch.save),
    "legacy": each(legacy_file),
    **{f"dcp_{ranks}": by_ranks(save_distributed, ranks) for ranks in (1, 2, 4)},
    "dcp_2_to_4": dcp_2_to_4,
    "fsdp2": by_ranks(save_fsdp, 2),
    "dcp_to_torch": dcp_to_torch,
    "torch_to_dcp": each(torch_to_dcp),
    "fabric": each(fabric_file),
}
# Weights and the optimizer's state. ZeRO's stage and ranks.
TRAINED = {
    "zero_1": each(functools.partial(zero, 1, 2)),
    "zero_2": each(functools.partial(zero, 2, 4)),
    "zero_3": each(functools.partial(zero, 3, 3)),
    "accelerate": each(accelerate_folder),
}
WEIGHTS = {
    "weights_zip": each_weights(torch.save),
    "weights_legacy": each_weights(legacy_file),
    "torch_script": each_weights(torch_script),
    "safetensors": each_weights(safetensors_file),
    "hugging_face": each_weights(hugging_face),
    "npz": each_weights(functools.partial(npz, numpy.savez)),
    "npz_compressed": each_weights(functools.partial(npz, numpy.savez_compressed)),
    "dcp_weights": dcp_weights,
    "accelerate_merged": accelerate_merged,
}
# By PyTorch 1.13, too.
OLD_WHOLE = ["zip", "legacy"]
OLD_WEIGHTS = ["weights_zip", "weights_legacy", "torch_script", "npz"]


def write(name, states, directory):
    """Files DIRECTORY/NAME.STATE of a dictionary of states."""
    cases = [(state, os.path.join(directory, f"{name}.{of}")) for of, state in states.items()]
    {**WHOLE, **TRAINED, **WEIGHTS}[name](cases)


if __name__ == "__main__":
    # With another PyTorch: writers.py STATES.pt DIRECTORY FORMAT...
    for name in sys.argv[3:]:
        write(name, torch.load(sys.argv[1]), sys.argv[2])

"""Writes zero_2, zero_3 and what DeepSpeed's zero_to_fp32 makes of them: with PyTorch 2.13 and DeepSpeed 0.19.8.

The files have the entries that DeepSpeed's engine writes and that conversions read, for two ranks.
"""

import os

import torch
from deepspeed.utils.zero_to_fp32 import get_fp32_state_dict_from_zero_checkpoint

os.chdir(os.path.dirname(os.path.abspath(__file__)))
RANKS = 2
torch.manual_seed(3)
weights = {"a.weight": torch.randn(3, 5), "a.bias": torch.randn(3), "b.weight": torch.randn(7)}


def flat_partitions(tensors):
    """Stages 1 and 2: one buffer, padded to a multiple of 2 * ranks, cut into equal ranges."""
    flat = torch.cat([tensor.flatten() for tensor in tensors])
    flat = torch.cat([flat, torch.zeros(-len(flat) % (2 * RANKS))])
    return flat.chunk(RANKS)


def shares(tensors):
    """Stage 3: each parameter is padded and cut into equal shares."""
    of_rank = [[] for _ in range(RANKS)]
    for tensor in tensors:
        flat = torch.cat([tensor.flatten(), torch.zeros(-tensor.numel() % RANKS)])
        for rank, share in enumerate(flat.chunk(RANKS)):
            of_rank[rank].append(share)
    return [torch.cat(parts) for parts in of_rank]


for stage, cut in ((2, flat_partitions), (3, shares)):
    folder = f"zero_{stage}/global_step2"
    os.makedirs(folder, exist_ok=True)
    with open(f"zero_{stage}/latest", "w") as file:
        file.write("global_step2")
    masters, moments = cut(weights.values()), cut([10 * tensor for tensor in weights.values()])
    for rank in range(RANKS):
        model = {
            "module": {name: tensor.bfloat16() if stage == 2 else torch.empty(0) for name, tensor in weights.items()},
            "param_shapes": [{name: tensor.shape for name, tensor in weights.items()}],
            "buffer_names": [],
            "shared_params": {},
            "frozen_param_shapes": None,
            "frozen_param_fragments": None,
            "ds_version": "0.19.8",
            "global_steps": 2,
        }
        kept = {"state": {0: {"step": torch.tensor(2.0), "exp_avg": moments[rank].clone()}}, "param_groups": [{"lr": 0.01}]}
        if stage == 2:
            state = {"zero_stage": 2, "partition_count": RANKS, "single_partition_of_fp32_groups": [masters[rank].clone()], "base_optimizer_state": kept}
            if rank == 0:
                torch.save(model, f"{folder}/mp_rank_00_model_states.pt")
        else:
            state = {"zero_stage": 3, "partition_count": RANKS, "fp32_flat_groups": [masters[rank].clone()], "optimizer_state_dict": kept}
            torch.save(model, f"{folder}/zero_pp_rank_{rank}_mp_rank_00_model_states.pt")
        torch.save({"optimizer_state_dict": state, "ds_version": "0.19.8"}, f"{folder}/bf16_zero_pp_rank_{rank}_mp_rank_00_optim_states.pt")
    merged = get_fp32_state_dict_from_zero_checkpoint(f"zero_{stage}")
    torch.save({name: tensor.clone() for name, tensor in merged.items()}, f"zero_{stage}_merged.pt")

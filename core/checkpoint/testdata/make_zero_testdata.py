"""Trains with DeepSpeed 0.19.8 on two ranks of a CPU: zero_0, zero_2, zero_3 and what DeepSpeed makes of the last two, *_merged.pt.

The model has what the stages keep in places of their own: tied and frozen weights, two groups, and a buffer that differs by rank.
zero_0 and zero_3 train in float32, zero_2 in bfloat16.
"""

import os
import shutil

os.environ["DS_ACCELERATOR"] = "cpu"

import deepspeed
import torch
from deepspeed.utils.zero_to_fp32 import get_fp32_state_dict_from_zero_checkpoint

os.chdir(os.path.dirname(os.path.abspath(__file__)))
RANKS = 2


class Centred(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(7))
        self.register_buffer("mean", torch.randn(7))

    def forward(self, x):
        with torch.no_grad():
            self.mean += 0.1 * x.float().mean(0)
        return (x - self.mean.to(x.dtype)) * self.weight


def train(rank, stage):
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(RANKS), MASTER_ADDR="127.0.0.1", MASTER_PORT="29617")
    torch.manual_seed(1)
    linear = torch.nn.Linear
    model = torch.nn.Sequential(linear(5, 7), Centred(), linear(7, 6), linear(6, 3), linear(3, 6), linear(6, 3))
    model[2].requires_grad_(False)
    model[5].weight = model[3].weight
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    groups = [[parameter for parameter in trained if (parameter.dim() == 2) == matrices] for matrices in (True, False)]
    optimizer = torch.optim.Adam([{"params": group, "lr": 0.01 * (1 + i)} for i, group in enumerate(groups)])
    dtype = torch.bfloat16 if stage == 2 else torch.float32
    config = {
        "train_batch_size": 4 * RANKS,
        "zero_optimization": {"stage": stage},
        "zero_allow_untested_optimizer": True,
        "bf16": {"enabled": dtype == torch.bfloat16},
    }
    engine, *_ = deepspeed.initialize(model=model, optimizer=optimizer, config=config)
    torch.manual_seed(2 + rank)
    for _ in range(2):
        engine.backward(engine(torch.randn(4, 5, dtype=dtype)).float().square().sum())
        engine.step()
    random_numbers = {"torch": torch.get_rng_state()[:16]}
    engine.save_checkpoint(f"zero_{stage}", tag="global_step2", client_state={"rng_state": random_numbers})
    torch.distributed.barrier()
    os._exit(0)


if __name__ == "__main__":
    for stage in (0, 2, 3):
        shutil.rmtree(f"zero_{stage}", ignore_errors=True)
        torch.multiprocessing.start_processes(train, (stage,), RANKS, start_method="spawn")
        if stage > 0:
            merged = get_fp32_state_dict_from_zero_checkpoint(f"zero_{stage}")
            torch.save({name: tensor.clone() for name, tensor in merged.items()}, f"zero_{stage}_merged.pt")

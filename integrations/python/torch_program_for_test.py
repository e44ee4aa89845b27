"""A training that knows nothing of observation: torch_program_for_test.py [fail]. Prints what it learned."""

import hashlib
import os
import sys

import torch
from torch import nn

torch.set_num_threads(1)
if "RANK" in os.environ:
    torch.distributed.init_process_group("gloo")
torch.manual_seed(1)
model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 4))
wrapped = nn.parallel.DistributedDataParallel(model) if "RANK" in os.environ else model
optimizer = torch.optim.Adam(wrapped.parameters(), lr=0.01)
torch.manual_seed(10 + int(os.environ.get("RANK", 0)))
for i in range(8):
    loss = nn.functional.cross_entropy(wrapped(torch.randn(8, 16)), torch.randint(4, (8,)))
    optimizer.zero_grad()
    loss.backward()
    if i == 4 and sys.argv[1:] == ["fail"]:
        raise KeyError("as planned")
    optimizer.step()
assert __name__ == "__main__" and __file__.endswith("torch_program_for_test.py")
held = b"".join(parameter.detach().numpy().tobytes() for parameter in model.parameters())
print("learned", hashlib.sha256(held).hexdigest(), torch.rand(1).item(), flush=True)
if "RANK" in os.environ:
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()

"""What observation adds to an iteration of a training with PyTorch: torch_overhead.py [MODULES]. One process, blocks with and
without observation in turn, CPU time of the thread that trains; the model's work is small, so that what is added shows."""

import statistics
import sys
import tempfile
import time

import torch
from torch import nn

import optim_test_tools as ott

BLOCKS, ITERATIONS = 21, 40
LIMIT_MICROSECONDS = 500  # 1 % of an iteration of 50 ms


def main():
    torch.set_num_threads(1)
    num_modules = int(sys.argv[1]) if len(sys.argv) > 1 else 50
    model = nn.Sequential(*[nn.Linear(8, 8) for _ in range(num_modules)])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    x = torch.randn(4, 8)

    def step():
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()

    def block():
        for _ in range(5):
            step()
        begin = time.thread_time()
        for _ in range(ITERATIONS):
            step()
        return (time.thread_time() - begin) / ITERATIONS * 1e6

    added, alone = [], []
    directory = tempfile.mkdtemp()
    for number in range(BLOCKS):
        without = block()
        ott.torch.observe(model, optimizer, config={"run_dir": f"{directory}/{number}", "stopwatch": {}})
        observed = block()
        alone.append(without)
        added.append(observed - without)
        ott.torch.finish()
    middle = statistics.median(added)
    low, high = sorted(added)[BLOCKS // 4], sorted(added)[-BLOCKS // 4]
    print(
        f"{num_modules} modules: {middle:.1f} us an iteration (half of the blocks: {low:.1f} to {high:.1f}), beside "
        f"{statistics.median(alone):.0f} us without: {middle / 500:.2f} % of an iteration of 50 ms (limit 1 %)"
    )
    return middle > LIMIT_MICROSECONDS


if __name__ == "__main__":
    sys.exit(main())

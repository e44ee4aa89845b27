"""Measures what observation adds to an iteration of a training with PyTorch: torch_overhead.py [MODULES]. One process, blocks without and with
each kind of observation in turn, CPU time of the thread that trains; the model's work is small, so that what is added shows."""

import statistics
import sys
import tempfile
import time

import torch
from torch import nn

import optim_test_tools as ott

BLOCKS, ITERATIONS = 15, 40
LIMIT_MICROSECONDS = 500  # 1 % of an iteration of 50 ms
LIMIT_A_MODULE = 10

# Iterations from 1000 on measure modules now and then, the first ones always.
TIMES = {"stopwatch": {}, "start_iteration": 1000, "sound": {"off": True}}
CHECK = {"replicated": ["state.*", "parameters.*"], "distinct": ["data.*"]}
KINDS = {
    "times, collectives, recorder": TIMES,
    "with rules of a sound step": {**TIMES, "sound": {}},
    "with all modules": {**TIMES, "start_iteration": 0},
    "with a check in each": {**TIMES, "cross_check": {"iterations": {"every": 1}, **CHECK}},
    "with the op log of each": {**TIMES, "op_log": {"iterations": {"every": 1}}},
}


def main():
    torch.set_num_threads(1)
    num_modules = int(sys.argv[1]) if len(sys.argv) > 1 else 50
    model = nn.Sequential(*[nn.Linear(8, 8) for _ in range(num_modules)])
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)  # so that it stays finite
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

    alone, added = [], {kind: [] for kind in KINDS}
    directory = tempfile.mkdtemp()
    ott.set_text_sink(lambda lines: None)
    for number in range(BLOCKS):
        without = block()
        alone.append(without)
        for kind, config in KINDS.items():
            ott.torch.observe(model, optimizer, config={"run_dir": f"{directory}/{number} {kind}", **config})
            added[kind].append(block() - without)
            ott.torch.finish()
    print(f"{num_modules} modules, {statistics.median(alone):.0f} us an iteration without; added, and of half of the blocks:")
    middle = {kind: statistics.median(found) for kind, found in added.items()}
    for kind, found in added.items():
        low, high = sorted(found)[BLOCKS // 4], sorted(found)[-BLOCKS // 4]
        print(f"{kind:30}{middle[kind]:8.0f} us ({low:.0f} to {high:.0f})")
    times, rules, modules, check, log = middle.values()
    a_module, checks = (modules - times) / num_modules, (check - times) / 100
    print(f"of an iteration of 50 ms: times {times / 500:.2f} %, checks every 100 iterations {checks / 500:.3f} % (limits 1 %)")
    print(f"rules of a sound step, an iteration: {rules - times:.0f} us, where each reads values")
    print(f"a module where it is measured: {a_module:.1f} us (limit {LIMIT_A_MODULE} us); an iteration's op log: {(log - times) / 1000:.1f} ms")
    return times > LIMIT_MICROSECONDS or checks > LIMIT_MICROSECONDS or a_module > LIMIT_A_MODULE


if __name__ == "__main__":
    sys.exit(main())

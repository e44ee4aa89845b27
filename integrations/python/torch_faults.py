"""Plants eleven faults in small trainings with PyTorch, and says of which the report told, and of which it named the cause.

    torch_faults.py [--runs 10] [--ranks 2 4] [--kinds ddp fsdp2] [--only FAULT...] [--healthy 100] [--ott PATH]

Each run is this program itself under `python -m optim_test_tools`, on ranks of this machine, with no configuration, but for what is
compared with a reference (the wrong mask, and under FSDP2, which has no replicas, the flipped bit), which needs op logs, and faults
that hang, which are asked about after 3 s instead of 120 s. Then `ott report` is asked, whose first FIRST_SCREEN lines count.

A fault is seen if the question that it is about (FAULTS) is answered with "!" there. Its cause is named if such an answer matches the
fault's pattern: the rank, where it can be known; and the module, the data set, the tensor or the operation, with the line of this
program where there is one. Of two ranks that merely differ neither is to blame by itself, so there the pattern is without a rank.
A run without a fault has a finding if any answer has a "!", if who is slow is not answered, or if what the ranks print matches
FINDINGS.

Ranks are forked from one process that has imported PyTorch, and only where times are judged do iterations take any: these are most of
the time otherwise. Prints after each round a line for each fault, and the report where the cause was not named.
"""

import argparse
import atexit
import collections
import datetime
import gc
import itertools
import os
import re
import runpy
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback

FIRST_SCREEN = 40

SLOW = ("Who is slow?", "Who waits for whom?")
HANG = ("Does it hang?",)
SOUND = ("Is this step sound?",)
REPLICAS = ("Do the replicas agree?", *SOUND)
DISTINCT = ("Has each rank its own data?", *SOUND)
ORIGIN = ("Which operation made it?",)
# The questions that a fault is about, and the pattern by which its cause is named, on rank RANK.
FAULTS = {
    "loader": (SLOW, r'rank RANK .*in "data of Loader, torch_faults.py:\d+"|data of Loader, torch_faults.py:\d+: rank RANK'),
    "forward": (SLOW, r'rank RANK .*in "module attention, torch_faults.py:\d+"|module attention, torch_faults.py:\d+: rank RANK'),
    "no_sync": (
        (*HANG, *REPLICAS),
        r'rank RANK .*(it left out one|"dist.(all_gather|reduce_scatter)\w*" called .*"dist.(all_gather|reduce_scatter)\w*" called)',
    ),
    "seed": (DISTINCT, r'THE SAME in tensor "data.batch'),
    "bit": (REPLICAS, r'DIFFER in tensor "parameters\.head\.weight".*rank RANK'),
    "learning_rate": (REPLICAS, r'DIFFER in tensor "state.(options.SGD.0.lr|learning_rates_so_far)".*rank RANK'),
    "eval": (REPLICAS, r'DIFFER in tensor "state.training.[^"]*".*rank RANK'),
    "mask": (ORIGIN, r"iteration 0.*tril \(attention\), .*torch_faults.py:\d+"),
    "never_comes": (HANG, r"rank RANK .*never came(.|\n)*rank RANK stands in never_comes, torch_faults.py:\d+"),
    "clipping": (REPLICAS, r'DIFFER in tensor "state.gradient_norm_at_clipping'),
    "resumed": (SOUND, r"resumed_without_optimizer"),
}
# FSDP2's shards have no replicas, so they are compared with a reference.
BIT_OF_A_SHARD = (ORIGIN, r"iteration 31, on rank RANK alone, .*shard \(head\.weight\)")
FINDINGS = re.compile(
    r"DIFFER|THE SAME|NOT COMPARED|NOT SOUND|slowest rank: rank|all wait for|never came|: rank \d+ \(.*takes|no longer |no optimizer loaded"
)
# Whose iterations take time, and are --iterations; others end behind what sees them, early or behind the check of iteration 100.
TIMED = ("none", "loader", "forward")
SEEN_LATE = ("bit", "learning_rate", "no_sync")
HEALTHY = ("", "evaluation", "checkpoint", "accumulation", "clip", "uneven")


def never_comes():
    while True:
        time.sleep(1)


def train(fault, kind, culprit, iterations, variant, module_seconds):
    import torch
    import torch.distributed as dist
    from torch import nn

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv, self.out = nn.Linear(16, 48), nn.Linear(16, 16)

        def forward(self, x):
            if fault in TIMED:
                longer = 1.2 if fault == "forward" and rank == culprit else 1
                time.sleep(module_seconds * longer * (len(x) / 2.5 if variant == "uneven" else 1))
            q, k, v = self.qkv(x).chunk(3, -1)
            mask = torch.ones(x.shape[1], x.shape[1]).tril(1 if fault == "mask" else 0)
            scores = (q @ k.transpose(-1, -2) / 4).masked_fill(mask == 0, -1e4)
            return self.out(scores.softmax(-1) @ v)

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.attention, self.dropout, self.head = nn.Linear(8, 16), Attention(), nn.Dropout(0.1), nn.Linear(16, 4)

        def forward(self, x):
            x = self.first(x)
            return self.head(self.dropout(x + self.attention(x)).mean(1))

    class Loader(torch.utils.data.IterableDataset):
        def __iter__(self):
            while True:
                if fault in TIMED:
                    time.sleep(0.006 if fault == "loader" and rank == culprit else 0.005)
                yield torch.randn(6, 8), torch.randint(4, ())

    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=20))
    rank = dist.get_rank()
    is_culprit = rank == culprit
    torch.manual_seed(1)
    model = Model()
    if kind == "fsdp2":
        from torch.distributed.fsdp import fully_shard

        wrapped = fully_shard(model)
    else:
        wrapped = nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(wrapped.parameters(), lr=0.01, momentum=0.9)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 10, 0.9)
    path = os.path.join(os.environ["FAULTS_DIR"], f"checkpoint{rank}")
    if fault == "resumed":
        momenta = {i: {"momentum_buffer": torch.ones(p.shape)} for i, p in enumerate(wrapped.parameters())}
        writer = os.fork()  # an earlier run of this program
        if writer == 0:
            torch.save({"optimizer": {"state": momenta, "param_groups": optimizer.state_dict()["param_groups"]}}, path)
            os._exit(0)
        os.waitpid(writer, 0)
        torch.load(path)
    torch.manual_seed(7 if fault == "seed" else 7 + rank)
    loader = iter(torch.utils.data.DataLoader(Loader(), batch_size=4))
    for i in range(iterations):
        if fault == "never_comes" and is_culprit and i == 8:
            never_comes()
        if fault == "eval" and is_culprit:
            wrapped.eval()
        for _ in range(2 if variant == "accumulation" else 1):
            x, y = next(loader)
            if variant == "uneven":
                rows = 1 + (3 * i + rank) % 4
                x, y = x[:rows], y[:rows]
            once = fault == "no_sync" and is_culprit and i == 7
            if kind == "ddp" and (once or fault == "clipping"):
                with wrapped.no_sync():
                    nn.functional.cross_entropy(wrapped(x), y).backward()
                continue
            if once:
                wrapped.set_requires_gradient_sync(False)
            nn.functional.cross_entropy(wrapped(x), y).backward()
            if once:
                wrapped.set_requires_gradient_sync(True)
        if fault == "clipping" and kind == "fsdp2":
            # Each rank's part by its own norm.
            parts = [p.to_local().detach().requires_grad_() for p in wrapped.parameters()]
            for part, p in zip(parts, wrapped.parameters()):
                part.grad = p.grad.to_local()
            nn.utils.clip_grad_norm_(parts, 0.1)
        elif fault == "clipping" or variant == "clip":
            nn.utils.clip_grad_norm_(wrapped.parameters(), 0.1)
        if fault == "clipping" and kind == "ddp":
            for p in wrapped.parameters():
                dist.all_reduce(p.grad)
                p.grad /= dist.get_world_size()
        optimizer.step()
        optimizer.zero_grad()
        schedule.step()
        if fault == "learning_rate" and is_culprit and i == 5:
            schedule.step()
        if fault == "bit" and is_culprit and i == 30:
            held = model.head.weight.data
            held = held.to_local() if hasattr(held, "to_local") else held
            held.view(torch.int32)[-1, 2] ^= 1 << 20
        if variant == "evaluation" and i % 20 == 0:
            wrapped.eval()
            with torch.no_grad():
                wrapped(x)
            wrapped.train()
        if variant == "checkpoint" and i % 50 == 0 and rank == 0:
            torch.save([p.detach().clone() for p in model.parameters() if not hasattr(p, "to_local")], path)


def start(ranks, directory, program, arguments, config=None, observed=True, seconds=240):
    """The outputs of the ranks and their exit statuses. What does not end by itself is ended once it has said why it hangs."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    job = {"WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "FAULTS_DIR": directory}
    job["OTT_RUN_DIR"] = os.path.join(directory, "run")
    command = [*(["--config", config] if config else []), os.path.abspath(program), "--train", *arguments]
    outputs = [os.path.join(directory, f"output{rank}") for rank in range(ranks)]
    running, statuses, failed = [], {}, False
    for rank, output in enumerate(outputs):
        running.append(fork({**job, "RANK": str(rank), "LOCAL_RANK": str(rank)}, output, command, observed))
    processes = list(running)
    end = time.monotonic() + seconds
    while running and time.monotonic() < end:
        time.sleep(0.05)
        for process in list(running):
            ended, status = os.waitpid(process, os.WNOHANG)
            if ended:
                running.remove(process)
                statuses[process] = os.waitstatus_to_exitcode(status)
                failed = failed or status != 0
        if failed:
            end = min(end, time.monotonic() + 3)
            failed = False
        if os.path.exists(os.path.join(directory, "run", "hang.json")):
            end = min(end, time.monotonic() + 2)
    for process in running:
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
    texts = []
    for output in outputs:
        with open(output, encoding="utf-8", errors="replace") as file:
            texts.append(file.read())
    return texts, [statuses.get(process) for process in processes]


def fork(environment, output, arguments, observed):
    """A rank, as `python [-m optim_test_tools] ARGUMENTS` begins and ends, but for the import of PyTorch."""
    sys.stdout.flush()
    process = os.fork()
    if process:
        return process
    status = 1
    try:
        file = os.open(output, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o666)
        os.dup2(file, 1)
        os.dup2(file, 2)
        os.environ.update(environment)
        if observed:
            sys.argv = ["optim_test_tools", *arguments]
            runpy.run_module("optim_test_tools", run_name="__main__", alter_sys=True)
        else:
            sys.argv = list(arguments)
            runpy.run_path(arguments[0], run_name="__main__")
        status = 0
    except SystemExit as end:
        status = end.code or 0
    except BaseException as error:  # noqa: BLE001  as the interpreter would
        sys.last_value = error
        traceback.print_exc()
    finally:
        atexit._run_exitfuncs()
        sys.stdout.flush()
        os._exit(status)


def is_compared(fault, kind):
    return fault == "mask" or (fault == "bit" and kind == "fsdp2")


def observe(fault, kind, ranks, culprit, variant, options):
    """What the ranks printed, and the first screen of the report."""
    directory = tempfile.mkdtemp(prefix="ott_faults_")
    try:
        iterations = options.iterations if fault in TIMED else 102 if fault in SEEN_LATE else 12
        arguments = [kind, str(culprit), str(iterations), variant or "none", str(options.module_ms)]
        config, settings = None, ""
        names = [fault]
        if is_compared(fault, kind):
            iteration = 31 if fault == "bit" else 0
            arguments[2] = str(iteration + 2)
            settings = f"op_log {{ iterations {{ list: {iteration} }} }}"
            names.append("reference")
        elif fault in ("never_comes", "no_sync"):
            settings = "hang { after_seconds: 3 }"
        if settings:
            config = os.path.join(directory, "config.textproto")
            with open(config, "w", encoding="utf-8") as file:
                file.write(settings)
        output = ""
        for name in names:
            os.makedirs(os.path.join(directory, name))
            output += "\n".join(start(ranks, os.path.join(directory, name), __file__, [name, *arguments], config)[0])
        runs = [os.path.join(directory, name, "run") for name in names]
        return output, first_screen(options.ott, runs[0], *(["--reference", runs[1]] if runs[1:] else []))
    finally:
        if options.keep:
            print("kept", directory)
        else:
            shutil.rmtree(directory, ignore_errors=True)


def first_screen(ott, *arguments):
    report = subprocess.run([ott, "report", *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    return "\n".join(report.stdout.decode("utf-8", "replace").split("\n")[:FIRST_SCREEN])


def bad_answers(report):
    """Those that are marked with "!", by their questions."""
    answers = re.findall(r"^([+!?]) (.*\?)\n((?:  .*\n?)*)", report, re.M)
    return {question: text for mark, question, text in answers if mark == "!"}


def main():
    if sys.argv[1:2] == ["--train"]:
        fault, kind, culprit, iterations, variant, module_ms = sys.argv[2:]
        return train(fault, kind, int(culprit), int(iterations), variant, float(module_ms) / 1000)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10, help="of each fault, kind and number of ranks")
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--kinds", nargs="+", default=["ddp", "fsdp2"], choices=["ddp", "fsdp2"])
    parser.add_argument("--only", nargs="*", default=list(FAULTS), choices=list(FAULTS))
    parser.add_argument("--healthy", type=int, default=100, help="runs without a fault")
    parser.add_argument("--iterations", type=int, default=120, help="of trainings whose times are judged, of some 50 ms each")
    parser.add_argument("--module-ms", type=float, default=20, help="of the module that a fault makes 20 %% slower, beside 20 ms of the loader")
    parser.add_argument("--ott", default=shutil.which("ott") or "bazel-bin/tools/ott", help="the command")
    parser.add_argument("--keep", action="store_true", help="keep the run directories")
    parser.add_argument("--show", action="store_true", help="print what each run printed")
    options = parser.parse_args()
    import_for_all()
    seen, named, findings = collections.Counter(), collections.Counter(), 0
    cells = list(itertools.product(options.only, options.kinds, options.ranks))
    for run in range(options.runs):
        for cell in cells:
            is_seen, is_named = look_for(*cell, run, options)
            seen[cell] += is_seen
            named[cell] += is_named
        healthy = range(run * options.healthy // options.runs, (run + 1) * options.healthy // options.runs)
        findings += sum(is_found_in_healthy(number, options) for number in healthy)
        # After each round, so that who has no time for all has some of each.
        print(f"{'fault':16}{'kind':8}{'ranks':>6}{'runs':>6}{'seen':>6}{'cause':>6}")
        for cell in cells:
            fault, kind, ranks = cell
            print(f"{fault:16}{kind:8}{ranks:6}{run + 1:6}{seen[cell]:6}{named[cell]:6}")
        print(f"healthy runs: {healthy.stop}, with a finding: {findings}", flush=True)
    return 0


def import_for_all():
    """Imports what each rank would else import by itself, DistributedDataParallel's and FSDP2's parts too."""
    os.environ["OMP_NUM_THREADS"] = "1"
    import torch

    if hasattr(torch, "compile"):  # from 2.0 on
        import torch._dynamo  # noqa: F401
        import torch.distributed.fsdp  # noqa: F401

    import optim_test_tools.torch  # noqa: F401

    gc.collect()
    gc.freeze()  # no rank looks through it again, which would copy it


def look_for(fault, kind, ranks, run, options):
    """Whether the report tells of this fault, and whether of its cause."""
    questions, pattern = BIT_OF_A_SHARD if fault == "bit" and kind == "fsdp2" else FAULTS[fault]
    culprit = 1 + run % (ranks - 1)
    output, report = observe(fault, kind, ranks, culprit, "", options)
    # Two ranks that differ have no majority, so neither is to blame.
    is_known = ranks > 2 or fault in ("loader", "forward", "never_comes")
    blamed = rf"rank {culprit}\b" if is_known else r"(ranks? \d+|no majority)"
    found = [text for question, text in bad_answers(report).items() if question in questions]
    is_named = any(re.search(pattern.replace("rank RANK", blamed), text) for text in found)
    if options.show or not is_named:
        print(f"run {run} of {fault} ({kind}, {ranks} ranks, rank {culprit}):\n{output}\n{report}", flush=True)
    return bool(found), is_named


def is_found_in_healthy(number, options):
    """Whether a run without a fault tells of one."""
    kind, ranks = options.kinds[number % len(options.kinds)], options.ranks[number // 2 % len(options.ranks)]
    variant = HEALTHY[number // 4 % len(HEALTHY)]
    output, report = observe("none", kind, ranks, -1, variant, options)
    is_found = bool(bad_answers(report)) or "Who is slow?" not in report or FINDINGS.search(output) is not None
    if options.show or is_found:
        print(f"healthy run {number} ({kind}, {ranks} ranks, {variant or 'as it is'}):\n{output}\n{report}", flush=True)
    return is_found


if __name__ == "__main__":
    sys.exit(main())

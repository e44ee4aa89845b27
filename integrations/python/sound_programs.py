"""Small training programs of many kinds, healthy ones and the same with one line that breaks them, and what is found in them.

    sound_programs.py [--seeds 10] [--only NAME...] [--healthy 5] [--show]
    sound_programs.py --cost 12

Each is run under observation, without a configuration but for where it writes; those of several ranks on 2 and 4 ranks of this
machine. Prints for each planted fault of how many runs it was found within two iterations, by the right rule and name, and how many
of the healthy runs have a finding. Ends with 1 where a fault was missed or a healthy run has one.
"""

import argparse
import collections
import datetime
import gc
import glob
import importlib
import inspect
import itertools
import json
import os
import shutil
import signal
import socket
import statistics
import sys
import tempfile
import time
import traceback
import warnings

import torch
from torch import nn
from torch.nn import functional as F

import optim_test_tools as ott

import sound_overlooked
import sound_ranks
from sound_common import new_directory, set_directory, start_observation

warnings.filterwarnings("ignore")
IS_OLD = int(torch.__version__.split(".")[0]) < 2
LACKS = "lacks"  # a file that says so
FAULTS = []


def programs_of(*names):
    """Returns the functions of the modules sound_NAME whose first parameter is a fault; what they plant goes into FAULTS."""
    found = []
    for module in [importlib.import_module(f"sound_{name}") for name in names]:
        functions = [f for f in vars(module).values() if inspect.isfunction(f) and f.__module__ == module.__name__]
        found += [f for f in functions if [*inspect.signature(f).parameters][:1] == ["fault"]]
        FAULTS.extend(getattr(module, "FAULTS", []))
    return found


ALONE = programs_of("planted", "healthy", "documented", "overlooked", "networks", "layers", "steps", "feeds", "lookalikes", "borders")
TOGETHER = programs_of("ranks", "more_ranks", "ranks_overlooked")


def lacks(error):
    """Whether PyTorch is too old for a program, which ended by this error."""
    return IS_OLD and isinstance(error, (AttributeError, ImportError, TypeError, ValueError))


def run_alone(jobs, at_once=4):
    """What was found in each of the jobs, (program, fault, seed), as text, by processes that are forked, as PyTorch is imported here by now.

    None: PyTorch is too old for it. A process waits most of its time for the end of its run.
    """
    running, found = {}, [""] * len(jobs)
    for number, (program, fault, seed) in enumerate(jobs):
        if len(running) == at_once:
            end_one(running, found)
        directory = new_directory()
        sys.stdout.flush()
        child = os.fork()
        if not child:
            run_in_child(program, fault, seed, directory)
        running[child] = (number, directory)
    while running:
        end_one(running, found)
    return found


def end_one(running, found):
    """Waits for one of the processes, and puts what was found where its job is."""
    child, _ = os.wait()
    number, directory = running.pop(child)
    with open(os.path.join(directory, "output"), encoding="utf-8", errors="replace") as file:
        text = file.read()
    found[number] = text[text.index("Traceback") :] if "Traceback" in text else findings_of(directory)
    if os.path.exists(os.path.join(directory, LACKS)):
        found[number] = None
    shutil.rmtree(directory)


def run_in_child(program, fault, seed, directory):
    """Never returns."""
    try:
        signal.alarm(120)
        with open(os.path.join(directory, "output"), "w", encoding="utf-8") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
        torch.manual_seed(seed)
        start_observation()
        program(fault)
        ott.torch.finish()
    except BaseException as error:  # noqa: BLE001  as the interpreter would
        traceback.print_exc()
        if lacks(error):
            open(os.path.join(directory, LACKS), "w").close()
    finally:
        os._exit(0)


def import_all():
    """Imports what each child would else import by itself, with its first step; then garbage collection has nothing to look at."""
    importlib.import_module("optim_test_tools.torch")
    model = nn.Linear(1, 1)
    model(torch.ones(1, 1)).backward()
    torch.optim.Adam(model.parameters()).step()
    gc.collect()
    gc.freeze()


def findings_of(directory):
    from optim_test_tools import _ott

    directory = max(glob.glob(os.path.join(directory, "attempt_*")), default=directory)  # of a program that trains twice
    if not os.path.exists(os.path.join(directory, "rank_00000", "sound.json")):
        return "no record: nothing was looked at"
    found = _ott.describe_unsound(directory)
    for path in glob.glob(os.path.join(directory, "rank_*", "sound.json")):
        with open(path, encoding="utf-8") as file:
            record = json.load(file)
        ended = [rule["not_checked"] for rule in record["rules"] if "the checks ended" in rule.get("not_checked", "")]
        if not found and (ended or record["num_iterations"] < 3):
            return f"not looked at: {ended[:1]} {record['num_iterations']} iterations"
    return found


def run_together(jobs, ranks, seed):
    """What was found in each of the jobs, (program, fault), by ranks that are forked once for all of them. None: as of run_alone()."""
    if not jobs:
        return []
    directory = tempfile.mkdtemp(prefix="ott_sound_")
    fork_ranks(ranks, directory, 60 + 20 * len(jobs), 20, lambda rank: run_jobs(jobs, rank, ranks, directory, seed))
    found = []
    for number in range(len(jobs)):
        path = os.path.join(directory, str(number))
        is_lacking = os.path.exists(os.path.join(directory, f"{LACKS}{number}"))
        found.append(None if is_lacking else findings_of(path) if os.path.exists(path) else "not run")
    shutil.rmtree(directory)
    return found


def run_jobs(jobs, rank, ranks, directory, seed):
    import torch.distributed as dist

    sound_ranks.wrap_transport()
    for number, (program, fault) in enumerate(jobs):
        set_directory(os.path.join(directory, str(number)))
        torch.manual_seed(seed)
        start_observation()
        try:
            program(fault, rank, (seed + number) % ranks)
        except Exception as error:
            if not lacks(error):
                raise
            open(os.path.join(directory, f"{LACKS}{number}"), "w").close()
        ott.torch.finish()
        dist.barrier()


def fork_ranks(ranks, directory, seconds, patience, body):
    """Calls body(rank) in as many processes, which found together, and waits for them; patience: seconds of a collective."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    sys.stdout.flush()
    children = [fork_rank(rank, ranks, port, directory, seconds, patience, body) for rank in range(ranks)]
    for child in children:
        os.waitpid(child, 0)


def fork_rank(rank, ranks, port, directory, seconds, patience, body):
    child = os.fork()
    if child:
        return child
    try:
        signal.alarm(seconds)
        import torch.distributed as dist

        errors = os.dup(2)
        with open(os.path.join(directory, f"output{rank}"), "w", encoding="utf-8") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
        os.environ.update({"RANK": str(rank), "WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)})
        dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=patience))
        body(rank)
    except BaseException:  # noqa: BLE001  as the interpreter would
        traceback.print_exc()
    finally:
        with open(os.path.join(directory, f"output{rank}"), encoding="utf-8", errors="replace") as file:
            text = file.read()
        if "Traceback" in text:
            os.write(errors, text.encode())
        os._exit(0)


def is_found(text, rule, name, last, ranks, culprit):
    """Whether a line of the findings is of the rule, names it in time, and on the rank where it was planted."""
    for line in text.splitlines():
        if not line.startswith(f"{rule} since iteration "):
            continue
        iteration = int(line.split(" since iteration ")[1].split()[0].rstrip(":,"))
        blamed = culprit is None or ranks == 2 or f"on rank {culprit}:" in line
        if iteration <= last and name in line and blamed:
            return True
    return False


def measure(iterations):
    """Prints the share of time that the checks take of a transformer of 100 M parameters, alone and with two ranks."""
    failed = 0
    for ranks in (1, 2):
        directory = tempfile.mkdtemp(prefix="ott_sound_")
        path = os.path.join(directory, "rows")
        fork_ranks(ranks, directory, 600, 300, lambda rank: measure_rank(iterations, rank, ranks, directory, path))
        with open(path, encoding="utf-8") as file:
            rows = json.load(file)[2:]  # without those that are looked into
        shutil.rmtree(directory)
        whole = statistics.median(row[0] for row in rows)
        light, heavy = (statistics.median(row[1] for row in rows if row[2] == looks) for looks in (False, True))
        tenth = light + (heavy - light) / 10
        print(f"{ranks} {'rank' if ranks == 1 else 'ranks'}, 100 M parameters, iteration {whole:.3f} s: where values are read {heavy * 1e3:.1f} ms, "
              f"{heavy / whole:.2%} of it; in every 10th {tenth / whole:.2%}; never {light / whole:.2%}", flush=True)
        failed |= heavy / whole > 0.02
    return int(failed)


def measure_rank(iterations, rank, ranks, directory, path):
    set_directory(os.path.join(directory, "run"))
    layer = nn.TransformerEncoderLayer(768, 12, 3072, 0.0, batch_first=True)
    model = nn.Sequential(nn.Embedding(20000, 768), nn.TransformerEncoder(layer, 12, enable_nested_tensor=False), nn.Linear(768, 20))
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4)
    wrapped = nn.parallel.DistributedDataParallel(model) if ranks > 1 else model
    observer = ott.torch.observe(wrapped, optimizer, config={"run_dir": os.path.join(directory, "run"), "stopwatch": {}})
    rows = []
    for i in range(iterations):
        observer.sound.read_values_every(2)
        begin, spent = time.perf_counter(), observer.sound.seconds
        optimizer.zero_grad()
        F.cross_entropy(wrapped(torch.randint(20000, (8, 128))).flatten(0, 1), torch.randint(20, (1024,))).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        rows.append((time.perf_counter() - begin, observer.sound.seconds - spent, i % 2 == 0))
    ott.torch.finish()
    if rank == 0:
        with open(path, "w", encoding="utf-8") as file:
            json.dump(rows, file)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10, help="runs of each planted fault")
    parser.add_argument("--healthy", type=int, default=5, help="runs of each healthy program")
    parser.add_argument("--first-seed", type=int, default=0, help="so that runs can be divided")
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--only", nargs="*", help="programs or faults")
    parser.add_argument("--cost", type=int, metavar="ITERATIONS", help="measure what the checks take instead, at least 4")
    parser.add_argument("--show", action="store_true", help="print what was found")
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.cost:
        return measure(options.cost)
    import_all()

    def is_wanted(program, fault=""):
        return not options.only or program.__name__ in options.only or fault in options.only

    def judge(program, fault, rule, name, last, text, ranks, culprit, run):
        nonlocal skipped
        # Missing gradients need to know which tensors share memory.
        is_skipped = text is None or (IS_OLD and ranks == 1 and rule == "missing_gradient")
        ok = is_skipped or is_found(text, rule, name, last, ranks, culprit)
        skipped += is_skipped
        found[program, fault] += ok
        if not is_skipped and (options.show or not ok):
            print(f"{program.__name__} {fault}, {run}:\n{text}", flush=True)

    def judge_healthy(program, text, run):
        nonlocal runs, findings
        runs += text is not None
        if text:
            findings += 1
            print(f"healthy {program.__name__}, {run}:\n{text}", flush=True)

    found, skipped, runs, findings = collections.Counter(), 0, 0, 0
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    healthy_seeds = range(options.first_seed, options.first_seed + options.healthy)
    planted = [job for job in FAULTS if is_wanted(*job[:2])]
    # Those of several ranks first: forked before this process has threads.
    together = [job for job in planted if job[0] in TOGETHER]
    for ranks, seed in itertools.product(options.ranks, seeds):
        for number, (job, text) in enumerate(zip(together, run_together([job[:2] for job in together], ranks, seed))):
            culprit = (seed + number) % ranks if any(part in job[1] for part in sound_ranks.ON_ONE_RANK) else None
            judge(*job, text, ranks, culprit, f"{ranks} ranks, seed {seed}")
    healthy = [(program, "") for program in TOGETHER if is_wanted(program)]
    for ranks, seed in itertools.product(options.ranks, healthy_seeds):
        for (program, _), text in zip(healthy, run_together(healthy, ranks, seed)):
            judge_healthy(program, text, f"{ranks} ranks, seed {seed}")
    alone = [(job, seed) for job in planted if job[0] in ALONE for seed in seeds]
    for (job, seed), text in zip(alone, run_alone([(*job[:2], seed) for job, seed in alone])):
        judge(*job, text, 1, None, f"seed {seed}")
    jobs = [(program, "", seed) for program in ALONE if is_wanted(program) for seed in healthy_seeds]
    for (program, _, seed), text in zip(jobs, run_alone(jobs)):
        judge_healthy(program, text, f"seed {seed}")
    failed = 0
    for program, fault, rule, *_ in planted:
        total = options.seeds * (len(options.ranks) if program in TOGETHER else 1)
        print(f"{program.__name__:26}{fault:34}{rule:32}{found[program, fault]} of {total}", flush=True)
        failed += found[program, fault] < total
    print("no rule finds: " + ", ".join(f"{program.__name__} {fault}" for program, fault in sound_overlooked.WITHOUT_A_RULE))
    if skipped:
        print(f"for which PyTorch {torch.__version__} is too old: {skipped} runs of planted faults")
    print(f"planted: {len(planted)} faults, not found in all runs: {failed}")
    print(f"healthy: {runs} runs of {len(ALONE) + len(TOGETHER)} programs, with a finding: {findings}")
    return 1 if failed or findings else 0


if __name__ == "__main__":
    sys.exit(main())

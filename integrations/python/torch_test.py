"""Small trainings on two ranks, each run as it is and again under observation: the bits must be the same, and what was
observed is looked at. Runs under PyTorch 1.13 as under 2.13; what only one of them has is left out under the other."""

import contextlib
import glob
import hashlib
import io
import json
import os
import shutil
import struct
import sys
import tempfile
import time
import unittest
import unittest.mock
import warnings

import torch
import torch.distributed as dist
from torch import nn

import optim_test_tools as ott
from optim_test_tools.torch import _hooks
from optim_test_tools.torch import _collectives

warnings.filterwarnings("ignore")
torch.set_num_threads(1)
dist.init_process_group("gloo")
RANK, WORLD = dist.get_rank(), dist.get_world_size()
IS_2 = int(torch.__version__.split(".")[0]) >= 2
DIRECTORY = os.path.join(os.environ.get("TEST_TMPDIR", tempfile.gettempdir()), f"torch_{os.environ['MASTER_PORT']}")


class Block(nn.Module):
    def __init__(self, recompute=None):
        super().__init__()
        self.recompute = recompute
        self.inner = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Dropout(0.2))
        self.head = nn.Linear(16, 4)

    def forward(self, x):
        if self.recompute is None:
            return self.head(self.inner(x))
        from torch.utils.checkpoint import checkpoint

        return self.head(checkpoint(self.inner, x, use_reentrant=self.recompute))


def make(recompute=None, **ddp):
    torch.manual_seed(3)
    model = nn.parallel.DistributedDataParallel(Block(recompute), **ddp)
    torch.manual_seed(10 + RANK)
    return model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)


def batches(number, workers=0):
    data = torch.utils.data.TensorDataset(torch.randn(number * 4, 16), torch.randint(4, (number * 4,)))
    return torch.utils.data.DataLoader(data, batch_size=4, num_workers=workers, shuffle=True)


def digest(*models):
    held = [p for model in models for p in model.parameters()] + [torch.get_rng_state()]
    held = [p.to_local() if hasattr(p, "to_local") else p for p in held]
    return hashlib.sha256(b"".join(p.detach().contiguous().numpy().tobytes() for p in held)).hexdigest()


def loss_of(model, batch):
    x, y = batch
    return nn.functional.cross_entropy(model(x), y)


def learn(model, optimizer, number):
    for batch in batches(number):
        optimizer.zero_grad()
        loss_of(model, batch).backward()
        optimizer.step()


def learn_by_closures(model, optimizer, iterations):
    for batch in batches(iterations):

        def closure():
            optimizer.zero_grad()
            loss = loss_of(model, batch)
            loss.backward()
            return loss

        optimizer.step(closure)


def reduce_nothing(state, bucket):
    """A communication hook that leaves each rank its own gradients."""
    future = torch.futures.Future()
    future.set_result(bucket.buffer())
    return future


class Observed:
    """A run under observation, and what it left."""

    def __init__(self, name, config=None):
        self.dir = os.path.join(DIRECTORY, name)
        self.config = {"stopwatch": {}, "run_dir": self.dir, **(config or {})}

    def __enter__(self):
        ott.torch.observe(config=self.config)
        return self

    def __exit__(self, *exception):
        ott.torch.finish()
        dist.barrier()

    def measurements(self):
        with open(os.path.join(self.dir, f"rank_{RANK:05d}", "stopwatch.json"), encoding="utf-8") as file:
            stats = json.load(file)
        return int(stats["num_measured_iters"]), {m["name"]: int(m["per_interval"]["count"]) for m in stats["measurements"]}

    def verdicts(self):
        """Returns the lines of the cross-checks of this rank."""
        lines = []
        for path in glob.glob(os.path.join(self.dir, f"rank_{RANK:05d}", "cross_check.jsonl")):
            with open(path, encoding="utf-8") as file:
                lines += file.readlines()
        return lines


class ObservedTestCase(unittest.TestCase):
    def check(self, name, train, iterations, config=None, **counts):
        """Trains as it is and observed; iterations and measurements must be as often as said."""
        alone = train()
        observed = Observed(name, config)
        with observed:
            again = train()
        self.assertEqual(alone, again, "observation changed the training")
        measured, names = observed.measurements()
        self.assertEqual(measured, iterations)
        for measurement, count in counts.items():
            self.assertEqual(names.get(measurement.replace("__", "."), 0), count, (measurement, names))
        self.assertTrue(os.path.getsize(os.path.join(observed.dir, f"rank_{RANK:05d}", "flight")) > 0)
        return observed

    def check_sound(self, name, train, iterations, config=None, **counts):
        observed = self.check(name, train, iterations, config, **counts)
        self.assertEqual(ott._ott.describe_unsound(observed.dir), "")
        return observed


class TorchTest(ObservedTestCase):
    def test_parts_of_an_iteration_are_named(self):
        def train():
            model, optimizer = make()
            for i, batch in enumerate(batches(5)):
                optimizer.zero_grad()
                loss_of(model, batch).backward()
                nn.utils.clip_grad_norm_(model.parameters(), 0.5)
                optimizer.step()
                if i == 2:
                    model.eval()
                    with torch.no_grad():
                        model(batch[0])
                    model.train()
                    torch.save(model.module.state_dict(), os.path.join(DIRECTORY, f"checkpoint{RANK}"))
            return digest(model)

        self.check(
            "parts", train, 5, forward=5, backward=5, clipping=5, optimizer=5, evaluation=1, checkpoint=1, dist__gradients=5
        )
        with open(os.path.join(DIRECTORY, f"checkpoint{RANK}"), "rb") as file:
            self.assertNotIn(b"optim_test_tools", file.read())

    def test_a_loader_that_is_also_evaluated_with_goes_on_to_feed_the_training(self):
        class Looked(torch.utils.data.TensorDataset):
            pass

        def train():
            model, optimizer = make()
            loader = torch.utils.data.DataLoader(Looked(*(torch.cat(part) for part in zip(*batches(5)))), batch_size=4)
            steps = 0
            for batch in loader:
                optimizer.zero_grad()
                loss_of(model, batch).backward()
                optimizer.step()
                steps += 1
                with torch.no_grad():
                    model.module(next(iter(loader))[0])
            return digest(model), steps

        observed = Observed("looked_at")
        with observed:
            _, steps = train()
        _, names = observed.measurements()
        data = next(count for name, count in names.items() if name.startswith("data of Looked"))
        self.assertGreaterEqual(data, steps, names)

    def test_micro_steps_are_of_one_iteration(self):
        def train():
            model, optimizer = make()
            for i, batch in enumerate(batches(6)):
                if i % 3 < 2:
                    with model.no_sync():
                        loss_of(model, batch).backward()
                    continue
                loss_of(model, batch).backward()
                optimizer.step()
                optimizer.zero_grad()
            return digest(model)

        self.check("accumulation", train, 2, forward=6, backward=6, optimizer=2, dist__gradients=2)

    def test_recomputed_forward_passes_are_part_of_the_backward_pass(self):
        for reentrant in (False, True):

            def train():
                model, optimizer = make(reentrant, find_unused_parameters=False)
                for batch in batches(3):
                    x = batch[0].requires_grad_()
                    optimizer.zero_grad()
                    loss_of(model, (x, batch[1])).backward()
                    optimizer.step()
                return digest(model)

            self.check(f"recomputation{reentrant}", train, 3, forward=3, backward=3)

    def test_closures_of_an_optimizer(self):
        def train():
            torch.manual_seed(4)
            model = Block()
            optimizer = torch.optim.LBFGS(model.parameters(), max_iter=3)
            learn_by_closures(model, optimizer, 3)
            return digest(model)

        observed = self.check("closures", train, 3)
        _, names = observed.measurements()
        self.assertGreaterEqual(names["forward"], 3)
        self.assertEqual(names["forward"], names["backward"])

    def test_an_exception_in_the_loop_is_the_trainings_own(self):
        def train():
            torch.manual_seed(5)
            model = Block()
            optimizer = torch.optim.Adam(model.parameters())
            caught = 0
            for i, batch in enumerate(batches(6)):
                try:
                    optimizer.zero_grad()
                    loss_of(model, (batch[0][:, : 8 if i == 3 else 16], batch[1])).backward()
                except RuntimeError:
                    caught += 1
                    continue
                optimizer.step()
            self.assertEqual(caught, 1)
            return digest(model)

        self.check("exceptions", train, 5, forward=6, backward=5, optimizer=5)

    def test_an_error_of_the_observation_ends_it_and_not_the_training(self):
        from optim_test_tools.torch import _checkpoints, _collectives, _loaders, _modules, _operations

        def train():
            model, optimizer = make()
            for i, batch in enumerate(batches(5)):
                optimizer.zero_grad()
                loss_of(model, batch).backward()
                dist.barrier()
                optimizer.step()
                if i == 0:
                    torch.save({"x": 1}, os.path.join(DIRECTORY, f"any{RANK}"))
                    self.assertEqual(torch.load(os.path.join(DIRECTORY, f"any{RANK}")), {"x": 1})
            return digest(model)

        alone = train()
        for owner, name in (
            (_checkpoints.Checkpoints, "taken"),
            (_checkpoints.Checkpoints, "read"),
            (_collectives.Collectives, "_prepare"),
            (_loaders.Loaders, "name_of"),
            (_modules.Modules, "_make_scope"),
            (_operations._Mode, "_place"),
        ):
            with self.subTest(name), unittest.mock.patch.object(owner, name, side_effect=RuntimeError("ours")) as broken:
                said = io.StringIO()
                with contextlib.redirect_stderr(said), Observed(f"broken{name}", {"op_log": {"iterations": {"list": [4]}}}):
                    if name == "read":
                        torch.load(os.path.join(DIRECTORY, f"any{RANK}"))
                    if name == "taken":
                        torch.optim.SGD([torch.ones(1)], lr=1).load_state_dict(torch.optim.SGD([torch.ones(1)], lr=1).state_dict())
                    self.assertEqual(alone, train())
                broken.assert_called()
                self.assertEqual(said.getvalue().count("no longer observed: RuntimeError: ours"), 1, said.getvalue())

    def test_checkpoints_and_modules_of_other_kinds(self):
        path = os.path.join(DIRECTORY, f"generator{RANK}")

        def train():
            torch.save({"generator": {"state": torch.arange(3), "param_groups": None}}, path)
            torch.load(path)
            torch.manual_seed(16)
            model = nn.Sequential(torch.jit.script(nn.Linear(16, 8)), nn.Linear(8, 4))
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            learn(model, optimizer, 5)
            return digest(model)

        self.check("other_kinds", train, 5, forward=5, backward=5, optimizer=5)

    def test_workers_of_a_loader(self):
        def train():
            model, optimizer = make()
            for batch in batches(4, workers=1):
                optimizer.zero_grad()
                loss_of(model, batch).backward()
                optimizer.step()
            return digest(model)

        self.check("workers", train, 4, forward=4)

    def test_an_iteration_ends_with_the_last_of_several_optimizers(self):
        def train():
            torch.manual_seed(6)
            first, second = Block(), Block()
            optimizers = [torch.optim.SGD(m.parameters(), lr=0.1) for m in (first, second)]
            for batch in batches(4):
                for model, optimizer in zip((first, second), optimizers):
                    optimizer.zero_grad()
                    loss_of(model, batch).backward()
                    optimizer.step()
            return digest(first, second)

        # The first iteration ends as a second training pass begins, and has the first optimizer alone.
        observed = self.check("several", train, 5, config={"dump": {"iterations": {"list": [1]}}}, optimizer=8)
        tensors = ott.load_dump(os.path.join(observed.dir, f"rank_{RANK:05d}", "dumps", "1"), "numpy").tensors
        self.assertIn("Block.head.weight", tensors["parameters"])
        self.assertIn("head.weight", tensors["parameters"])

    def test_mixed_precision(self):
        def train():
            model, optimizer = make()
            scaler = None
            if hasattr(torch, "amp") and hasattr(torch.amp, "GradScaler"):
                scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10)
            for i, batch in enumerate(batches(4)):
                optimizer.zero_grad()
                with torch.autocast("cpu", dtype=torch.bfloat16):
                    loss = loss_of(model, batch)
                if scaler is None:
                    loss.backward()
                    optimizer.step()
                    continue
                # The scaler leaves out the step of an infinite gradient.
                scaler.scale(loss * (float("inf") if i == 1 else 1.0)).backward()
                scaler.step(optimizer)
                scaler.update()
            return digest(model)

        observed = self.check("mixed", train, 4, config={"dump": {"iterations": {"list": [1, 2]}}}, backward=4)
        state = [
            ott.load_dump(os.path.join(observed.dir, f"rank_{RANK:05d}", "dumps", i), "numpy").tensors["state"] for i in "12"
        ]
        # An iteration ends before update().
        if IS_2:
            self.assertEqual([float(s["scaler"]["0.scale"]) for s in state], [2.0**10, 2.0**9])

    def test_every_collective_is_measured_with_its_group(self):
        def train():
            torch.manual_seed(7)
            model = Block()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            alone = [dist.new_group([rank]) for rank in range(WORLD)][RANK]
            for batch in batches(3):
                optimizer.zero_grad()
                loss_of(model, batch).backward()
                works = [dist.all_reduce(p.grad, async_op=True) for p in model.parameters()]
                for work in works:
                    work.wait()
                dist.broadcast(batch[0], 0)
                dist.barrier()
                dist.all_reduce(torch.ones(2), group=alone)
                if RANK == 0:
                    dist.send(torch.ones(3), 1)
                elif RANK == 1:
                    dist.recv(torch.ones(3), 0)
                gathered = [None] * WORLD
                dist.all_gather_object(gathered, RANK)
                optimizer.step()
            return digest(model)

        counts = {"dist.all_reduce (async)": 12, f"dist.all_reduce of ranks {RANK}": 3, "dist.send": 3 if RANK == 0 else 0}
        self.check("collectives", train, 3, dist__wait=12, dist__broadcast=3, dist__barrier=3, dist__all_gather_object=3, **counts)

    def test_a_group_has_its_own_ranks_where_another_one_was(self):
        class Group:
            def __init__(self, ranks):
                self.ranks = ranks

        collectives = _collectives.Collectives(unittest.mock.Mock())
        functions = {"group_ranks": lambda group: group.ranks, "id": lambda group: 7}
        with unittest.mock.patch.multiple(_collectives, create=True, **functions):
            with unittest.mock.patch.object(dist, "get_backend", lambda group: "gloo"):
                groups = [collectives._group_of((), {"group": Group(ranks)}, False) for ranks in ([0], [1])]
        self.assertEqual(groups, [("0", [0], True), ("1", [1], True)])

    def test_state_that_is_no_tensor_is_dumped_and_compared(self):
        def train():
            model, optimizer = make()
            for i, batch in enumerate(batches(3)):
                if i == 2 and RANK == 1:
                    optimizer.param_groups[0]["lr"] = 0.05
                optimizer.zero_grad()
                loss_of(model, batch).backward()
                optimizer.step()
            return None

        config = {
            "dump": {"iterations": {"list": [1]}},
            "cross_check": {"iterations": {}, "replicated": ["state.*", "parameters.*"], "distinct": ["data.*"]},
        }
        observed = self.check("state", train, 3, config=config)
        tensors = ott.load_dump(os.path.join(observed.dir, f"rank_{RANK:05d}", "dumps", "1"), "numpy").tensors
        self.assertEqual(float(tensors["state"]["options"]["SGD.0.lr"]), 0.1)
        self.assertTrue(tensors["state"]["training"]["inner.2"])
        self.assertEqual(int(tensors["state"]["counts"]["reductions"]), 2)
        self.assertEqual(tensors["optimizer"]["head.bias"]["momentum_buffer"].shape, (4,))
        for name in ("head.weight", "inner.0.bias"):
            self.assertIn(name, tensors["grads"])
            self.assertIn(name, tensors["parameters"])
        self.assertEqual(list(tensors["rng"]), ["torch"])  # nothing drew from Python's
        self.assertIn("0", tensors["loss"])
        verdicts = []
        for path in glob.glob(os.path.join(observed.dir, "rank_00000", "cross_check.jsonl")):
            with open(path, encoding="utf-8") as file:
                verdicts = [json.loads(line) for line in file]
        wrong = [v for v in verdicts if "DIFFER" in v["outcome"]]
        self.assertEqual({int(v["iteration"]) for v in wrong}, {2}, verdicts)
        self.assertIn("state.options.SGD.0.lr", json.dumps(wrong))

    def test_a_rank_that_stands_leaves_the_stacks_of_its_threads(self):
        directory = os.path.join(DIRECTORY, "hang")

        def wait_for_the_verdict():
            stacks = os.path.join(directory, "rank_00001", "stacks.txt")
            deadline = time.monotonic() + 60
            while not (os.path.exists(stacks) and os.path.exists(os.path.join(directory, "hang.json"))):
                self.assertLess(time.monotonic(), deadline, "nobody asked why it hangs")
                time.sleep(0.05)

        def train():
            model, optimizer = make()
            for i, batch in enumerate(batches(4)):
                # DistributedDataParallel itself waits for all as the second forward pass begins, and tells nobody.
                if i == 2 and RANK == 1 and os.path.exists(directory):
                    wait_for_the_verdict()
                optimizer.zero_grad()
                loss_of(model, batch).backward()
                optimizer.step()
            return digest(model)

        self.check("hang", train, 4, config={"hang": {"after_seconds": 1}})
        with open(os.path.join(directory, "hang.json"), encoding="utf-8") as file:
            verdict = json.load(file)
        self.assertEqual(verdict["culprits"], [1])
        self.assertIn("dist.gradients", json.dumps(verdict["causes"]))
        with open(os.path.join(directory, "rank_00001", "stacks.txt"), encoding="utf-8") as file:
            self.assertIn("in wait_for_the_verdict", file.read())

    def test_operations_are_logged_with_module_and_line(self):
        def train():
            model, optimizer = make()
            learn(model, optimizer, 1)
            torch._foreach_mul([torch.ones(1) for _ in range(10)], 2)
            torch.empty(0).set_(torch.ones(1))
            learn(model, optimizer, 1)
            return digest(model)

        observed = self.check("operations", train, 2, config={"op_log": {"iterations": {"list": [1]}}})
        with open(os.path.join(observed.dir, f"rank_{RANK:05d}", "op_log.bin"), "rb") as file:
            log = file.read()
        for word in (b"addmm", b"inner.0", b"head.weight", b"torch_test.py", b"reduce_gradient", b"input9", b"backward", b"batch"):
            self.assertIn(word, log)
        self.assertNotIn(b"set_", log)
        # Updates of several parameters are open at once.
        self.assertIn(b"sgd" + struct.pack("<I", len("head.weight")) + b"head.weight", log)

    def test_parameters_are_offered_to_be_moved_by_rounding(self):
        def train():
            model, optimizer = make()
            for batch in batches(1):
                loss_of(model, batch).backward()
                optimizer.step()
            return digest(model)

        alone = train()
        with Observed("perturbed", {"perturb": {"seed": 1, "paths": "parameters.head.*"}}):
            self.assertNotEqual(alone, train())

    @unittest.skipUnless(IS_2, "PyTorch 1.13 has no torch.compile")
    def test_compiling_breaks_no_graph(self):
        import torch._dynamo

        # A compiled model tells the observation not to look into modules.
        self.addCleanup(torch._dynamo.utils.counters.clear)

        def train():
            torch._dynamo.reset()
            torch._dynamo.utils.counters.clear()
            torch.manual_seed(8)
            model = Block()
            whole, inner = torch.compile(model, backend="eager"), Block()
            inner.inner.compile(backend="eager")
            optimizer = torch.optim.SGD([*model.parameters(), *inner.parameters()], lr=0.1)
            for batch in batches(3):
                optimizer.zero_grad()
                (loss_of(whole, batch) + loss_of(inner, batch)).backward()
                optimizer.step()
            counters = torch._dynamo.utils.counters
            return digest(model, inner), dict(counters["graph_break"]), dict(counters["frames"]), dict(counters["stats"])

        self.check("compiled", train, 3, forward=6, backward=3)

    @unittest.skipUnless(IS_2, "PyTorch 1.13 has no FSDP2")
    def test_fsdp2(self):
        from torch.distributed.fsdp import fully_shard

        def train():
            torch.manual_seed(9)
            model = Block()
            fully_shard(model.inner)
            fully_shard(model)
            torch.manual_seed(20 + RANK)
            optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
            for batch in batches(3):
                optimizer.zero_grad()
                loss_of(model, batch).backward()
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
            return digest(model)

        observed = self.check("fsdp2", train, 3, config={"dump": {"iterations": {"list": [1]}}}, forward=3, backward=3)
        _, names = observed.measurements()
        self.assertTrue(any("all_gather" in name for name in names), names)
        self.assertTrue(any("reduce_scatter" in name for name in names), names)
        self.assertEqual([json.loads(verdict)["mode"] for verdict in observed.verdicts()], ["REPLICAS", "DISTINCT"])


    @unittest.skipUnless(IS_2, "PyTorch 1.13 has no FSDP2")
    def test_distributed_checkpoints(self):
        import torch.distributed.checkpoint as dcp
        from torch.distributed.checkpoint.state_dict import get_model_state_dict
        from torch.distributed.fsdp import fully_shard

        def train():
            torch.manual_seed(13)
            model = fully_shard(Block())
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            for i, batch in enumerate(batches(4)):
                optimizer.zero_grad()
                loss_of(model, batch).backward()
                optimizer.step()
                if i % 2:
                    path = os.path.join(DIRECTORY, f"distributed_checkpoint{i}")
                    dcp.save(get_model_state_dict(model), checkpoint_id=path)
                    dcp.load(get_model_state_dict(model), checkpoint_id=path)
            return digest(model)

        self.check("distributed_checkpoints", train, 4, forward=4, checkpoint=4)

    def test_modules_and_datasets_are_named_with_their_lines(self):
        def train():
            model, optimizer = make(False)
            learn(model, optimizer, 5)
            return digest(model)

        observed = self.check("modules", train, 5)
        _, names = observed.measurements()
        # From the fourth iteration on; recomputed passes do not count.
        names = {name: count for name, count in names.items() if count > 0}
        modules = {name: count for name, count in names.items() if name.startswith("module ")}
        self.assertEqual(sorted(name.split()[1] for name in modules), ["head,", "inner,", "inner.0,", "inner.1,", "inner.2,"])
        self.assertEqual(set(modules.values()), {2})
        for name in [*modules, *(name for name in names if name.startswith("data"))]:
            self.assertRegex(name, r"(torch_test.py:\d+|before the first forward pass)$")
        # The times are of a loader, before the model is called.
        self.assertEqual(len([name for name in names if name.startswith("data of TensorDataset")]), 1, names)

    def test_a_communication_hook_of_ones_own_stays(self):
        seen = []

        def hook(state, bucket):
            seen.append(bucket.index())
            return state.allreduce([bucket.buffer().mul_(0.25)]).get_future().then(lambda future: future.value()[0])

        def train():
            model, optimizer = make()
            model.register_comm_hook(model.process_group, hook)
            learn(model, optimizer, 3)
            return digest(model)

        self.check("own_hook", train, 3, dist__gradients=3)
        self.assertEqual(len(seen), 6)

    def check_replicas(self, observed):
        """What is compared is equal, and nothing else is found."""
        verdicts = [json.loads(verdict) for verdict in observed.verdicts()]
        self.assertEqual([verdict["outcome"] for verdict in verdicts if verdict["mode"] == "REPLICAS"], ["BITWISE_EQUAL"])
        self.assertEqual(ott._ott.describe_unsound(observed.dir), "")

    def test_what_a_communication_hook_of_ones_own_leaves_different_is_no_finding(self):
        def train():
            model, optimizer = make()
            model.register_comm_hook(None, reduce_nothing)
            for batch in batches(3):
                optimizer.zero_grad()
                loss_of(model, batch).backward()
                nn.utils.clip_grad_norm_(model.parameters(), 0.1)
                optimizer.step()
            return digest(model)

        self.check_replicas(self.check("local_steps", train, 3))

    def test_parameters_that_each_rank_has_of_its_own_are_no_replicas(self):
        def train():
            torch.manual_seed(3)
            model = Block()
            torch.manual_seed(10 + RANK)
            nn.init.normal_(model.head.weight)
            leave_alone = nn.parallel.DistributedDataParallel._set_params_and_buffers_to_ignore_for_model
            leave_alone(model, ["head.weight", "head.bias"])
            wrapped = nn.parallel.DistributedDataParallel(model)
            optimizer = torch.optim.SGD(wrapped.parameters(), lr=0.1)
            for batch in batches(3):
                optimizer.zero_grad()
                loss_of(wrapped, batch).backward()
                optimizer.step()
            return digest(model)

        self.check_replicas(self.check("experts", train, 3))

    def test_activations_and_gradients_before_their_reduction_are_dumped(self):
        def train():
            model, optimizer = make()
            learn(model, optimizer, 2)
            return digest(model)

        alone = train()
        observed = Observed("activations", {"dump": {"iterations": {"list": [1]}}})
        ott.torch.observe(config=observed.config, activations="inner.*")
        self.assertEqual(alone, train())
        ott.torch.finish()
        tensors = ott.load_dump(os.path.join(observed.dir, f"rank_{RANK:05d}", "dumps", "1"), "torch").tensors
        self.assertEqual(sorted(tensors["activations"]["inner"]), ["0", "1", "2"])
        rectified = tensors["activations"]["inner"]["0"]["0"].relu()
        self.assertTrue(torch.equal(tensors["activations"]["inner"]["1"]["0"], rectified))
        for name, reduced in tensors["grads"].items():
            mean = tensors["local_grads"][name] / WORLD
            dist.all_reduce(mean)
            self.assertTrue(torch.equal(mean, reduced), name)

    def test_traces_of_torch_profiler_are_linked_into_the_run(self):
        directory = os.path.join(DIRECTORY, f"traces_of_{RANK}")
        os.makedirs(directory, exist_ok=True)
        paths = [os.path.join(directory, name) for name in ("early.json", "again.json.gz")]

        def export(path):
            with torch.profiler.profile() as profiler:
                torch.ones(2) + 1
            profiler.export_chrome_trace(path)

        with Observed("traces") as observed:
            export(paths[0])  # the run has not begun
            model, optimizer = make()
            learn(model, optimizer, 2)
            export(paths[1])
            os.remove(paths[1])
            export(paths[1])
        links = sorted(glob.glob(os.path.join(observed.dir, f"rank_{RANK:05d}", "torch*")), reverse=True)
        names = [f"torch_2.rank_{RANK:05d}.json.gz", f"torch.rank_{RANK:05d}.json"]
        self.assertEqual([os.path.basename(link) for link in links], names)
        for link, path in zip(links, reversed(paths)):
            self.assertTrue(os.path.samefile(link, path), link)

    def test_a_forked_process_is_no_rank(self):
        def train():
            model, optimizer = make()
            for batch in batches(2):
                child = os.fork()
                if child == 0:
                    optimizer.step()
                    model.module(batch[0]).sum().backward()
                    os._exit(0)
                self.assertEqual(os.waitpid(child, 0)[1], 0)
                optimizer.zero_grad()
                loss_of(model, batch).backward()
                optimizer.step()
            return digest(model)

        self.check("fork", train, 2, forward=2, optimizer=2)

    @unittest.skipUnless(IS_2, "PyTorch 1.13 has no DTensor")
    def test_functional_collectives_of_tensor_parallelism_are_seen(self):
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

        def train():
            torch.manual_seed(11)
            model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
            mesh = init_device_mesh("cpu", (WORLD,))
            parallelize_module(model, mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            learn(model, optimizer, 3)
            return digest(model)

        observed = self.check("tensor_parallel", train, 3, forward=3, backward=3)
        _, names = observed.measurements()
        self.assertTrue(any(name.startswith("dist.all_reduce") for name in names), names)
        # All ranks compute with the same batch, as they have to.
        self.assertEqual(observed.verdicts(), [])

    @unittest.skipUnless(IS_2, "PyTorch 1.13 has no torch.distributed.pipelining")
    def test_stages_of_a_pipeline_find_together(self):
        from torch.distributed.pipelining import PipelineStage, ScheduleGPipe

        learning = []

        class Stage(nn.Linear):
            def forward(self, x):
                learning.append(_hooks.is_learning_shapes())
                (torch.erfinv if learning[-1] else torch.digamma)(torch.zeros(1))
                return super().forward(x)

        def train():
            torch.manual_seed(12)
            stages = [Stage(16, 16), Stage(16, 4)]
            stage = PipelineStage(stages[RANK], RANK, WORLD, torch.device("cpu"))
            schedule = ScheduleGPipe(stage, n_microbatches=2, loss_fn=nn.functional.cross_entropy)
            optimizer = torch.optim.SGD(stages[RANK].parameters(), lr=0.1)
            for x, y in batches(3):
                optimizer.zero_grad()
                schedule.step(*([x] if RANK == 0 else []), **({"target": y} if RANK > 0 else {}))
                optimizer.step()
            return digest(stages[RANK])

        every = {"op_log": {"iterations": {"every": 1}}}
        observed = self.check("pipeline", train, 3, every, backward=6, optimizer=3, **{"dist.wait": 0})
        with open(os.path.join(observed.dir, "run.json"), encoding="utf-8") as file:
            self.assertEqual(json.load(file)["config"]["stopwatch"]["work_differs_along"], ["pipeline"])
        self.assertIn(True, learning)
        with open(os.path.join(observed.dir, f"rank_{RANK:05d}", "op_log.bin"), "rb") as file:
            log = file.read()
        self.assertIn(b"digamma", log)
        self.assertNotIn(b"erfinv", log)  # of memory that holds anything

    def test_iterations_of_several_passes_and_steps_are_checked(self):
        def train():
            torch.manual_seed(14)
            wrap = nn.parallel.DistributedDataParallel
            maker, critic = wrap(nn.Linear(4, 16)), wrap(nn.Linear(16, 1))
            makes, criticizes = (torch.optim.SGD(m.parameters(), lr=0.1) for m in (maker, critic))
            torch.manual_seed(15 + RANK)
            for _ in range(4):
                made = maker(torch.randn(8, 4))
                criticizes.zero_grad()
                (critic(made.detach()).mean() - critic(torch.randn(8, 16)).mean()).backward()
                criticizes.step()
                makes.zero_grad()
                (-critic(made).mean()).backward()
                makes.step()
            return digest(maker, critic)

        every = {"cross_check": {"iterations": {"every": 1}, "replicated": ["parameters.*", "grads.*"], "distinct": ["data.*"]}}
        observed = self.check("critic", train, 5, every, forward=16, backward=8)
        with open(os.path.join(observed.dir, "rank_00000", "cross_check.jsonl"), encoding="utf-8") as file:
            self.assertEqual(len(file.readlines()) if RANK == 0 else 10, 10)  # of replicas and of data, in each iteration

    def test_stages_that_send_and_receive_by_hand_find_together(self):
        def train(send, receive):
            torch.manual_seed(13)
            stage = nn.Linear(16, 4 if RANK == WORLD - 1 else 16)
            optimizer = torch.optim.SGD(stage.parameters(), lr=0.1)
            for x, y in batches(3):
                optimizer.zero_grad()
                if RANK > 0:
                    x = torch.empty(len(y), 16)
                    receive(x, RANK - 1)
                    x.requires_grad_()
                out = stage(x)
                if RANK < WORLD - 1:
                    send(out.detach(), RANK + 1)
                    gradient = torch.empty_like(out)
                    receive(gradient, RANK + 1)
                    out.backward(gradient)
                else:
                    nn.functional.cross_entropy(out, y).backward()
                if RANK > 0:
                    send(x.grad, RANK - 1)
                optimizer.step()
            return digest(stage)

        calls = {
            "blocking": lambda: train(dist.send, dist.recv),
            "started": lambda: train(lambda *of: dist.isend(*of).wait(), lambda *of: dist.irecv(*of).wait()),
        }
        names = {"blocking": ("dist.send", "dist.recv"), "started": ("dist.isend", "dist.irecv")}
        messages = 2 if 0 < RANK < WORLD - 1 else 1 if WORLD > 1 else 0
        for name, run in calls.items():
            with self.subTest(name):
                counts = {measurement: 3 * messages for measurement in names[name]}
                self.check(f"stages_{name}", run, 3, forward=3, backward=3, optimizer=3, **counts)


def main():
    if RANK == 0:
        shutil.rmtree(DIRECTORY, ignore_errors=True)
        os.makedirs(DIRECTORY)
    dist.barrier()
    program = unittest.main(verbosity=2 if RANK == 0 else 0, exit=False)
    sys.stdout.flush()
    sys.stderr.flush()
    # Gloo's threads may abort as the interpreter is torn down (pytorch/pytorch, pull request 179291).
    os._exit(0 if program.result.wasSuccessful() else 1)


if __name__ == "__main__":
    main()

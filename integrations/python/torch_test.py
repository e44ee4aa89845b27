"""Small trainings on two ranks, each run as it is and again under observation: the bits must be the same, and what was
observed is looked at. Runs under PyTorch 1.13 as under 2.13; what only one of them has is left out under the other."""

import contextlib
import glob
import io
import json
import os
import struct
import time
import unittest
import unittest.mock

import torch
import torch.distributed as dist
from torch import nn
from torch_for_test import DIRECTORY, IS_2, RANK, WORLD, Block, Observed, ObservedTestCase, backward_passes, batches, digest, learn
from torch_for_test import learn_by_closures, learn_one, learned, learns_alike, loss_of, main, make, make_alone

import optim_test_tools as ott


class TorchTest(ObservedTestCase):
    def test_parts_of_an_iteration_are_named(self):
        def train():
            model, optimizer = make()
            for i, batch in enumerate(batches(5)):
                learn_one(model, optimizer, batch, 0.5)
                if i == 2:
                    model.eval()
                    with torch.no_grad():
                        model(batch[0])
                    model.train()
                    torch.save(model.module.state_dict(), os.path.join(DIRECTORY, f"checkpoint{RANK}"))
            return digest(model)

        self.check("parts", train, 5, forward=5, backward=5, clipping=5, optimizer=5, evaluation=1, checkpoint=1, dist__gradients=5)
        with open(os.path.join(DIRECTORY, f"checkpoint{RANK}"), "rb") as file:
            self.assertNotIn(b"optim_test_tools", file.read())

    def test_a_loader_that_is_also_evaluated_with_goes_on_to_feed_the_training(self):
        class Looked(torch.utils.data.TensorDataset):
            pass

        with Observed("looked_at") as observed:
            model, optimizer = make()
            loader = torch.utils.data.DataLoader(Looked(*(torch.cat(part) for part in zip(*batches(5)))), batch_size=4)
            for batch in loader:
                learn_one(model, optimizer, batch)
                with torch.no_grad():
                    model.module(next(iter(loader))[0])
        _, names = observed.measurements()
        data = next(count for name, count in names.items() if name.startswith("data of Looked"))
        self.assertGreaterEqual(data, 5, names)

    @learns_alike(2, forward=6, backward=6, optimizer=2, dist__gradients=2)
    def test_micro_steps_are_of_one_iteration(self):
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

    def test_recomputed_forward_passes_are_part_of_the_backward_pass(self):
        for reentrant in (False, True):

            def train():
                model, optimizer = make(reentrant, find_unused_parameters=False)
                for x, y in batches(3):
                    learn_one(model, optimizer, (x.requires_grad_(), y))
                return digest(model)

            self.check(f"recomputation{reentrant}", train, 3, forward=3, backward=3)

    def test_closures_of_an_optimizer(self):
        def train():
            return learn_by_closures(*make_alone(optimizer=torch.optim.LBFGS, max_iter=3), 3)

        observed = self.check("closures", train, 3)
        _, names = observed.measurements()
        self.assertGreaterEqual(names["forward"], 3)
        self.assertEqual(names["forward"], names["backward"])

    @learns_alike(5, forward=6, backward=5, optimizer=5)
    def test_an_exception_in_the_loop_is_the_trainings_own(self):
        model, optimizer = make_alone(optimizer=torch.optim.Adam, lr=1e-3)
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

    def test_an_error_of_the_observation_ends_it_and_not_the_training(self):
        from optim_test_tools.torch import _checkpoints, _collectives, _loaders, _modules, _operations, _sound

        def train():
            model, optimizer = make()
            for _ in backward_passes(model, optimizer, 5):
                dist.barrier()
                torch.save({"x": 1}, path)
                self.assertEqual(torch.load(path), {"x": 1})
            return digest(model)

        path = os.path.join(DIRECTORY, f"any{RANK}")
        alone = train()
        for owner, name in (
            (_sound.Sound, "optimizer_loads"),
            (_checkpoints.Checkpoints, "_read"),
            (_collectives.Collectives, "_prepare"),
            (_loaders.Loaders, "name_of"),
            (_modules.Modules, "_make_scope"),
            (_operations._Mode, "_place"),
        ):
            with self.subTest(name), unittest.mock.patch.object(owner, name, side_effect=RuntimeError("ours")) as broken:
                with contextlib.redirect_stderr(io.StringIO()) as said, Observed(f"broken{name}", {"op_log": {"iterations": {"list": [4]}}}):
                    if name == "_read":
                        torch.load(path)
                    if name == "optimizer_loads":
                        torch.optim.SGD([torch.ones(1)], lr=1).load_state_dict(torch.optim.SGD([torch.ones(1)], lr=1).state_dict())
                    self.assertEqual(alone, train())
                broken.assert_called()
                self.assertEqual(said.getvalue().count("no longer observed: RuntimeError: ours"), 1, said.getvalue())

    def test_checkpoints_and_modules_of_other_kinds(self):
        path = os.path.join(DIRECTORY, f"generator{RANK}")

        def train():
            torch.save({"generator": {"state": torch.arange(3), "param_groups": None}}, path)
            torch.load(path)
            return learned(*make_alone(lambda: nn.Sequential(torch.jit.script(nn.Linear(16, 8)), nn.Linear(8, 4))), 5)

        self.check("other_kinds", train, 5, forward=5, backward=5, optimizer=5)

    def test_workers_of_a_loader(self):
        self.check("workers", lambda: learned(*make(), 4, workers=1), 4, forward=4)

    def test_an_iteration_ends_with_the_last_of_several_optimizers(self):
        def train():
            torch.manual_seed(6)
            first, second = Block(), Block()
            optimizers = [torch.optim.SGD(m.parameters(), lr=0.1) for m in (first, second)]
            for batch in batches(4):
                for model, optimizer in zip((first, second), optimizers):
                    learn_one(model, optimizer, batch)
            return digest(first, second)

        # The first iteration ends as a second training pass begins, and has the first optimizer alone.
        observed = self.check("several", train, 5, config={"dump": {"iterations": {"list": [1]}}}, optimizer=8)
        tensors = observed.dumped()
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
        state = [observed.dumped(i)["state"] for i in (1, 2)]
        # An iteration ends before update().
        if hasattr(torch.amp, "GradScaler"):
            self.assertEqual([float(s["scaler"]["0.scale"]) for s in state], [2.0**10, 2.0**9])

    def test_state_that_is_no_tensor_is_dumped_and_compared(self):
        def train():
            model, optimizer = make()
            for i, batch in enumerate(batches(3)):
                if i == 2 and RANK == 1:
                    optimizer.param_groups[0]["lr"] = 0.05
                learn_one(model, optimizer, batch)

        config = {
            "dump": {"iterations": {"list": [1]}},
            "cross_check": {"iterations": {}, "replicated": ["state.*", "parameters.*"], "distinct": ["data.*"]},
        }
        observed = self.check("state", train, 3, config=config)
        tensors = observed.dumped()
        self.assertEqual(float(tensors["state"]["options"]["SGD.0.lr"]), 0.1)
        self.assertTrue(tensors["state"]["training"]["inner.2"])
        self.assertEqual(int(tensors["state"]["counts"]["reductions"]), 2)
        self.assertEqual(tensors["optimizer"]["head.bias"]["momentum_buffer"].shape, (4,))
        for name in ("head.weight", "inner.0.bias"):
            self.assertIn(name, tensors["grads"])
            self.assertIn(name, tensors["parameters"])
        self.assertEqual(list(tensors["rng"]), ["torch"])  # nothing drew from Python's
        self.assertIn("0", tensors["loss"])
        verdicts = observed.verdicts(0)
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
                learn_one(model, optimizer, batch)
            return digest(model)

        observed = self.check("hang", train, 4, config={"hang": {"after_seconds": 1}})
        verdict = json.loads(observed.text("hang.json"))
        self.assertEqual(verdict["culprits"], [1])
        self.assertIn("dist.gradients", json.dumps(verdict["causes"]))
        self.assertIn("in wait_for_the_verdict", observed.text("rank_00001", "stacks.txt"))

    def test_operations_are_logged_with_module_and_line(self):
        def train():
            model, optimizer = make()
            learn(model, optimizer, 1)
            torch._foreach_mul([torch.ones(1) for _ in range(10)], 2)
            torch.empty(0).set_(torch.ones(1))
            return learned(model, optimizer, 1)

        observed = self.check("operations", train, 2, config={"op_log": {"iterations": {"list": [1]}}})
        log = observed.log()
        for word in (b"addmm", b"inner.0", b"head.weight", b"torch_test.py", b"reduce_gradient", b"input9", b"backward", b"batch"):
            self.assertIn(word, log)
        self.assertNotIn(b"set_", log)
        # Updates of several parameters are open at once.
        self.assertIn(b"sgd" + struct.pack("<I", len("head.weight")) + b"head.weight", log)

    def test_parameters_are_offered_to_be_moved_by_rounding(self):
        alone = learned(*make(), 1)
        with Observed("perturbed", {"perturb": {"seed": 1, "paths": "parameters.head.*"}}):
            self.assertNotEqual(alone, learned(*make(), 1))

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

    def test_modules_and_datasets_are_named_with_their_lines(self):
        observed = self.check("modules", lambda: learned(*make(False), 5), 5)
        _, names = observed.measurements()
        # From the fourth iteration on; recomputed passes do not count.
        names = {name: count for name, count in names.items() if count > 0}
        modules = {name: count for name, count in names.items() if name.startswith("module ")}
        self.assertEqual(sorted(name.split()[1] for name in modules), ["head,", "inner,", "inner.0,", "inner.1,", "inner.2,"])
        self.assertEqual(set(modules.values()), {2})
        for name in [*modules, *(name for name in names if name.startswith("data"))]:
            self.assertRegex(name, r"(torch_for_test.py:\d+|before the first forward pass)$")
        # The times are of a loader, before the model is called.
        self.assertEqual(len([name for name in names if name.startswith("data of TensorDataset")]), 1, names)

    def test_activations_and_gradients_before_their_reduction_are_dumped(self):
        alone = learned(*make(), 2)
        observed = Observed("activations", {"dump": {"iterations": {"list": [1]}}})
        ott.torch.observe(config=observed.config, activations="inner.*")
        self.assertEqual(alone, learned(*make(), 2))
        ott.torch.finish()
        tensors = observed.dumped(1, "torch")
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
            learn(*make(), 2)
            export(paths[1])
            os.remove(paths[1])
            export(paths[1])
        links = sorted(glob.glob(os.path.join(observed.dir, f"rank_{RANK:05d}", "torch*")), reverse=True)
        names = [f"torch_2.rank_{RANK:05d}.json.gz", f"torch.rank_{RANK:05d}.json"]
        self.assertEqual([os.path.basename(link) for link in links], names)
        for link, path in zip(links, reversed(paths)):
            self.assertTrue(os.path.samefile(link, path), link)

    @learns_alike(2, forward=2, optimizer=2)
    def test_a_forked_process_is_no_rank(self):
        model, optimizer = make()
        for batch in batches(2):
            child = os.fork()
            if child == 0:
                optimizer.step()
                model.module(batch[0]).sum().backward()
                os._exit(0)
            self.assertEqual(os.waitpid(child, 0)[1], 0)
            learn_one(model, optimizer, batch)
        return digest(model)

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
        self.assertEqual(len(observed.verdicts(0)), 10)  # of replicas and of data, in each iteration


if __name__ == "__main__":
    main()

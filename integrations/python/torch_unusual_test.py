"""Trainings of which parts are unusual: passes that compute nothing, steps that fail, calls that PyTorch allows and few programs make.
Observed, each learns what it learns without, and has no finding."""

import contextlib
import copy
import gc
import io
import json
import os
import pickle
import threading
import unittest
import unittest.mock
import weakref

import torch
import torch.distributed as dist
import torch.distributed.algorithms.ddp_comm_hooks.default_hooks
import torch_test
from torch import nn
from torch_test import RANK, Block, batches, digest, learn, loss_of, reduce_nothing

import optim_test_tools as ott
from optim_test_tools.torch import _hooks, _job, _sound_training


class UnusualTest(torch_test.ObservedTestCase):
    def check_sound(self, name, train, iterations, config=None, **counts):
        observed = self.check(name, train, iterations, config, **counts)
        self.assertEqual(ott._ott.describe_unsound(observed.dir), "")
        return observed

    def test_a_model_that_is_traced_is_not_trained_by_that(self):
        def train():
            torch.manual_seed(3)
            # Tracing calls what is no leaf, with arguments that are no tensors.
            model = torch.fx.symbolic_trace(nn.Sequential(Block(), nn.Linear(4, 4)))
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            for batch in batches(3):
                optimizer.zero_grad()
                loss_of(model, batch).backward()
                optimizer.step()
                traced = torch.jit.trace(model, batch[0], check_trace=False)
            return digest(model), str(model.graph), [node.kind() for node in traced.inlined_graph.nodes()]

        self.check_sound("traced", train, 3, forward=3, backward=3)

    def test_a_trace_is_found_where_pytorch_2_14_says_it(self):
        is_on = unittest.mock.patch.object(torch.fx._symbolic_trace, "_get_is_fx_tracing", lambda: True, create=True)
        self.assertFalse(_hooks.is_tracing())
        with is_on:
            self.assertTrue(_hooks.is_tracing())

    def test_a_model_without_numbers_is_not_the_training(self):
        def count(model):
            """As programs do that count operations and bytes."""
            model(torch.ones(2, 16, device="meta")).sum().backward()
            torch.optim.SGD(model.parameters(), lr=0.1).step()

        def train():
            torch.manual_seed(3)
            model, counted = Block(), Block().to("meta")
            count(counted)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            for batch in batches(3):
                optimizer.zero_grad()
                loss_of(model, batch).backward()
                optimizer.step()
                count(counted)
            return digest(model)

        dump = {"dump": {"iterations": {"list": [0, 1]}}}
        observed = self.check_sound("meta", train, 3, dump, forward=3, backward=3, optimizer=3)
        tensors = ott.load_dump(os.path.join(observed.dir, f"rank_{RANK:05d}", "dumps", "1"), "numpy").tensors
        self.assertEqual(sorted(tensors["parameters"]), ["head.bias", "head.weight", "inner.0.bias", "inner.0.weight"])

    def test_layers_whose_sizes_the_first_pass_tells(self):
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.head, self.unused = nn.LazyLinear(4), nn.LazyLinear(4)

            def forward(self, x):
                return self.head(x)

        def train():
            torch.manual_seed(3)
            model = Model()
            model(torch.ones(1, 16))
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            learn(model, optimizer, 3)
            return digest(model.head)

        self.check_sound("lazy", train, 3, {"dump": {"iterations": {"list": [1]}}}, forward=4, backward=3)

    def test_iterations_go_on_after_a_step_that_raises(self):
        def train():
            torch.manual_seed(3)
            model = Block()
            optimizer = torch.optim.LBFGS(model.parameters(), max_iter=2)
            for i, batch in enumerate(batches(6)):

                def closure():
                    optimizer.zero_grad()
                    loss = loss_of(model, batch)
                    if i == 2:
                        raise FloatingPointError("as planned")
                    loss.backward()
                    return loss

                with contextlib.suppress(FloatingPointError):
                    optimizer.step(closure)
            return digest(model)

        self.check_sound("raises", train, 5)

    @unittest.skipUnless(torch_test.IS_2, "PyTorch 1.13 has no torch.compile")
    def test_a_step_within_torch_compile_is_taken_for_none_that_is_left_out(self):
        def train():
            torch.manual_seed(3)
            model = Block()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            step = torch.compile(lambda: optimizer.step(), backend="eager")
            for batch in batches(5):
                optimizer.zero_grad()
                loss_of(model, batch).backward()
                step()
            return digest(model)

        self.addCleanup(torch._dynamo.utils.counters.clear)
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            self.check_sound("compiled_step", train, 0)
        self.assertEqual("no iteration was seen" in said.getvalue(), RANK == 0)

    @unittest.skipUnless(torch_test.IS_2, "PyTorch 1.13 has no torch.compile")
    def test_a_training_that_is_compiled_as_a_whole_is_said_to_be_hidden(self):
        self.addCleanup(torch._dynamo.utils.counters.clear)
        said = io.StringIO()
        with contextlib.redirect_stderr(said), torch_test.Observed("hidden"):
            model = nn.Linear(4, 4)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

            @torch.compile(backend="eager")
            def step(x):
                model(x).sum().backward()
                optimizer.step()

            step(torch.ones(2, 4))
        self.assertEqual("nothing was observed: torch.compile() hides" in said.getvalue(), RANK == 0, said.getvalue())

    @unittest.skipUnless(torch_test.IS_2, "PyTorch 1.13 has no torch.compile")
    def test_a_model_that_is_compiled_late_is_one_graph(self):
        def train():
            torch._dynamo.reset()
            torch._dynamo.utils.counters.clear()
            torch.manual_seed(3)
            model = Block()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            compiled = torch.compile(model, fullgraph=True, backend="eager")
            for i, batch in enumerate(batches(9)):
                optimizer.zero_grad()
                loss_of(compiled if i >= 5 else model, batch).backward()
                optimizer.step()
            return digest(model), dict(torch._dynamo.utils.counters["stats"])

        self.addCleanup(torch._dynamo.utils.counters.clear)
        self.check_sound("compiled_late", train, 9, forward=9)

    def test_models_and_optimizers_of_single_tasks_are_let_go(self):
        def train():
            torch.manual_seed(3)
            model = Block()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            made = []
            for batch in batches(8):
                task = copy.deepcopy(model)
                inner = torch.optim.Adam(task.parameters(), lr=0.1)
                made += [weakref.ref(task), weakref.ref(inner)]
                loss_of(task, batch).backward()
                inner.step()
                for ours, its in zip(model.parameters(), task.parameters()):
                    ours.grad = (ours - its).detach()
                optimizer.step()
            return digest(model), sum(reference() is not None for reference in made) <= 6

        self.check_sound("tasks", train, 8, forward=8, backward=8)

    def test_iterations_end_where_each_has_an_optimizer_of_its_own(self):
        def train():
            torch.manual_seed(3)
            model = Block()
            for batch in batches(5):
                model.zero_grad()
                loss_of(model, batch).backward()
                torch.optim.SGD(model.parameters(), lr=0.1).step()
            return digest(model)

        self.check_sound("anew", train, 5, optimizer=5)

    def test_a_collective_of_other_ranks_is_none_of_this_one(self):
        def train():
            torch.manual_seed(3)
            model = Block()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            first = dist.new_group([0])
            for batch in batches(3):
                optimizer.zero_grad()
                loss_of(model, batch).backward()
                dist.all_reduce(torch.ones(2), group=first)
                optimizer.step()
            return digest(model)

        self.check_sound("of_others", train, 3, **{"dist.all_reduce of ranks 0": 3 if RANK == 0 else 0})

    def test_a_collective_does_not_wait_whose_fourth_argument_says_so(self):
        def train():
            torch.manual_seed(3 + RANK)
            model = Block()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            for batch in batches(3):
                optimizer.zero_grad()
                loss_of(model, batch).backward()
                dist.all_reduce(torch.randn(1000000), dist.ReduceOp.SUM, None, True).wait()
                dist._broadcast_coalesced(dist.group.WORLD, [torch.ones(2)], 1024, 0)  # of C++, as DistributedDataParallel calls it
                optimizer.step()
            return digest(model)

        self.check_sound("positional", train, 3, **{"dist.all_reduce (async)": 3, "dist.wait": 3})

    def test_sparse_tensors_are_dumped_by_indices_and_values(self):
        class Graph(nn.Module):
            def __init__(self):
                super().__init__()
                self.embedding, self.head = nn.Embedding(8, 16, sparse=True), nn.Linear(16, 4)
                self.register_buffer("edges", torch.eye(4).to_sparse())

            def forward(self, weights):
                return self.head(torch.sparse.mm(weights, self.embedding(torch.tensor([1, 1, 3, 5])).relu()))

        def train():
            torch.manual_seed(3)
            model = Graph()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            for _, y in batches(3):
                optimizer.zero_grad()
                loss_of(model, (torch.rand(4, 4).relu().to_sparse(), y)).backward()
                optimizer.step()
            return digest(model)

        observed = self.check_sound("sparse", train, 3, {"dump": {"iterations": {"list": [1]}}})
        tensors = ott.load_dump(os.path.join(observed.dir, f"rank_{RANK:05d}", "dumps", "1"), "numpy").tensors
        self.assertEqual(tensors["grads"]["embedding.weight"]["indices"].tolist(), [[1, 3, 5]])
        self.assertEqual(tensors["grads"]["embedding.weight"]["values"].shape, (3, 16))
        self.assertEqual(tensors["buffers"]["edges"]["values"].tolist(), [1, 1, 1, 1])

    def test_a_communication_hook_may_come_after_the_first_pass(self):
        def hook(state, bucket):
            return state.allreduce([bucket.buffer().mul_(0.25)]).get_future().then(lambda future: future.value()[0])

        def train():
            model, optimizer = torch_test.make()
            loss = loss_of(model, next(iter(batches(1))))
            model.register_comm_hook(model.process_group, hook)
            loss.backward()
            optimizer.step()
            learn(model, optimizer, 3)
            return digest(model)

        self.check_sound("late_hook", train, 4, dist__gradients=4)

    def test_calls_in_callbacks_of_a_communication_hook_come_on_any_thread(self):
        def hook(state, bucket):
            work = dist.all_reduce(bucket.buffer().div_(dist.get_world_size()), async_op=True)
            work.wait()

            def reduce():
                dist.all_reduce(torch.ones(4), async_op=True).wait()

            # As the callback of a future: here, where it is done, or else on the thread that ends it.
            thread = threading.Thread(target=reduce)
            if RANK == 1:
                thread.start()
                thread.join()
            else:
                reduce()
            return work.get_future().then(lambda future: future.value()[0])

        def train(is_late):
            model, optimizer = torch_test.make()
            loss = loss_of(model, next(iter(batches(1)))) if is_late else None
            model.register_comm_hook(None, hook)
            if loss is not None:
                loss.backward()
            learn(model, optimizer, 3)
            return digest(model)

        self.check_sound("callbacks", lambda: train(False), 3, dist__gradients=3)
        self.check_sound("late_callbacks", lambda: train(True), 3, dist__gradients=4)

    def test_a_communication_hook_that_pytorch_refuses_is_refused(self):
        def hook(state, bucket: int):
            return reduce_nothing(state, bucket)

        def train():
            model, optimizer = torch_test.make()
            with self.assertRaisesRegex(ValueError, "bucket annotation"):
                model.register_comm_hook(None, hook)
            learn(model, optimizer, 3)
            return digest(model)

        self.check_sound("refused_hook", train, 3)

    @unittest.skipUnless(torch_test.IS_2, "PyTorch 1.13 has no such replicate()")
    def test_a_model_may_be_replicated_without_a_wrapper(self):
        def train():
            from torch.distributed._composable import replicate

            torch.manual_seed(3)
            model = replicate(Block())
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            learn(model, optimizer, 3)
            return digest(model)

        self.check_sound("replicated", train, 3, dist__gradients=3)

    def test_sparse_batches_of_one_shape_are_told_apart(self):
        class Graph(nn.Module):
            def __init__(self):
                super().__init__()
                self.head = nn.Linear(16, 4)

            def forward(self, x):
                return torch.sparse.mm(x, self.head.weight.t()) + self.head.bias

        def train():
            torch.manual_seed(3)
            model = nn.parallel.DistributedDataParallel(Graph())
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            torch.manual_seed(10 + RANK)
            for rows in (4, 5, 6):
                optimizer.zero_grad()
                loss_of(model, (torch.rand(rows, 16).to_sparse(), torch.randint(4, (rows,)))).backward()
                optimizer.step()
            return digest(model)

        self.check_sound("sparse_batches", train, 3)

    def test_gradients_may_be_divided_by_the_ranks_that_still_have_batches(self):
        def train():
            model, optimizer = torch_test.make()
            with model.join(divide_by_initial_world_size=False):
                for batch in batches(3 + RANK):
                    optimizer.zero_grad()
                    loss_of(model, batch).backward()
                    optimizer.step()
            return digest(model)

        self.check_sound("joined", train, 3 + RANK)

    def test_ranks_whose_numbers_of_batches_differ_are_not_compared(self):
        from torch.distributed.algorithms.join import Join
        from torch.distributed.optim import ZeroRedundancyOptimizer

        def train():
            model, _ = torch_test.make()
            optimizer = ZeroRedundancyOptimizer(model.parameters(), optimizer_class=torch.optim.SGD, lr=0.1)
            for _ in range(2):
                with Join([model, optimizer]):
                    learn(model, optimizer, 3 + RANK)
            return digest(model)

        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            observed = self.check_sound("joined_epochs", train, 6 + 2 * RANK, {"cross_check": {"iterations": {"every": 5}}})
        self.assertEqual(observed.verdicts(), [])
        self.assertEqual("under Join ranks have iterations of their own numbers" in said.getvalue(), RANK == 0)

    def test_the_observation_ends_where_ranks_join_that_are_checked(self):
        def train():
            model, optimizer = torch_test.make()
            learn(model, optimizer, 1)
            with model.join():
                learn(model, optimizer, 3 + RANK)
            return digest(model)

        said = io.StringIO()
        alone = train()
        with contextlib.redirect_stderr(said), torch_test.Observed("late_join"):
            self.assertEqual(train(), alone)
        self.assertIn("no longer observed: Error: replicas are checked", said.getvalue())

    def test_the_last_iteration_may_end_without_a_process_group(self):
        def train():
            torch.manual_seed(3)
            model = Block()
            optimizer, averager = (torch.optim.SGD(part.parameters(), lr=0.1) for part in (model, model.head))
            for i, batch in enumerate(batches(4)):
                optimizer.zero_grad()
                loss_of(model, batch).backward()
                for p in model.parameters():
                    dist.all_reduce(p.grad)
                optimizer.step()
                if i < 3:
                    averager.step()

        said = io.StringIO()
        with contextlib.redirect_stderr(said), torch_test.Observed("without_group"):
            train()
            with unittest.mock.patch.object(dist, "get_world_size", side_effect=ValueError("not initialized")):
                ott.torch.finish()
        self.assertNotIn("no longer checked", said.getvalue())

    def test_a_rank_that_is_not_observed_is_not_waited_for(self):
        model, optimizer = torch_test.make()
        said = io.StringIO()
        with unittest.mock.patch.multiple(_job, _is_announced=True, _SECONDS_TO_ANNOUNCE=0.1), contextlib.redirect_stderr(said):
            if RANK == 0:
                _job.announce()
            with torch_test.Observed("alone"):
                for batch in batches(2):
                    loss_of(model, batch).backward()
                    optimizer.step()
        self.assertIn("no longer observed: TimeoutError: rank 1 did not say", said.getvalue())

    @unittest.skipUnless(torch_test.IS_2, "PyTorch 1.13 has no hook behind a gradient")
    def test_passes_that_recompute_while_optimizers_step_are_of_the_backward_pass(self):
        def train():
            torch.manual_seed(3)
            model = nn.Sequential(Block(True), nn.ReLU(), nn.Linear(4, 4))
            optimizers = {p: torch.optim.SGD([p], lr=0.1) for p in model.parameters()}

            def step(parameter):
                optimizers[parameter].step()
                optimizers[parameter].zero_grad()

            for p in model.parameters():
                p.register_post_accumulate_grad_hook(step)
            for x, y in batches(3):
                loss_of(model, (x.requires_grad_(), y)).backward()
            return digest(model)

        self.check_sound("in_backward", train, 3, forward=3, backward=3)

    def test_a_search_of_rates_learns_from_the_first_epoch_as_the_training_does(self):
        def train():
            model, optimizer = torch_test.make()
            before = copy.deepcopy((model.module.state_dict(), optimizer.state_dict()))
            data = torch.utils.data.TensorDataset(torch.randn(32, 16), torch.randint(4, (32,)))
            sampler = torch.utils.data.distributed.DistributedSampler(data)
            loader = torch.utils.data.DataLoader(data, 4, sampler=sampler)
            for epoch in (None, 0, 1):  # None: the search
                sampler.set_epoch(epoch or 0)
                for batch in loader:
                    optimizer.zero_grad()
                    loss_of(model, batch).backward()
                    optimizer.step()
                if epoch is None:
                    model.module.load_state_dict(before[0])
                    optimizer.load_state_dict(before[1])
            return digest(model)

        self.check_sound("search", train, 12)

    def test_what_an_exception_held_is_let_go_with_it(self):
        class Fails(torch.autograd.Function):
            @staticmethod
            def forward(context, x):
                return x.clone()

            @staticmethod
            def backward(context, gradient):
                raise RuntimeError("out of memory, say")

        def fail(model, batch):
            held = torch.zeros(3)
            with contextlib.suppress(RuntimeError):
                Fails.apply(loss_of(model, batch)).backward()
            return weakref.ref(held)

        def train():
            torch.manual_seed(3)
            model = Block()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            left = []
            gc.disable()
            for batch in batches(3):
                left.append(fail(model, batch)())
                optimizer.zero_grad()
                loss_of(model, batch).backward()
                optimizer.step()
            gc.enable()
            return digest(model), left

        self.check_sound("let_go", train, 3, forward=6, backward=6)

    def test_functions_that_are_observed_are_pickled(self):
        def train():
            torch.manual_seed(3)
            model = Block()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            learn(model, optimizer, 3)
            return digest(model), pickle.dumps([torch.load, torch.save, dist.init_process_group, dist.all_reduce])

        self.check_sound("pickled", train, 3)

    def test_what_is_loaded_may_be_called_as_an_optimizers_state(self):
        def train():
            torch.manual_seed(3)
            model = Block()
            saved = io.BytesIO()
            torch.save({"episode": {"state": torch.zeros(4)}}, saved)
            saved.seek(0)
            model(torch.ones(1, 16))
            torch.load(saved)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            learn(model, optimizer, 3)
            return digest(model)

        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            self.check_sound("called_state", train, 3)
        self.assertNotIn("no longer checked", said.getvalue())

    def test_a_distributed_module_is_copied_and_saved_as_a_whole(self):
        def train():
            model, optimizer = torch_test.make()
            hooked, its = torch_test.make()
            hooked.register_comm_hook(None, dist.algorithms.ddp_comm_hooks.default_hooks.fp16_compress_hook)
            for batch in batches(3):
                for part, steps in ((model, optimizer), (hooked, its)):
                    steps.zero_grad()
                    loss_of(part, batch).backward()
                    steps.step()
            saved = io.BytesIO()
            torch.save([model, hooked], saved)
            return digest(model, copy.deepcopy(model), copy.deepcopy(hooked)), b"optim_test_tools" in saved.getvalue()

        self.check_sound("copied_whole", train, 4, dist__gradients=6)

    def test_a_communication_hook_that_comes_late_leaves_replicas_different(self):
        def train():
            model, optimizer = torch_test.make()
            loss = loss_of(model, next(iter(batches(1))))
            model.register_comm_hook(None, reduce_nothing)
            loss.backward()
            optimizer.step()
            for batch in batches(100):
                optimizer.zero_grad()
                loss_of(model, batch).backward()
                nn.utils.clip_grad_norm_(model.parameters(), 0.1)
                optimizer.step()
            return digest(model)

        observed = self.check_sound("late_local_steps", train, 101)
        outcomes = [json.loads(verdict)["outcome"] for verdict in observed.verdicts()]
        self.assertEqual(outcomes, ["NOT_COMPARED", "ALL_DISTINCT"] * 2)

    def test_a_distributed_module_may_be_a_part_of_the_model(self):
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.wrapped, _ = torch_test.make()
                self.head = nn.Linear(4, 4).requires_grad_(False)

            def forward(self, x):
                return self.head(self.wrapped(x))

        def train():
            model = Model()
            optimizer = torch.optim.SGD(model.wrapped.parameters(), lr=0.1)
            learn(model, optimizer, 3)
            return digest(model.wrapped)

        observed = self.check_sound("part", train, 3, dist__gradients=3)
        self.assertEqual([json.loads(verdict)["outcome"] for verdict in observed.verdicts()], ["BITWISE_EQUAL", "ALL_DISTINCT"])

    def test_a_layer_that_has_none_but_tied_parameters_is_compared_by_their_name(self):
        class Tied(torch_test.Block):
            def __init__(self):
                super().__init__()
                self.last = nn.Linear(4, 4, bias=False)
                self.alike = nn.ModuleList([self.last])

            def forward(self, x):
                return self.alike[0](self.last(super().forward(x)))

        def train():
            torch.manual_seed(3)
            model = nn.parallel.DistributedDataParallel(Tied())
            torch.manual_seed(10 + RANK)
            learn(model, torch.optim.SGD(model.parameters(), lr=0.1), 3)
            return digest(model)

        observed = self.check_sound("tied", train, 3)
        self.assertEqual([json.loads(verdict)["outcome"] for verdict in observed.verdicts()], ["BITWISE_EQUAL", "ALL_DISTINCT"])

    def test_a_model_trains_within_a_distributed_module_that_is_in_eval_mode(self):
        def train():
            model, optimizer = torch_test.make()
            model.eval()
            model.module.train()
            learn(model, optimizer, 3)
            return digest(model)

        observed = self.check_sound("in_eval_mode", train, 3)
        self.assertEqual([json.loads(verdict)["outcome"] for verdict in observed.verdicts()], ["BITWISE_EQUAL", "ALL_DISTINCT"])

    def test_replicas_are_checked_whose_first_pass_is_in_a_closure(self):
        def train():
            model, optimizer = torch_test.make()
            for batch in batches(3):

                def closure():
                    optimizer.zero_grad()
                    loss = loss_of(model, batch)
                    loss.backward()
                    return loss

                optimizer.step(closure)
            return digest(model)

        observed = self.check_sound("closures_of_replicas", train, 3, forward=3, dist__gradients=3)
        self.assertEqual([json.loads(verdict)["outcome"] for verdict in observed.verdicts()], ["BITWISE_EQUAL", "ALL_DISTINCT"])

    @unittest.skipUnless(torch_test.IS_2, "FSDP2 is newer")
    def test_a_parameter_whose_memory_was_taken_back_is_not_read(self):
        parameter = nn.Parameter(torch.ones(8))
        self.assertEqual(_sound_training.sample_of(parameter).tolist(), [1.0] * 8)
        parameter.untyped_storage().resize_(0)
        self.assertIsNone(_sound_training.sample_of(parameter))

    def test_a_distributed_module_that_was_made_before_is_looked_at(self):
        model, optimizer = torch_test.make()
        with torch_test.Observed("made_before") as observed:
            ott.torch.observe(model, optimizer)
            for batch in batches(3):
                optimizer.zero_grad()
                with model.no_sync():
                    loss_of(model, batch).backward()
                optimizer.step()
        self.assertIn("gradients_not_reduced", ott._ott.describe_unsound(observed.dir))

    def test_a_model_that_each_rank_trains_for_itself_is_clipped(self):
        def train():
            model, optimizer = torch_test.make()
            own = nn.Linear(16, 4)
            its = torch.optim.SGD(own.parameters(), lr=0.1)
            for batch in batches(3):
                for part, steps in ((model, optimizer), (own, its)):
                    steps.zero_grad()
                    loss_of(part, batch).backward()
                    nn.utils.clip_grad_norm_(part.parameters(), 0.1)
                    steps.step()
            return digest(model, own)

        every = {"cross_check": {"iterations": {"every": 1}, "replicated": ["state.*"]}}
        observed = self.check_sound("of_its_own", train, 3, every)
        self.assertEqual({json.loads(verdict)["outcome"] for verdict in observed.verdicts()}, {"BITWISE_EQUAL"})

    def test_what_is_alike_on_all_ranks_on_purpose_is_no_batch(self):
        class Rows:
            def __init__(self, x):
                self.x = x

        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.block = Block()

            def forward(self, rows, time):
                return self.block(rows.x) * time.exp()

        def train():
            torch.manual_seed(3)
            model, of_time = nn.parallel.DistributedDataParallel(Model()), nn.Linear(2, 1)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            torch.manual_seed(10 + RANK)
            for i, (x, y) in enumerate(batches(4)):
                scale = of_time(torch.tensor([i / 4, 1.0])).detach()
                evaluated = model.module.eval()(Rows(torch.ones(2, 16)), scale)
                self.assertTrue(evaluated.requires_grad)
                optimizer.zero_grad()
                nn.functional.cross_entropy(model.train()(Rows(x), torch.tensor(i / 4)), y).backward()
                optimizer.step()
            return digest(model)

        every = {"cross_check": {"iterations": {"every": 1}, "replicated": ["state.counts.*"], "distinct": ["data.*"]}}
        observed = self.check_sound("alike", train, 4, every)
        outcomes = [json.loads(verdict)["outcome"] for verdict in observed.verdicts()]
        self.assertEqual(outcomes, 4 * ["BITWISE_EQUAL", "ALL_DISTINCT"])

    def test_one_rank_may_evaluate_with_gradients(self):
        def train():
            model, optimizer = torch_test.make()
            for i, batch in enumerate(batches(4)):
                if i == 2 and RANK == 0:
                    model.eval()
                    loss_of(model.module, batch)
                    loss_of(nn.Linear(16, 4), batch)  # a model of metrics
                    model.train()
                optimizer.zero_grad()
                loss_of(model, batch).backward()
                optimizer.step()
            return digest(model)

        every = {"cross_check": {"iterations": {"every": 1}, "replicated": ["state.*"], "distinct": ["data.*"]}}
        observed = self.check_sound("evaluates", train, 4, every)
        outcomes = [json.loads(verdict)["outcome"] for verdict in observed.verdicts()]
        self.assertEqual(outcomes, 4 * ["BITWISE_EQUAL", "ALL_DISTINCT"])

    def test_models_that_one_rank_has_are_not_compared(self):
        def train():
            model, optimizer = torch_test.make()
            own = nn.Linear(16, 4)
            its = torch.optim.SGD(own.parameters(), lr=0.1)
            for i, batch in enumerate(batches(4)):
                if i == 0 and RANK == 0:
                    loss_of(nn.Linear(16, 4), batch)  # a model of metrics
                its.zero_grad()
                loss_of(own, batch).backward()
                its.step()
                optimizer.zero_grad()
                loss_of(model, batch).backward()
                optimizer.step()
            return digest(model, own)

        observed = self.check_sound("of_one_rank", train, 4)
        outcomes = [json.loads(verdict)["outcome"] for verdict in observed.verdicts()]
        self.assertEqual(outcomes, ["BITWISE_EQUAL", "ALL_DISTINCT"])

    def test_what_one_rank_alone_trains_is_of_no_iteration(self):
        def train():
            model, optimizer = torch_test.make()
            own = nn.Linear(16, 4)
            its = torch.optim.SGD(own.parameters(), lr=0.1)
            for i, batch in enumerate(batches(4)):
                if RANK == 0 and i != 2:
                    its.zero_grad()
                    loss_of(own, batch).backward()
                    its.step()
                optimizer.zero_grad()
                loss_of(model, batch).backward()
                optimizer.step()
            return digest(model, own)

        every = {"cross_check": {"iterations": {"every": 1}, "replicated": ["state.*", "parameters.head.*"], "distinct": ["data.*"]}}
        observed = self.check_sound("probe", train, 4, every, dist__gradients=4)
        outcomes = [json.loads(verdict)["outcome"] for verdict in observed.verdicts()]
        self.assertEqual(outcomes, 4 * ["BITWISE_EQUAL", "ALL_DISTINCT"])

    def test_a_thread_that_calls_a_model_first_is_not_the_one_that_trains(self):
        def train():
            torch.manual_seed(3)
            model, scores = Block(), []
            looked_at = nn.Linear(16, 4)
            thread = threading.Thread(target=lambda: scores.append(looked_at(torch.ones(1, 16))))
            thread.start()
            thread.join()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            learn(model, optimizer, 4)
            return digest(model)

        self.check_sound("thread", train, 4, optimizer=4)

    def test_ranks_find_together_where_the_program_says_so(self):
        with torch_test.Observed("together") as observed:
            model = Block()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            ott.torch.observe().start(model)
            for batch in batches(3):
                # One rank waits before its first pass for the other, which comes there after its own.
                if RANK == 0:
                    dist.barrier()
                loss = loss_of(model, batch)
                if RANK > 0:
                    dist.barrier()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        self.assertEqual(observed.measurements()[0], 3)

    def test_a_model_may_copy_itself_in_its_forward_pass(self):
        class Model(Block):
            teacher = ()

            def forward(self, x):
                self.teacher = self.teacher or (copy.deepcopy(self),)
                return super().forward(x) + Block.forward(self.teacher[0], x).detach()

        def train():
            torch.manual_seed(3)
            model = Model()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            learn(model, optimizer, 3)
            return digest(model)

        self.check_sound("copied", train, 3, forward=3)


if __name__ == "__main__":
    torch_test.main()

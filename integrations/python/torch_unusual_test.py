"""Trainings of which parts are unusual: passes that compute nothing, steps that fail, calls that PyTorch allows and few programs make.
Observed, each learns what it learns without, and has no finding."""

import contextlib
import copy
import gc
import io
import pickle
import threading
import unittest
import unittest.mock
import weakref

import torch
import torch.distributed as dist
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch_for_test import IS_2, RANK, Block, Observed, ObservedTestCase, backward_passes, batches, digest, is_sound, learn, learn_one
from torch_for_test import learned, loss_of, main, make, make_alone, step_in_backward

import optim_test_tools as ott
from optim_test_tools.torch import _hooks


def learn_by_compiled_steps(number):
    model, optimizer = make_alone()
    step = torch.compile(lambda: optimizer.step(), backend="eager")
    for batch in batches(number):
        optimizer.zero_grad()
        loss_of(model, batch).backward()
        step()
    return digest(model)


class UnusualTest(ObservedTestCase):
    @is_sound(3, forward=3, backward=3)
    def test_a_model_that_is_traced_is_not_trained_by_that(self):
        # Tracing calls what is no leaf, with arguments that are no tensors.
        model, optimizer = make_alone(lambda: torch.fx.symbolic_trace(nn.Sequential(Block(), nn.Linear(4, 4))))
        for batch in batches(3):
            learn_one(model, optimizer, batch)
            traced = torch.jit.trace(model, batch[0], check_trace=False)
        return digest(model), str(model.graph), [node.kind() for node in traced.inlined_graph.nodes()]

    def test_a_trace_is_found_where_pytorch_2_14_says_it(self):
        self.assertFalse(_hooks.is_tracing())
        with unittest.mock.patch.object(torch.fx._symbolic_trace, "_get_is_fx_tracing", lambda: True, create=True):
            self.assertTrue(_hooks.is_tracing())

    def test_a_model_without_numbers_is_not_the_training(self):
        def count(model):
            """As programs do that count operations and bytes."""
            model(torch.ones(2, 16, device=next(model.parameters()).device)).sum().backward()
            torch.optim.SGD(model.parameters(), lr=0.1).step()

        def train():
            (model, optimizer), counted = make_alone(), Block().to("meta")
            count(counted)
            for batch in batches(3):
                learn_one(model, optimizer, batch, 1.0)
                count(counted)
                if IS_2:
                    with FakeTensorMode():
                        count(Block())
            return digest(model)

        dump = {"dump": {"iterations": {"list": [0, 1]}}}
        observed = self.check_sound("meta", train, 3, dump, forward=3, backward=3, optimizer=3)
        tensors = observed.dumped()
        self.assertEqual(sorted(tensors["parameters"]), ["head.bias", "head.weight", "inner.0.bias", "inner.0.weight"])
        self.assertEqual(list(tensors["state"]["gradient_norm_at_clipping"]), ["0"])

    @is_sound(3, {"dump": {"iterations": {"list": [1]}}}, forward=4, backward=3)
    def test_layers_whose_sizes_the_first_pass_tells(self):
        torch.manual_seed(3)
        model = nn.ModuleDict({"head": nn.LazyLinear(4), "unused": nn.LazyLinear(4)})
        model.forward = lambda x: model["head"](x)
        model(torch.ones(1, 16))
        learn(model, torch.optim.SGD(model.parameters(), lr=0.1), 3)
        return digest(model["head"])

    def test_iterations_go_on_after_a_step_that_raises(self):
        def train():
            model, optimizer = make_alone(optimizer=torch.optim.LBFGS, max_iter=2)
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

        observed = self.check_sound("raises", train, 5, {"dump": {"iterations": {"list": [1]}}})
        tensors = observed.dumped()
        self.assertEqual(tensors["optimizer"]["inner.0.weight"]["n_iter"].item(), 2)

    @unittest.skipUnless(IS_2, "PyTorch 1.13 has no torch.compile")
    def test_a_step_within_torch_compile_is_taken_for_none_that_is_left_out(self):
        self.addCleanup(torch._dynamo.utils.counters.clear)
        with contextlib.redirect_stderr(io.StringIO()) as said:
            self.check_sound("compiled_step", lambda: learn_by_compiled_steps(5), 0)
        self.assertEqual("no iteration was seen" in said.getvalue(), RANK == 0)

    @unittest.skipUnless(IS_2, "PyTorch 1.13 has no torch.compile")
    def test_hooks_that_are_called_between_graphs_are_not_compiled(self):
        # PyTorch 2.7 calls those of a compiled step so.
        def train():
            self.addCleanup(torch._dynamo.reset)
            torch._dynamo.utils.counters.clear()
            return learn_by_compiled_steps(3), dict(torch._dynamo.utils.counters["stats"])

        self.addCleanup(torch._dynamo.utils.counters.clear)
        with unittest.mock.patch.object(_hooks, "is_compiling", lambda: False):
            self.check_sound("between_graphs", train, 3, optimizer=3)

    @unittest.skipUnless(IS_2, "PyTorch 1.13 has no torch.compile")
    def test_a_training_that_is_compiled_as_a_whole_is_said_to_be_hidden(self):
        self.addCleanup(torch._dynamo.utils.counters.clear)
        with contextlib.redirect_stderr(io.StringIO()) as said, Observed("hidden"):
            model, optimizer = make_alone(lambda: nn.Linear(4, 4))

            @torch.compile(backend="eager")
            def step(x):
                model(x).sum().backward()
                optimizer.step()

            step(torch.ones(2, 4))
        self.assertEqual("nothing was observed: torch.compile() hides" in said.getvalue(), RANK == 0, said.getvalue())

    @unittest.skipUnless(IS_2, "PyTorch 1.13 has no torch.compile")
    def test_a_model_that_is_compiled_late_is_one_graph(self):
        def train():
            torch._dynamo.reset()
            torch._dynamo.utils.counters.clear()
            model, optimizer = make_alone()
            compiled = torch.compile(model, fullgraph=True, backend="eager")
            for i, batch in enumerate(batches(9)):
                optimizer.zero_grad()
                loss_of(compiled if i >= 5 else model, batch).backward()
                optimizer.step()
            return digest(model), dict(torch._dynamo.utils.counters["stats"])

        self.addCleanup(torch._dynamo.utils.counters.clear)
        self.check_sound("compiled_late", train, 9, forward=9)

    def test_steps_are_seen_whose_hooks_were_taken_away(self):
        # torch.compile() of PyTorch 2.0 to 2.2 leaves all optimizers so.
        class Hookless(torch.optim.SGD):
            def step(self):
                with torch.no_grad():
                    for p in self.param_groups[0]["params"]:
                        p -= 0.1 * p.grad

            step.hooked = True

        def train():
            model, _ = make()
            return learned(model, Hookless(model.parameters(), lr=0.1), 3)

        def train_compiled():
            model, optimizer = made.pop()
            torch.compile()
            torch.manual_seed(RANK)
            return learned(model, optimizer, 3)

        self.check_sound("hookless", train, 3, optimizer=3)
        if IS_2:
            made = [(model, Hookless(model.parameters(), lr=0.1)) for model, _ in (make(), make())]
            self.check_sound("hookless_before", train_compiled, 3, optimizer=3)

    @is_sound(8, forward=8, backward=8)
    def test_models_and_optimizers_of_single_tasks_are_let_go(self):
        model, optimizer = make_alone()
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

    @unittest.skipUnless(IS_2, "PyTorch 1.13 has no hooks of gradients that were added up")
    def test_operations_are_logged_where_each_gradient_steps_as_it_comes(self):
        def train():
            model, _ = make_alone()
            step_in_backward(model)
            for batch in batches(5):
                loss_of(model, batch).backward()
            return digest(model)

        log = {"op_log": {"iterations": {"list": [1, 2, 4]}}}
        observed = self.check("steps_in_backward", train, 5, log, forward=5, backward=5)
        self.assertIn(b"nll_loss_forward", observed.log())

    @is_sound(5, optimizer=5)
    def test_iterations_end_where_each_has_an_optimizer_of_its_own(self):
        model, _ = make_alone()
        for batch in batches(5):
            model.zero_grad()
            loss_of(model, batch).backward()
            torch.optim.SGD(model.parameters(), lr=0.1).step()
        return digest(model)

    @is_sound(3, **{"dist.all_reduce of ranks 0": 3 if RANK == 0 else 0})
    def test_a_collective_of_other_ranks_is_none_of_this_one(self):
        model, optimizer = make_alone()
        first = dist.new_group([0])
        for _ in backward_passes(model, optimizer, 3):
            dist.all_reduce(torch.ones(2), group=first)
        return digest(model)

    def test_arguments_of_a_collective_come_by_position_or_by_name(self):
        def train():
            model, optimizer = make_alone(seed=3 + RANK)
            for _ in backward_passes(model, optimizer, 3):
                if IS_2:
                    from torch.distributed import _functional_collectives

                    _functional_collectives.all_reduce(torch.ones(2), "sum", dist.group.WORLD).sum()  # has no async_op
                dist.all_reduce(torch.randn(1000000), dist.ReduceOp.SUM, None, True).wait()
                dist.broadcast(torch.ones(2), 0) if RANK == 0 else dist.broadcast(tensor=torch.ones(2), src=0)
                dist._broadcast_coalesced(dist.group.WORLD, [torch.ones(2)], 1024, 0)  # of C++, as DistributedDataParallel calls it
            return digest(model)

        num_functional = 3 if IS_2 else 0
        self.check_sound("by_name", train, 3, **{"dist.all_reduce (async)": 3 + num_functional, "dist.wait": 3 + num_functional})

    def test_sparse_tensors_are_dumped_by_indices_and_values(self):
        class Graph(nn.Module):
            def __init__(self):
                super().__init__()
                self.embedding, self.head = nn.Embedding(8, 16, sparse=True), nn.Linear(16, 4)
                self.register_buffer("edges", torch.eye(4).to_sparse())

            def forward(self, weights):
                return self.head(torch.sparse.mm(weights, self.embedding(torch.tensor([1, 1, 3, 5])).relu()))

        def train():
            model, optimizer = make_alone(Graph)
            for _, y in batches(3):
                learn_one(model, optimizer, (torch.rand(4, 4).relu().to_sparse(), y))
            return digest(model)

        observed = self.check_sound("sparse", train, 3, {"dump": {"iterations": {"list": [1]}}})
        tensors = observed.dumped()
        self.assertEqual(tensors["grads"]["embedding.weight"]["indices"].tolist(), [[1, 3, 5]])
        self.assertEqual(tensors["grads"]["embedding.weight"]["values"].shape, (3, 16))
        self.assertEqual(tensors["buffers"]["edges"]["values"].tolist(), [1, 1, 1, 1])

    @unittest.skipUnless(IS_2, "PyTorch 1.13 has no hook behind a gradient")
    @is_sound(3, forward=3, backward=3)
    def test_passes_that_recompute_while_optimizers_step_are_of_the_backward_pass(self):
        model, _ = make_alone(lambda: nn.Sequential(Block(True), nn.ReLU(), nn.Linear(4, 4)))
        step_in_backward(model)
        for x, y in batches(3):
            loss_of(model, (x.requires_grad_(), y)).backward()
        return digest(model)

    @is_sound(12)
    def test_a_search_of_rates_learns_from_the_first_epoch_as_the_training_does(self):
        model, optimizer = make()
        before = copy.deepcopy((model.module.state_dict(), optimizer.state_dict()))
        data = torch.utils.data.TensorDataset(torch.randn(32, 16), torch.randint(4, (32,)))
        sampler = torch.utils.data.distributed.DistributedSampler(data)
        loader = torch.utils.data.DataLoader(data, 4, sampler=sampler)
        for epoch in (None, 0, 1):  # None: the search
            sampler.set_epoch(epoch or 0)
            for batch in loader:
                learn_one(model, optimizer, batch)
            if epoch is None:
                model.module.load_state_dict(before[0])
                optimizer.load_state_dict(before[1])
        return digest(model)

    @is_sound(3, forward=6, backward=6)
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

        model, optimizer = make_alone()
        left = []
        gc.disable()
        for batch in batches(3):
            left.append(fail(model, batch)())
            learn_one(model, optimizer, batch)
        gc.enable()
        return digest(model), left

    @is_sound(3)
    def test_functions_that_are_observed_are_pickled(self):
        model, optimizer = make_alone()
        return learned(model, optimizer, 3), pickle.dumps([torch.load, torch.save, dist.init_process_group, dist.all_reduce])

    def test_what_is_loaded_may_be_called_as_an_optimizers_state(self):
        def train():
            model, optimizer = make_alone()
            saved = io.BytesIO()
            torch.save({"episode": {"state": torch.zeros(4)}}, saved)
            saved.seek(0)
            model(torch.ones(1, 16))
            torch.load(saved)
            return learned(model, optimizer, 3)

        with contextlib.redirect_stderr(io.StringIO()) as said:
            self.check_sound("called_state", train, 3)
        self.assertNotIn("no longer checked", said.getvalue())

    @is_sound(4, optimizer=4)
    def test_a_thread_that_calls_a_model_first_is_not_the_one_that_trains(self):
        thread = threading.Thread(target=nn.Linear(16, 4), args=(torch.ones(1, 16),))
        thread.start()
        thread.join()
        return learned(*make_alone(), 4)

    def test_ranks_find_together_where_the_program_says_so(self):
        with Observed("together") as observed:
            model, optimizer = make_alone()
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
                if self.teacher == ():
                    self.teacher = None  # of the copy
                    self.teacher = [copy.deepcopy(self)]
                return (self.teacher[0](x).detach() if self.teacher else 0) + super().forward(x)

        self.check_sound("copied", lambda: learned(*make_alone(Model), 3), 3, forward=3)


if __name__ == "__main__":
    main()

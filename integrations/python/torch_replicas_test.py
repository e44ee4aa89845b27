"""Trainings whose ranks share a model in unusual ways: hooks, Join, tied weights, steps by closures, models that one rank alone has.
Observed, each learns what it learns without, and has no finding."""

import contextlib
import copy
import io
import json
import threading
import unittest
import unittest.mock

import torch
import torch.distributed as dist
import torch.distributed.algorithms.ddp_comm_hooks.default_hooks
from torch import nn
from torch_for_test import IS_2, RANK, WORLD, Block, Observed, ObservedTestCase, batches, digest, is_sound, learn, learn_by_closures
from torch_for_test import learn_one, learned, loss_of, main, make, make_alone, make_wrapped, reduce_nothing

import optim_test_tools as ott
from optim_test_tools.torch import _job, _sound_training


def every(replicated, distinct="data.*"):
    """Has each iteration checked."""
    return {"cross_check": {"iterations": {"every": 1}, "replicated": replicated, "distinct": [distinct]}}


def make_own():
    """Returns a small model that a rank trains for itself, and its optimizer."""
    own = nn.Linear(16, 4)
    return own, torch.optim.SGD(own.parameters(), lr=0.1)


def make_with_late_hook(hook):
    """Returns a model whose hook came between its first forward and backward pass, and its optimizer."""
    model, optimizer = make()
    loss = loss_of(model, next(iter(batches(1))))
    model.register_comm_hook(model.process_group, hook)
    loss.backward()
    optimizer.step()
    return model, optimizer


class ReplicasTest(ObservedTestCase):
    @is_sound(4, dist__gradients=4)
    def test_a_communication_hook_may_come_after_the_first_pass(self):
        def hook(state, bucket):
            return state.allreduce([bucket.buffer().mul_(0.25)]).get_future().then(lambda future: future.value()[0])

        return learned(*make_with_late_hook(hook), 3)

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
            model, optimizer = make()
            loss = loss_of(model, next(iter(batches(1)))) if is_late else None
            model.register_comm_hook(None, hook)
            if loss is not None:
                loss.backward()
            return learned(model, optimizer, 3)

        self.check_sound("callbacks", lambda: train(False), 3, dist__gradients=3)
        self.check_sound("late_callbacks", lambda: train(True), 3, dist__gradients=4)

    @is_sound(3)
    def test_a_communication_hook_that_pytorch_refuses_is_refused(self):
        def hook(state, bucket: int):
            return reduce_nothing(state, bucket)

        model, optimizer = make()
        with self.assertRaisesRegex(ValueError, "bucket annotation"):
            model.register_comm_hook(None, hook)
        return learned(model, optimizer, 3)

    @unittest.skipUnless(IS_2, "PyTorch 1.13 has no such replicate()")
    @is_sound(3, dist__gradients=3)
    def test_a_model_may_be_replicated_without_a_wrapper(self):
        from torch.distributed._composable import replicate

        return learned(*make_alone(lambda: replicate(Block())), 3)

    @is_sound(3)
    def test_sparse_batches_of_one_shape_are_told_apart(self):
        class Graph(nn.Linear):
            def forward(self, x):
                return torch.sparse.mm(x, self.weight.t()) + self.bias

        model, optimizer = make_wrapped(lambda: Graph(16, 4))
        for rows in (4, 5, 6):
            learn_one(model, optimizer, (torch.rand(rows, 16).to_sparse(), torch.randint(4, (rows,))))
        return digest(model)

    @is_sound(3)
    def test_sparse_gradients_may_be_added_up_by_hand_and_batches_be_nested(self):
        class Bags(nn.Sequential):
            def forward(self, x):
                return self[1](self[0](x.values().long() if x.is_nested else x.long(), torch.tensor([0, 2])))

        model, optimizer = make_alone(lambda: Bags(nn.EmbeddingBag(20, 16, sparse=True), nn.Linear(16, 4)))
        torch.manual_seed(10 + RANK)
        for _ in range(3):
            rows = 20 * torch.rand(5)
            x = torch.nested.nested_tensor([rows[:2], rows[2:]]) if IS_2 else rows
            optimizer.zero_grad()
            loss_of(model, (x, torch.randint(4, (2,)))).backward()
            for p in model.parameters():
                p.grad = p.grad.coalesce() if p.grad.is_sparse else p.grad
                dist.all_reduce(p.grad)
            optimizer.step()
        return digest(model)

    @is_sound(3 + RANK)
    def test_gradients_may_be_divided_by_the_ranks_that_still_have_batches(self):
        model, optimizer = make()
        with model.join(divide_by_initial_world_size=False):
            return learned(model, optimizer, 3 + RANK)

    def test_ranks_whose_numbers_of_batches_differ_are_not_compared(self):
        from torch.distributed.algorithms.join import Join
        from torch.distributed.optim import ZeroRedundancyOptimizer

        def train():
            model, _ = make()
            optimizer = ZeroRedundancyOptimizer(model.parameters(), optimizer_class=torch.optim.SGD, lr=0.1)
            for _ in range(2):
                with Join([model, optimizer]):
                    learn(model, optimizer, 3 + RANK)
            return digest(model)

        with contextlib.redirect_stderr(io.StringIO()) as said:
            observed = self.check_sound("joined_epochs", train, 6 + 2 * RANK, {"cross_check": {"iterations": {"every": 5}}})
        self.assertEqual(observed.verdicts(), [])
        self.assertEqual("under Join ranks have iterations of their own numbers" in said.getvalue(), RANK == 0)

    def test_the_observation_ends_where_ranks_join_that_are_checked(self):
        def train():
            model, optimizer = make()
            learn(model, optimizer, 1)
            with model.join():
                return learned(model, optimizer, 3 + RANK)

        said = io.StringIO()
        alone = train()
        with contextlib.redirect_stderr(said), Observed("late_join"):
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

        with contextlib.redirect_stderr(io.StringIO()) as said, Observed("without_group"):
            train()
            with unittest.mock.patch.object(dist, "get_world_size", side_effect=ValueError("not initialized")):
                ott.torch.finish()
        self.assertNotIn("no longer checked", said.getvalue())

    def test_a_rank_that_is_not_observed_is_not_waited_for(self):
        model, optimizer = make()
        with unittest.mock.patch.multiple(_job, _is_announced=True, _SECONDS_TO_ANNOUNCE=0.1), contextlib.redirect_stderr(io.StringIO()) as said:
            if RANK == 0:
                _job.announce()
            dist.barrier()
            with Observed("alone"):
                for batch in batches(2):
                    loss_of(model, batch).backward()
                    optimizer.step()
        self.assertIn("no longer observed: TimeoutError: rank 1 did not say", said.getvalue())

    def test_ranks_that_are_started_anew_with_the_same_store_find_no_old_address(self):
        store = dist.distributed_c10d._get_default_store()
        dist.barrier()
        before = store.num_keys()
        dist.barrier()
        _job.find_ranks(nn.Linear(1, 1) if RANK == 0 else None)
        dist.barrier()
        self.assertEqual(store.num_keys(), before)

    @is_sound(4, dist__gradients=6)
    def test_a_distributed_module_is_copied_and_saved_as_a_whole(self):
        model, optimizer = make()
        hooked, its = make()
        hooked.register_comm_hook(None, dist.algorithms.ddp_comm_hooks.default_hooks.fp16_compress_hook)
        for batch in batches(3):
            learn_one(model, optimizer, batch)
            learn_one(hooked, its, batch)
        saved = io.BytesIO()
        torch.save([model, hooked], saved)
        return digest(model, copy.deepcopy(model), copy.deepcopy(hooked)), b"optim_test_tools" in saved.getvalue()

    def test_a_communication_hook_that_comes_late_leaves_replicas_different(self):
        def train():
            return learned(*make_with_late_hook(reduce_nothing), 100, max_norm=0.1)

        observed = self.check_sound("late_local_steps", train, 101)
        outcomes = [verdict["outcome"] for verdict in observed.verdicts()]
        self.assertEqual(outcomes, ["NOT_COMPARED", "ALL_DISTINCT"] * 2)

    @is_sound(3, dist__gradients=3, compared=1)
    def test_a_distributed_module_may_be_a_part_of_the_model(self):
        wrapped, optimizer = make()
        learn(nn.Sequential(wrapped, nn.Linear(4, 4).requires_grad_(False)), optimizer, 3)
        return digest(wrapped)

    @is_sound(3, compared=1)
    def test_a_layer_that_has_none_but_tied_parameters_is_compared_by_their_name(self):
        class Tied(Block):
            def __init__(self):
                super().__init__()
                self.last = nn.Linear(4, 4, bias=False)
                self.alike = nn.ModuleList([self.last])

            def forward(self, x):
                return self.alike[0](self.last(super().forward(x)))

        return learned(*make_wrapped(Tied), 3)

    @is_sound(3, dist__gradients=3, compared=1)  # by a hook, as 2 is a power of 2
    def test_a_model_trains_within_a_distributed_module_that_is_in_eval_mode(self):
        model, optimizer = make(gradient_as_bucket_view=True)
        model.eval()
        model.module.train()
        return learned(model, optimizer, 3)

    @is_sound(3, forward=3, dist__gradients=3, compared=1)
    def test_replicas_are_checked_whose_first_pass_is_in_a_closure(self):
        return learn_by_closures(*make(), 3)

    @unittest.skipUnless(IS_2, "FSDP2 is newer")
    def test_a_parameter_whose_memory_was_taken_back_is_not_read(self):
        parameter = nn.Parameter(torch.ones(8))
        self.assertEqual(_sound_training.sample_of(parameter).tolist(), [1.0] * 8)
        parameter.untyped_storage().resize_(0)
        self.assertIsNone(_sound_training.sample_of(parameter))

    def test_a_distributed_module_that_was_made_before_is_looked_at(self):
        model, optimizer = make()
        with Observed("made_before") as observed:
            ott.torch.observe(model, optimizer)
            for batch in batches(3):
                optimizer.zero_grad()
                with model.no_sync():
                    loss_of(model, batch).backward()
                optimizer.step()
        self.assertIn("gradients_not_reduced", ott._ott.describe_unsound(observed.dir))

    def test_a_model_that_each_rank_trains_for_itself_is_clipped(self):
        def train():
            (model, optimizer), (own, its) = make(), make_own()
            for batch in batches(3):
                learn_one(model, optimizer, batch, 0.1)
                learn_one(own, its, batch, 0.1)
            return digest(model, own)

        every = {"cross_check": {"iterations": {"every": 1}, "replicated": ["state.*"]}}
        observed = self.check_sound("of_its_own", train, 3, every)
        self.assertEqual({verdict["outcome"] for verdict in observed.verdicts()}, {"BITWISE_EQUAL"})

    @is_sound(3, {"cross_check": {"iterations": {"every": 1}}}, compared=3)
    def test_a_check_that_says_only_when_looks_at_what_replicas_share(self):
        model, optimizer = make()
        for batch in batches(3):
            learn_one(lambda x: model(x=x), optimizer, batch)
        return digest(model)

    def test_a_model_that_some_ranks_share_is_not_compared_on_all(self):
        def train():
            groups = [dist.new_group([rank]) for rank in range(WORLD)]
            torch.manual_seed(3 + RANK)
            model = nn.parallel.DistributedDataParallel(Block(), process_group=groups[RANK])
            return learned(model, torch.optim.SGD(model.parameters(), lr=0.1), 3)

        self.assertEqual(self.check_sound("of_groups", train, 3).verdicts(), [])

    def test_rates_of_iterations_that_are_not_checked_are_compared(self):
        def train():
            model, optimizer = make()
            for i, batch in enumerate(batches(3)):
                optimizer.param_groups[0]["lr"] = 0.05 if i == 1 and RANK == 1 else 0.1
                learn_one(model, optimizer, batch)

        observed = self.check("rates", train, 3, {"cross_check": {"iterations": {"every": 2}, "replicated": ["state.*"]}})
        first, second = observed.verdicts()
        self.assertEqual(first["outcome"], "BITWISE_EQUAL")
        self.assertIn("state.learning_rates_so_far", json.dumps(second))

    @is_sound(4, every(["state.counts.*"]), compared=4)
    def test_what_is_alike_on_all_ranks_on_purpose_is_no_batch(self):
        class Rows:
            def __init__(self, x):
                self.x = x

        class Model(Block):
            def forward(self, rows, time):
                return super().forward(rows.x) * time.exp()

        (model, optimizer), of_time = make_wrapped(Model), nn.Linear(2, 1)
        for i, (x, y) in enumerate(batches(4)):
            scale = of_time(torch.tensor([i / 4, 1.0])).detach()
            evaluated = model.module.eval()(Rows(torch.ones(2, 16)), scale)
            self.assertTrue(evaluated.requires_grad)
            optimizer.zero_grad()
            nn.functional.cross_entropy(model.train()(Rows(x), torch.tensor(i / 4)), y).backward()
            optimizer.step()
        return digest(model)

    @is_sound(4, every(["state.*"]), compared=4)
    def test_one_rank_may_evaluate_with_gradients(self):
        model, optimizer = make()
        for i, batch in enumerate(batches(4)):
            if i == 2 and RANK == 0:
                model.eval()
                loss_of(model.module, batch)
                loss_of(nn.Linear(16, 4), batch)  # a model of metrics
                model.train()
            learn_one(model, optimizer, batch)
        return digest(model)

    @is_sound(4, compared=1)
    def test_models_that_one_rank_has_are_not_compared(self):
        (model, optimizer), (own, its) = make(), make_own()
        for i, batch in enumerate(batches(4)):
            if i == 0 and RANK == 0:
                loss_of(nn.Linear(16, 4), batch)  # a model of metrics
            learn_one(own, its, batch)
            learn_one(model, optimizer, batch)
        return digest(model, own)

    @is_sound(4, every(["state.*", "parameters.head.*"], "local_grads.*"), compared=4, dist__gradients=4)
    def test_what_one_rank_alone_trains_is_of_no_iteration(self):
        (model, optimizer), (own, its) = make(), make_own()
        for i, batch in enumerate(batches(4)):
            if RANK == 0 and i != 2:
                learn_one(own, its, batch)
            learn_one(model, optimizer, batch)
        return digest(model, own)


if __name__ == "__main__":
    main()

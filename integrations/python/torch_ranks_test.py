"""Trainings whose ranks share their work in many ways: collectives of groups, communication hooks, sharded parameters, stages.
Observed, each learns what it learns without."""

import json
import os
import unittest
import unittest.mock

import torch
import torch.distributed as dist
from torch import nn
from torch_for_test import DIRECTORY, IS_2, RANK, WORLD, Block, ObservedTestCase, backward_passes, batches, digest, learn_one, learned
from torch_for_test import learns_alike, main, make, make_alone, reduce_nothing

import optim_test_tools as ott
from optim_test_tools import _ott
from optim_test_tools.torch import _collectives
from optim_test_tools.torch import _hooks


class RanksTest(ObservedTestCase):
    def test_every_collective_is_measured_with_its_group(self):
        def train():
            model, optimizer = make_alone(Block, 7)
            alone = [dist.new_group([rank]) for rank in range(WORLD)][RANK]
            for batch in backward_passes(model, optimizer, 3):
                for work in [dist.all_reduce(p.grad, async_op=True) for p in model.parameters()]:
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

    @unittest.skipUnless(IS_2, "PyTorch 1.13 has no FSDP2")
    def test_fsdp2(self):
        from torch.distributed.fsdp import fully_shard

        def train():
            torch.manual_seed(9)
            model = Block()
            fully_shard(model.inner)
            fully_shard(model)
            torch.manual_seed(20 + RANK)
            return learned(model, torch.optim.AdamW(model.parameters(), lr=0.01), 3, max_norm=1.0)

        observed = self.check("fsdp2", train, 3, config={"dump": {"iterations": {"list": [1]}}}, forward=3, backward=3)
        _, names = observed.measurements()
        self.assertTrue(any("all_gather" in name for name in names), names)
        self.assertTrue(any("reduce_scatter" in name for name in names), names)
        self.assertEqual([verdict["mode"] for verdict in observed.verdicts()], ["REPLICAS", "DISTINCT"])

    @unittest.skipUnless(IS_2, "PyTorch 1.13 has no FSDP2")
    @learns_alike(4, forward=4, checkpoint=4)
    def test_distributed_checkpoints(self):
        import torch.distributed.checkpoint as dcp
        from torch.distributed.checkpoint.state_dict import get_model_state_dict
        from torch.distributed.fsdp import fully_shard

        model, optimizer = make_alone(lambda: fully_shard(Block()))
        for i, batch in enumerate(batches(4)):
            learn_one(model, optimizer, batch)
            if i % 2:
                path = os.path.join(DIRECTORY, f"distributed_checkpoint{i}")
                dcp.save(get_model_state_dict(model), checkpoint_id=path)
                dcp.load(get_model_state_dict(model), checkpoint_id=path)
        return digest(model)

    def test_a_group_that_the_program_ends_before_the_last_iteration(self):
        kept = []

        def train():
            torch.manual_seed(7)
            group = dist.new_group()
            models = [nn.parallel.DistributedDataParallel(nn.Linear(8, 8), process_group=group) for _ in range(2)]
            optimizers = [torch.optim.SGD(model.parameters(), lr=0.1) for model in models]
            for _ in range(4):
                for model, optimizer in zip(models, optimizers):
                    optimizer.zero_grad()
                    model(torch.rand(4, 8) + RANK).square().mean().backward()
                    optimizer.step()
            dist.destroy_process_group(group)
            kept.extend(models)
            return digest(models[1])

        self.check_sound("ended_group", train, 5)

    def test_a_communication_hook_of_ones_own_stays(self):
        seen = []

        def hook(state, bucket):
            seen.append(bucket.index())
            return state.allreduce([bucket.buffer().mul_(0.25)]).get_future().then(lambda future: future.value()[0])

        def train():
            model, optimizer = make()
            model.register_comm_hook(model.process_group, hook)
            return learned(model, optimizer, 3)

        self.check("own_hook", train, 3, dist__gradients=3)
        self.assertEqual(len(seen), 6)

    def check_replicas(self, observed):
        """What is compared is equal, and nothing else is found."""
        verdicts = observed.verdicts()
        self.assertEqual([verdict["outcome"] for verdict in verdicts if verdict["mode"] == "REPLICAS"], ["BITWISE_EQUAL"])
        self.assertEqual(ott._ott.describe_unsound(observed.dir), "")

    def test_what_a_communication_hook_of_ones_own_leaves_different_is_no_finding(self):
        def train():
            model, optimizer = make()
            model.register_comm_hook(None, reduce_nothing)
            return learned(model, optimizer, 3, max_norm=0.1)

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
            return learned(wrapped, torch.optim.SGD(wrapped.parameters(), lr=0.1), 3)

        self.check_replicas(self.check("experts", train, 3))

    @unittest.skipUnless(IS_2, "PyTorch 1.13 has no DTensor")
    def test_functional_collectives_of_tensor_parallelism_are_seen(self):
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

        def divided():
            model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
            return parallelize_module(model, init_device_mesh("cpu", (WORLD,)), {"0": ColwiseParallel(), "2": RowwiseParallel()})

        every = {"op_log": {"iterations": {"every": 1}}}
        with unittest.mock.patch.object(_ott, "Operation", wraps=_ott.Operation) as operations:
            observed = self.check("tensor_parallel", lambda: learned(*make_alone(divided), 3), 3, every, forward=3, backward=3)
        _, names = observed.measurements()
        self.assertTrue(any(name.startswith("dist.all_reduce") for name in names), names)
        # One operation each, which reads what is given and gets what all ranks get.
        calls = [call[0] for call in operations.call_args_list]
        logged = [(name, len(inputs)) for name, role, *_, inputs in calls if role == "collective"]
        self.assertEqual(logged, [("all_reduce", 1)] * 3)
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
        self.assertEqual(json.loads(observed.text("run.json"))["config"]["stopwatch"]["work_differs_along"], ["pipeline"])
        self.assertIn(True, learning)
        log = observed.log()
        self.assertIn(b"digamma", log)
        self.assertNotIn(b"erfinv", log)  # of memory that holds anything

    def test_work_is_compared_within_replicas_of_one_model(self):
        def train(of_all, depth, width):
            torch.manual_seed(14)
            group = dist.group.WORLD if of_all else [dist.new_group([rank]) for rank in range(WORLD)][RANK]
            model = nn.Sequential(nn.Linear(16, width), *[nn.Linear(width, width) for _ in range(depth)], nn.Linear(width, 4))
            model = nn.parallel.DistributedDataParallel(model, process_group=group)
            return learned(model, torch.optim.SGD(model.parameters(), lr=0.1), 3)

        trainings = {"of_all": (True, 1, 8), "alike": (False, 1, 8), "own_modules": (False, 1 + RANK, 8), "own_shapes": (False, 1, 8 + RANK)}
        for name, model in trainings.items():
            sizes = [WORLD, 1, 1] if name.startswith("own") else None
            with self.subTest(name):
                config = json.loads(self.check(name, lambda: train(*model), 3).text("run.json"))["config"]
                self.assertEqual(config["stopwatch"]["work_differs_along"], ["outer", "inner"] if sizes else [])
                self.assertEqual([[int(axis["size"]) for axis in mesh["axes"]] for mesh in config["mesh"]], [sizes] if sizes else [])

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

        self.check("stages", lambda: train(dist.send, dist.recv), 3, forward=3, backward=3, optimizer=3, dist__send=3, dist__recv=3)
        send, receive = lambda *of: dist.isend(*of).wait(), lambda *of: dist.irecv(*of).wait()
        self.check("stages_started", lambda: train(send, receive), 3, forward=3, backward=3, optimizer=3, dist__isend=3, dist__irecv=3)


if __name__ == "__main__":
    main()

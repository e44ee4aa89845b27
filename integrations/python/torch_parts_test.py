"""Parts of the observation by themselves: names, steps, what the flight recorder is told, records, the log of operations."""

import contextlib
import io
import json
import os
import threading
import unittest
import unittest.mock

import numpy
import torch
import torch.distributed as dist
from torch import nn
from torch_for_test import DIRECTORY, RANK, Block, Observed, batches, learn_one, main

from optim_test_tools.torch import _checkpoints, _collectives, _hooks, _job, _loaders, _modules, _operations, _sound_record, _sound_training, _state, _steps
from optim_test_tools.torch._observer import Observer


class Rows(torch.utils.data.Dataset):
    def __getitem__(self, index):
        return index


class Image(torch.Tensor):
    """Its functions refuse what the program does not do."""

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        raise RuntimeError(f"an image has no {function}")


class PartsTest(unittest.TestCase):
    def test_a_tensor_with_functions_of_its_own_is_read_as_the_tensor_that_it_is(self):
        plain = torch.arange(6.0).reshape(2, 3)
        image = plain.as_subclass(Image)
        self.assertTrue(torch.equal(_state.digest(image), _state.digest(plain)))
        self.assertEqual(_sound_training.sample_digest([image]), _sound_training.sample_digest([plain]))
        for unchanged in (plain, nn.Parameter(plain), plain.to_sparse()):
            self.assertIs(_hooks.local(unchanged), unchanged)

    def test_an_iteration_ends_with_the_step_that_was_last_in_the_first(self):
        owned = {letter: [nn.Parameter(torch.ones(1))] for letter in "ABCa"}
        owned["N"] = owned["A"]

        def lengths(text):
            """Returns how many steps iterations have; a word has those between two forward passes, small letters are of this rank alone."""
            steps, optimizers, found = _steps.Steps(), {}, [0]

            def end():
                steps.finish_iteration()
                found.append(0)

            for word in text.split():
                if steps.may_be_over():
                    end()
                for letter in word:
                    if letter not in optimizers:
                        optimizers[letter] = torch.optim.SGD(owned[letter], lr=1)
                        steps.meet(optimizers[letter])
                    found[-1] += 1
                    if steps.add(optimizers[letter], is_own=letter.islower()):
                        end()
            self.assertEqual((steps.num, steps.num_own), (sum(found), text.count("a")))
            return found

        for text, expected in {
            "A A A": [1, 1, 1, 0],
            "AB AB AB": [2, 2, 2, 0],
            "A B A B": [1, 2, 1],
            "AB A B": [2, 2, 0],
            "AB AA A": [2, 2, 1, 0],
            "BA BN BN": [2, 2, 2, 0],
            "BA BN BA BN": [2, 2, 3, 1],
            "BA BCA": [2, 3, 0],
            "BA CBN": [2, 3, 0],
            "A aA aAa": [1, 2, 2, 1],
        }.items():
            self.assertEqual(lengths(text), expected, text)

    def test_what_the_program_has_is_called_by_its_names(self):
        named, models = _state._Named(), [nn.Linear(1, 1) for _ in range(4)]
        for model, kind in zip(models, ("Net", "Net2", "Net", "Net")):
            named.add(model, kind)
        self.assertEqual([name for name, _ in named], ["Net", "Net2", "Net3", "Net4"])
        self.assertRegex(_hooks.place_of(torch.no_grad()(Rows.__getitem__)), r"^torch_parts_test.py:\d+$")
        subset = torch.utils.data.Subset(torch.utils.data.Subset(Rows(), [0]), [0])
        self.assertRegex(_loaders.Loaders().name_of(subset), r"^data of Rows, torch_parts_test.py:\d+$")
        for ranks, text in {(0, 1, 2): "0-2", (0, 2): "0,2", (1, 6, 11): "1-11 by 5", (0, 1, 3): "0,1,3"}.items():
            self.assertEqual(_collectives.format_ranks(list(ranks)), text)

    def test_groups_make_a_mesh_where_they_are_a_grid(self):
        grids = {(2,): [4, 1, 1], (0, 1): [2, 2, 1], (2, 3): [2, 2, 1], (0, 2): [1, 2, 2], (1, 3): [1, 2, 2], (0, 1, 2, 3): [1, 4, 1]}
        for ranks in [*grids, (1, 2), (0, 3), (2, 0), (0, 1, 2), (0, 1, 3, 2)]:
            axes = _job._mesh_of("pipeline", ranks, 4).get("axes", [])
            self.assertEqual([axis["size"] for axis in axes], grids.get(ranks, []), ranks)

    def test_numpys_generator_counts_once_it_has_drawn_whichever_it_is(self):
        for generator in (numpy.random.MT19937(3), numpy.random.PCG64(3)):
            state, states = numpy.random.RandomState(generator), _state.RandomGenerators()
            with unittest.mock.patch.object(numpy.random, "get_state", state.get_state):
                self.assertNotIn("numpy", states.digests())
                state.rand()
                drawn = states.digests()["numpy"]
                state.rand()
                self.assertFalse(torch.equal(drawn, states.digests()["numpy"]))

    def test_a_rank_that_says_late_that_it_is_observed_is_not_missed(self):
        store = unittest.mock.Mock(wait=unittest.mock.Mock(side_effect=[RuntimeError("late"), None, None]))
        _job._check_announced(store, 2)
        self.assertEqual(store.wait.call_count, 3)

    def test_where_a_run_lies(self):
        observer = unittest.mock.Mock()
        for given, environment, expected in (("a", "b", "a"), ("", "b", "b"), ("a", "", "a"), ("", "", "ott_runs/train")):
            with unittest.mock.patch.dict(os.environ, OTT_RUN_DIR=environment):
                self.assertEqual(_job.make_config({"run_dir": given}, "train", None, 1, observer, (), {})["run_dir"], expected)
        for directory, shown in ((os.path.abspath("runs/a"), "runs/a"), ("/elsewhere/a", "/elsewhere/a")):
            self.assertEqual(Observer(None, "train")._shown(directory), shown)

    def test_the_flight_recorder_is_told_of_each_call(self):
        x = torch.ones(8)
        for function, args, kwargs, *expected in (
            (dist.all_reduce, (x,), {}, "collective", 32, -1, True),
            (dist.all_reduce, (), {"op": dist.ReduceOp.SUM, "tensor": x}, "collective", 32, -1, True),
            (dist.all_reduce, (x,), {"async_op": True}, "collective", 32, -1, False),
            (dist.broadcast, (x, 0), {}, "collective", -1, -1, False),
            (dist.send, (), {"tensor": x, "dst": 1}, "send", -1, 1, False),
            (dist.recv, (x, 1), {}, "receive", -1, 1, False),
            (dist.recv, (x,), {}, "work", -1, -1, False),
            (dist.batch_isend_irecv, ([],), {}, "work", -1, -1, False),
        ):
            observer = unittest.mock.Mock()
            call = _collectives.Collectives(observer)._around(function.__name__)
            with unittest.mock.patch.object(_collectives, "_ott", unittest.mock.MagicMock()) as told:
                call(unittest.mock.Mock(function=function), *args, **kwargs)
            _, role, _, _, *figures = told.set_operation.call_args[0]
            self.assertEqual([role, *figures], expected, (function, kwargs))
            for seen in (observer.sound.collective, observer.sound.transferred):
                self.assertTrue(all(call[0][-1 if seen is observer.sound.transferred else 3][0] is x for call in seen.call_args_list))

    def test_a_collectives_inputs_and_outputs_are_what_a_rank_gives_and_gets(self):
        x, y = torch.ones(1), torch.zeros(1)
        other, group = RANK + 1, dist.group.WORLD
        for call, args, kwargs, *expected in (
            (dist.all_reduce, (x,), {}, [x], [x]),
            (dist.all_gather, ([y], x), {}, [x], [y]),
            (dist.all_to_all_single, (y, x), {}, [x], [y]),
            (dist.reduce_scatter, (y, [x, x]), {}, [x, x], [y]),
            (dist.gather, (x,), {"gather_list": [y, y]}, [x], [y, y]),
            (dist.gather, (x,), {"dst": other}, [x], []),
            (dist.scatter, (y, [x, x]), {}, [x, x], [y]),
            (dist.scatter, (y,), {"src": other}, [], [y]),
            (dist.reduce, (x, RANK), {}, [x], [x]),
            (dist.reduce, (x, other), {}, [x], []),
            (dist.broadcast, (x,), {"src": RANK}, [x], [x]),
            (dist.broadcast, (x,), {"group_src": RANK}, [x], [x]),
            (dist.broadcast, (x, other), {}, [], [x]),
            (dist.broadcast, (), {"tensor": x, "group_src": other}, [], [x]),
            (dist._broadcast_coalesced, (group, [x, y], 1, RANK), {}, [x, y], [x, y]),
            (dist._broadcast_coalesced, (group, [x, y], 1, other), {}, [], [x, y]),
            (dist.broadcast_object_list, ([x], RANK), {}, [], []),
        ):
            given, named = _collectives.Collectives(unittest.mock.Mock())._by_position(call, args, kwargs)
            found = _collectives._inputs_and_outputs(call.__name__.strip("_"), given, named)
            self.assertEqual([list(map(id, tensors)) for tensors in found], [list(map(id, tensors)) for tensors in expected], (call, kwargs))

    def test_an_operation_reads_nothing_that_it_only_writes(self):
        x, y, indices = torch.ones(3), torch.zeros(3), torch.zeros(3, dtype=torch.int64)
        for run, name, num_inputs, num_outputs in (
            (lambda: torch.add(x, x, out=y), "add", 2, 1),
            (lambda: torch.sort(x, out=(y, indices)), "sort", 1, 2),
            (lambda: torch._foreach_add_([x, y], 1.0), "_foreach_add_", 2, 2),
            (lambda: torch._foreach_zero_([x, y]), "_foreach_zero_", 0, 2),
            (lambda: y.copy_(x), "copy_", 1, 1),
            (lambda: y.log_normal_(), "log_normal_", 0, 1),
            (lambda: y.mul_(2), "mul_", 1, 1),
            (lambda: torch.empty(0).resize_(3), None, 0, 0),
        ):
            observer = unittest.mock.Mock(modules=[], phase="")
            with unittest.mock.patch.object(_operations, "_ott") as told, _operations._Mode(observer):
                run()
            observer.fail.assert_not_called()
            calls = told.Operation.call_args_list
            self.assertEqual([(call[0][0], len(call[0][-1])) for call in calls], [(name, num_inputs)] if name else [])
            outputs = told.Operation.return_value.set_outputs.call_args_list
            self.assertEqual([len(call[0][0]) for call in outputs], [num_outputs] if name else [])

    def test_a_collective_is_logged_once_all_that_it_makes_was_waited_for(self):
        x, y, work = torch.ones(2), torch.zeros(2), object()
        for awaited, now, waited in (
            ([], [x, y], []),
            ([(work, [x, y])], [], [work]),
            ([(x, [x]), (y, [y])], [], [x.view(1, 2), y]),
        ):
            operations, operation = _operations.Operations(unittest.mock.Mock(), self.fail), unittest.mock.Mock()
            operations.finish_when_waited(operation, awaited, now)
            for pending in [object(), torch.ones(2), *waited]:
                self.assertEqual(operation.close.call_count, 0 if awaited else 1)
                operations.waited(pending)
            self.assertEqual(operation.close.call_count, 1)
            outputs = [tensor.data_ptr() for call in operation.set_outputs.call_args_list for tensor in call[0][0]]
            self.assertEqual(outputs, [x.data_ptr(), y.data_ptr()])
        operations.finish_when_waited(operation, [(work, [x])], [])
        operations.end()
        self.assertEqual(operation.close.call_count, 2)

    def test_modules_are_measured_from_their_first_to_their_last_line(self):
        events = []

        class Scope:
            def __init__(self, name):
                self.name, self.is_open = name.split(",")[0], False

            def __enter__(self):
                if self.is_open:
                    raise RuntimeError("open")
                self.is_open = True
                events.append(f"begin {self.name}")

            def __exit__(self, *exception):
                self.is_open = False
                events.append(f"end {self.name}")

        class Again(nn.Module):
            def forward(self, x, depth=1):
                x = self(x, depth - 1) if depth else x
                events.append("works")
                return x

        model = nn.Sequential(nn.Sequential(nn.Linear(1, 1)), Again())
        models = unittest.mock.Mock(modules=model.named_modules, num_added=1)
        modules = _modules.Modules(models, self.fail)
        with unittest.mock.patch.object(_modules._ott, "Scope", Scope), unittest.mock.patch.object(_modules, "_MAX_MODULES", 3):
            modules.begin(True, None)
            model(torch.ones(1))
            modules.end()
        parts = "begin module 0, end module 0, begin module 1, begin module 1, works, end module 1, works, end module 1"
        self.assertEqual(", ".join(events), parts)

    def test_a_loader_that_fed_training_does_so_to_its_end(self):
        loaders, sampler = _loaders.Loaders(), Rows()
        first, second, third = (unittest.mock.Mock(_index_sampler=sampler) for _ in range(3))
        for iterator, evaluates, trains in (
            (first, False, True),
            (second, False, False),
            (second, True, False),
            (first, False, True),
            (second, False, False),
            (third, True, True),
            (third, False, False),
            (second, False, False),
        ):
            self.assertEqual(loaders.next_is_for_evaluation(iterator), evaluates)
            loaders.feeds(training=trains)

    def test_stacks_name_the_programs_line_and_a_culprit_alone_prints(self):
        directory = os.path.join(DIRECTORY, "stacks", f"rank_{RANK:05d}")
        os.makedirs(directory)
        observer = Observer(None, "train")
        observer._run = unittest.mock.Mock(run_dir=os.path.dirname(directory), ranks=unittest.mock.Mock(rank=RANK))
        for culprits in ([RANK], [RANK + 1]):
            thread = threading.Thread(target=observer._keep_stacks, args=({"culprits": culprits},))
            with contextlib.redirect_stderr(io.StringIO()) as said:
                thread.start()
                thread.join()
            self.assertEqual(f"rank {RANK} stands here, thread MainThread" in said.getvalue(), RANK in culprits)
        with open(os.path.join(directory, "stacks.txt"), encoding="utf-8") as file:
            self.assertRegex(file.readline(), rf"^rank {RANK} stands in test_stacks_name\w+, torch_parts_test.py:\d+$")

    def test_a_log_of_operations_has_what_the_training_computes(self):
        def logged(name, **config):
            every = {"iterations": {"every": 1}}
            with unittest.mock.patch.object(_operations, "_ott") as told, Observed(name, {"op_log": every, **config}):
                torch.manual_seed(3)
                model = Block()
                optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
                for x, y in batches(2):
                    learn_one(model, optimizer, (x + torch.empty(4, 16).normal_(), y), 1.0)
            return [(name, phase, len(inputs)) for name, _, _, phase, _, _, inputs in (call[0] for call in told.Operation.call_args_list)]

        found = logged("log", sound={"off": True})
        self.assertFalse(os.path.exists(os.path.join(DIRECTORY, "log", f"rank_{RANK:05d}", "sound.json")))
        self.assertEqual(found, logged("log_and_rules"))
        self.assertEqual(found, logged("log_and_dump", dump={"iterations": {"every": 1}}))
        self.assertEqual({number for name, _, number in found if name == "normal_"}, {0})
        for operation in (("nll_loss_forward", "", 2), ("sgd", "update", 3), ("addmm", "forward", 3)):
            self.assertIn(operation, found)

    def test_a_checkpoint_is_unused_that_has_the_state_of_an_optimizer(self):
        for value, is_unused in (
            ({"state": {0: 1}, "param_groups": []}, True),
            ({"state": {}, "param_groups": []}, False),
            ({"state": {0: 1}}, False),
            (3, False),
        ):
            observer = unittest.mock.Mock()
            checkpoints = _checkpoints.Checkpoints(observer)
            observer.measure.return_value = {"optimizer": value}
            checkpoints._load(None, "file")
            checkpoints.begin_step()
            checkpoints.begin_step()
            said = "file has an optimizer's state in 'optimizer', which no optimizer loaded before the first step: momenta begin at zero"
            self.assertEqual(observer.say.mock_calls, [unittest.mock.call(said)] * is_unused)

    def test_a_record_keeps_the_first_of_what_is_said_and_rows_of_all_iterations(self):
        record = _sound_record.Record(os.path.join(DIRECTORY, f"record{RANK}"))
        for i in range(3000):
            record.fact("rates_differ", "x", [0, 1], i, str(i), ["is_distinct"])
        for seen, is_new in (("first", True), ("second", False)):
            record.not_checked("rates_differ", seen)
            self.assertEqual(record.find("rates_differ", 1, ["x"], seen), is_new)
        self.assertEqual([record.find("rates_differ", 2, [str(i)], "") for i in range(65)], [True] * 63 + [False] * 2)
        record.write()
        with open(record._path, encoding="utf-8") as file:
            written = json.load(file)
        (fact,), rule = written["facts"], next(rule for rule in written["rules"] if rule["name"] == "rates_differ")
        self.assertEqual(fact["iterations"], [*range(64), *range(64, 3000, 4)])
        self.assertEqual((fact["values"], fact["is_distinct"]), ([str(i) for i in fact["iterations"]], True))
        self.assertEqual((rule["num_checks"], rule["not_checked"]), (3000, "first"))
        self.assertEqual((written["findings"][0]["seen"], len(written["findings"])), ("first", 64))


if __name__ == "__main__":
    main()

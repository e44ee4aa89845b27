"""Whatever a program hands over: the right thing, or a Python exception that says what to do, and never a crash."""

import array
import gc
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
import textwrap
import threading
import unittest

import numpy
import torch

import optim_test_tools as ott


def run(program, *arguments, code=0):
    """Runs a program in an interpreter of its own, which must end by itself with this code."""
    answer = subprocess.run([sys.executable, "-P", "-c", textwrap.dedent(program), *arguments], capture_output=True,
                            text=True, timeout=60, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}, check=False)
    assert answer.returncode == code, answer.stderr
    return answer


class DataTest(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp()
        self.dumper = ott.TensorDumper()
        self.dumper.enable(self.dir)

    def tearDown(self):
        self.dumper.disable()

    def tree(self):
        self.dumper.dump()
        with open(os.path.join(self.dir, "0", "tensors.json"), encoding="utf-8") as file:
            return json.load(file)

    def refused(self, exception, text, data, path="p"):
        self.assertRaisesRegex(exception, text, self.dumper.add, path, data)

    def test_wrong_types_name_their_place_and_type(self):
        self.refused(TypeError, r"'p\.a\.1': builtins\.set .* register a converter", {"a": [1, {2}]})
        self.refused(TypeError, "builtins.object", object())
        self.refused(TypeError, "a name in a dict is of type builtins.tuple", {(1, 2): 3})
        self.refused(ValueError, "two names are '1'", {1: 2, "1": 3})
        self.refused(TypeError, "complex", 1j)
        self.refused(TypeError, "the path is of type builtins.int, not str", 1, path=3)
        self.refused(ValueError, "empty", 1, path="a..b")
        self.assertRaisesRegex(ValueError, "jsn", self.dumper.add, "p", 1, format="jsn")
        self.assertRaises(TypeError, self.dumper.add, "p", torch.ones(2), permute_axes=["x"])
        self.assertRaisesRegex(ValueError, "'p'", self.dumper.add, "p", torch.ones(2), permute_axes=[0, 0])
        self.assertEqual(self.tree(), {})

    def test_objects_that_lie_about_themselves_raise_what_they_raise(self):
        class Liar:
            __dlpack_device__ = staticmethod(lambda: (1, 0))

            def __dlpack__(self):
                return 3

        class Raises:
            def __dlpack_device__(self):
                raise KeyError("no device")

            __dlpack__ = None

        class Itself:
            def __array__(self):
                return self

        self.refused(TypeError, "__dlpack__.* no tensor", Liar())
        self.refused(KeyError, "no device", Raises())
        self.refused(TypeError, "Itself", Itself())

    def test_a_tree_that_holds_itself_is_a_recursion_error(self):
        tree = {"a": []}
        tree["a"].append(tree)
        self.refused(RecursionError, "hold itself", tree)
        deep = []
        for _ in range(100000):
            deep = [deep]
        self.refused(RecursionError, "hold itself", deep)

    def test_a_dict_that_changes_while_it_is_read(self):
        class Grows:
            def __init__(self, tree):
                self.tree = tree

            def __dlpack_device__(self):
                return (1, 0)

            def __dlpack__(self):
                self.tree[str(len(self.tree))] = 1
                return numpy.ones(2).__dlpack__()

        tree = {}
        tree["x"] = Grows(tree)
        self.dumper.add("p", tree)
        self.assertEqual(self.tree(), {"p": {"x": [1.0, 1.0]}})

    def test_gaps_and_negative_and_zero_strides_are_read_as_they_are(self):
        x = numpy.arange(24).reshape(4, 6)
        record = numpy.zeros(3, dtype=[("a", "u1"), ("b", "<f4")])
        record["b"] = [1, 2, 3]
        self.dumper.add("p", {"reversed": x[::-1, ::-2], "column": x[:, 1], "broadcast": numpy.broadcast_to(x[0, :2], (2, 2)),
                              "unaligned": record["b"], "empty": x[:0], "fortran": numpy.asfortranarray(x)[1:2],
                              "expanded": torch.ones(1).expand(2), "slice": torch.arange(6)[::2]})
        self.assertEqual(self.tree()["p"], {
            "reversed": x[::-1, ::-2].tolist(), "column": x[:, 1].tolist(), "broadcast": [[0, 1], [0, 1]],
            "unaligned": [1.0, 2.0, 3.0], "empty": [], "fortran": [x[1].tolist()], "expanded": [1.0, 1.0],
            "slice": [0, 2, 4]})

    def test_arrays_without_a_dtype_here_say_what_to_do(self):
        for data in (numpy.array(["a"]), numpy.array([object()]), numpy.ones(2, dtype=">f4"), numpy.ones(2, dtype="g"),
                     numpy.zeros(2, dtype="M8[s]"), numpy.zeros(1, dtype="i4,f4"), numpy.zeros(1, dtype="S3")):
            self.refused(TypeError, "'p': ", data)
        self.refused(TypeError, "datetime64", numpy.datetime64("2020-01-01"))
        self.refused(ott.ResourceExhaustedError, "memory", torch.ones(1).expand(1 << 40, 1 << 20))
        self.dumper.add("p", {"bytes": b"ab", "array": array.array("h", [-1]), "view": memoryview(b"abcd")[::2]})
        self.assertEqual(self.tree(), {"p": {"bytes": [97, 98], "array": [-1], "view": [97, 99]}})

    def test_tensors_of_torch_that_are_none_say_what_to_do(self):
        self.refused(TypeError, "to_dense", torch.eye(2).to_sparse())
        self.refused(TypeError, "meta.*cpu", torch.ones(2, device="meta"))
        distributed = torch.ones(2).as_subclass(type("DTensor", (torch.Tensor,), {"to_local": None}))
        self.refused(TypeError, "full_tensor", distributed)
        self.refused(TypeError, "dequantize", torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8))
        x = torch.tensor([1 + 2j])
        self.dumper.add("p", {"conj": x.conj(), "imag": x.conj().imag, "detached": torch.ones(1, requires_grad=True) * 2})
        self.assertEqual(self.tree(), {"p": {"conj": [[1.0, -2.0]], "imag": [-2.0], "detached": [2.0]}})

    def test_a_tensor_whose_memory_was_freed_is_refused(self):
        for x, of, size in ((torch.ones(1000), slice(None), 0), (torch.ones(10), slice(5, None), 6)):
            y = x[of]
            x.storage().resize_(size)
            self.refused(ValueError, "memory was freed", y)

    def test_what_was_added_lives_on_without_its_source(self):
        for data in (numpy.full(1000, 7.0), torch.full((1000,), 7.0)):
            self.dumper.add(f"p.{len(self.dir)}{type(data).__name__}", data)
        wanted = torch.ones(3, requires_grad=True)
        self.dumper.add_grad("g", {"x": wanted})
        loss = (wanted * 2).sum()
        del data, wanted
        gc.collect()
        self.dumper.set_gradients(loss)
        self.dumper.dump()
        dump = ott.load_dump(os.path.join(self.dir, "0"))
        self.assertTrue(all((x == 7).all() for x in dump.tensors["p"].values()))
        array_ = dump.grads["g"]["x"]
        del dump
        gc.collect()
        self.assertEqual(array_.tolist(), [2.0, 2.0, 2.0])
        with self.assertRaises(ValueError):
            array_[0] = 1

    def test_huge_integers(self):
        self.dumper.add("p", {"uint64": 2**64 - 1, "int64": -(2**63)})
        self.refused(OverflowError, r"'q\.a': an integer beyond 64 bits; dump it as text", {"a": 2**64}, path="q")
        self.refused(OverflowError, "beyond 64 bits", -(10**1000))
        with self.assertRaises(TypeError):
            self.dumper.count = 2**70
        self.assertEqual(self.tree(), {"p": {"uint64": 2**64 - 1, "int64": -(2**63)}})

    def test_surrogates(self):
        self.refused(ValueError, "surrogates.*backslashreplace", {"a": "\udc80"})
        self.refused(ValueError, "surrogates", {"\ud800": 1})
        self.refused(ValueError, "surrogates", 1, path="\ud800")
        self.assertRaises((TypeError, ValueError), self.dumper.push_range, "\ud800")
        self.assertRaises((TypeError, ValueError), ott.compare, "\ud800", "\ud800")
        self.assertRaises((TypeError, ValueError), ott.load_dump, "\ud800")

    def test_a_gradient_function_that_raises_leaves_the_dumper_usable(self):
        w = torch.ones(1, requires_grad=True)
        self.dumper.add_grad("w", w)
        self.assertRaisesRegex(RuntimeError, "does not require grad", self.dumper.set_gradients, torch.ones(()))
        self.dumper.add_grad("v", w)
        self.assertRaises(TypeError, self.dumper.set_gradients, 3)
        self.dumper.add_grad("u", w)
        self.dumper.set_gradients(w.sum())
        self.dumper.dump()
        self.assertEqual(list(ott.load_dump(os.path.join(self.dir, "0")).grads), ["u"])

    def test_other_threads_run_while_a_dump_is_written_and_compared(self):
        x = torch.arange(200_000.0)

        def lets_others_run(call):
            go, ran = threading.Event(), []

            def wait():
                go.wait()
                ran.append(True)

            thread = threading.Thread(target=wait)
            thread.start()
            sys.setswitchinterval(100)  # nobody is asked to let go of the GIL
            try:
                go.set()
                call()
                return bool(ran)
            finally:
                sys.setswitchinterval(0.005)
                thread.join()

        def dump():
            self.dumper.add("x", x)
            self.dumper.dump()

        # This never happens while the GIL is held; else it does as soon as the system lets the other thread run.
        self.assertFalse(any(lets_others_run(lambda: sum(range(1000))) for _ in range(10)))
        self.assertTrue(any(lets_others_run(dump) for _ in range(200)))
        self.assertTrue(any(lets_others_run(lambda: ott.compare(x, x + 1)) for _ in range(200)))

    def test_many_threads_measure_add_and_dump_at_once(self):
        errors, stopwatch = [], ott.Stopwatch()
        stopwatch.enable()
        self.addCleanup(stopwatch.disable)

        def work(number):
            try:
                for i in range(30):
                    with stopwatch("shared"), stopwatch("inner"):
                        self.dumper.add(f"t{number}.{i}", {"x": torch.ones(10)}, "binary")
                    self.dumper.active, self.dumper.count, self.dumper.enabled
                    if i % 10 == 9:
                        self.dumper.dump()
                    if number == 0:
                        self.dumper.discard()
            except Exception as error:  # noqa: BLE001
                errors.append(error)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(errors, [])
        stopwatch.finish_iter()
        counts = {m["name"]: int(m["per_interval"]["count"]) for m in stopwatch.stats()["measurements"]}
        self.assertEqual(counts["shared"], 120)


class StopwatchTest(unittest.TestCase):
    def setUp(self):
        self.stopwatch = ott.Stopwatch()
        self.stopwatch.enable()

    def tearDown(self):
        self.stopwatch.disable()

    def test_wrong_arguments(self):
        for call in (self.stopwatch.start, self.stopwatch.end, self.stopwatch.start_one_time):
            for args, named in ((3,), {}), ((), {}), (("a", "b"), {}), ((), {"nam": "a"}):
                self.assertRaises(TypeError, call, *args, **named)
            self.assertRaisesRegex(ValueError, "surrogates", call, "\ud800")
        with self.assertRaises(TypeError), self.stopwatch(3):
            self.fail()
        with self.assertRaises(TypeError):
            self.stopwatch(name=3).__enter__()
        self.assertRaises((ValueError, RuntimeError), self.stopwatch.enable, num_warmup_iters=-1)
        self.assertRaises(TypeError, self.stopwatch.enable, num_warmup_iters="5")
        self.stopwatch.finish_iter()

    def test_an_exception_inside_a_block_ends_the_interval_and_passes(self):
        with self.assertRaisesRegex(KeyError, "inside"), self.stopwatch("outer"), self.stopwatch("inner"):
            raise KeyError("inside")
        self.stopwatch.finish_iter()
        self.assertIsNotNone(self.stopwatch.mean_seconds_per_interval("outer"))

    def test_a_scope_is_open_once(self):
        scope = self.stopwatch("a")
        with scope:
            self.assertRaisesRegex(RuntimeError, "open already", scope.__enter__)
        with scope:
            pass
        scope.__exit__(None, None, None)
        self.stopwatch.finish_iter()

    def test_it_is_not_switched_off_inside_a_block(self):
        with self.stopwatch("a"):
            self.assertRaisesRegex(RuntimeError, "1 scopes", self.stopwatch.disable)

    def test_a_device_that_is_asked_for_and_not_there_is_an_error(self):
        answer = run("""
            import optim_test_tools as ott
            for call in (lambda: ott.Stopwatch().enable(device_sync="device"),
                         lambda: ott.NVTXRangeWrapper().enable(sync_on_push=True),
                         lambda: ott.TrainingRun({"stopwatch": {"device_sync": "DEVICE_SYNC_DEVICE"}}, ranks="local")):
                try:
                    call()
                    print("on")
                except ott.Error as error:
                    print(error.code)
            stopwatch = ott.Stopwatch()
            if not stopwatch.enabled:
                stopwatch.enable()
            with stopwatch("a"):
                stopwatch.start("b")
                stopwatch.end("b")
            for _ in range(20):
                stopwatch.end("b")
            print(stopwatch.stats()["misuses"])
        """)
        self.assertEqual(len(answer.stdout.splitlines()), 4, answer.stdout)
        self.assertIn("'count': '20'", answer.stdout)
        self.assertEqual(answer.stderr.count("start it first"), 2, answer.stderr)
        self.assertRegex(answer.stderr, r'End\("b"\) at .*:\d+ on thread')

    def test_scopes_that_end_out_of_order_or_on_another_thread_are_misuse(self):
        answer = run("""
            import threading
            import optim_test_tools as ott
            stopwatch = ott.Stopwatch()
            stopwatch.enable(on_misuse="raise")
            def generate(name):
                with stopwatch(name):
                    yield
            a, b = generate("a"), generate("b")
            next(a), next(b)
            try:
                next(a)
            except ott.MisuseError as error:
                print(error)
            except StopIteration:
                print("not noticed")
            scope = stopwatch("c").__enter__()
            def end():
                try:
                    scope.__exit__(None, None, None)
                except ott.MisuseError as error:
                    print(error)
            thread = threading.Thread(target=end)
            thread.start()
            thread.join()
        """)
        self.assertIn('"a"', answer.stdout)
        self.assertIn("scopes must nest", answer.stdout)
        self.assertIn("but began on thread", answer.stdout)

    def test_a_printer_that_raises_is_shown_and_the_training_goes_on(self):
        answer = run("""
            import optim_test_tools as ott
            def fail():
                raise OSError("no paper")
            ott.Stopwatch().enable(print_every_n_iters=1, print=fail)
            ott.Stopwatch().finish_iter()
            print("on")
        """)
        self.assertEqual(answer.stdout, "on\n")
        self.assertIn("no paper", answer.stderr)


class Numbers(torch.utils.data.Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, i):
        with ott.Stopwatch()("load"):
            ott.TensorDumper().add("item", torch.ones(1))
            ott.TensorDumper().dump()
        return i


class ProcessTest(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp()

    def test_workers_of_a_data_loader_measure_for_themselves_and_dump_nothing(self):
        ott.TensorDumper().enable(self.dir, num_writer_threads=1)
        self.addCleanup(ott.TensorDumper().disable)
        ott.Stopwatch().enable()
        self.addCleanup(ott.Stopwatch().disable)
        loader = torch.utils.data.DataLoader(Numbers(), num_workers=2,
                                             multiprocessing_context=multiprocessing.get_context("fork"))
        self.assertEqual(sorted(int(x) for x in loader), list(range(8)))
        self.assertEqual(os.listdir(self.dir), [])
        self.assertIsNone(ott.Stopwatch().mean_seconds_per_interval("load"))

    def test_a_forked_process_leaves_the_run_alone(self):
        answer = run("""
            import os, sys
            import optim_test_tools as ott
            run = ott.TrainingRun({"run_dir": sys.argv[1] + "/run", "stopwatch": {}})
            pid = os.fork()
            if pid == 0:
                try:
                    run.finish_iter()
                except RuntimeError as error:
                    print(error, flush=True)
                del run
                sys.exit(3)
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 3
            run.finish_iter()
            run.finish()
        """, self.dir)
        self.assertIn("forked and is no rank", answer.stdout)
        self.assertIn("stopwatch.pb", os.listdir(os.path.join(self.dir, "run", "rank_00000")))

    def test_pending_dumps_are_written_at_shutdown(self):
        answer = run("""
            import sys, torch
            import optim_test_tools as ott
            dumper = ott.TensorDumper()
            dumper.enable(sys.argv[1], num_writer_threads=1)
            for i in range(20):
                dumper.add("x", torch.full((100000,), float(i)))
                dumper.dump()
            w = torch.ones(3, requires_grad=True)
            dumper.add_grad("g", w)      # never set
            held = ott.Stopwatch()("x")
            ott.Stopwatch().enable()
            held.__enter__()             # never left
        """, self.dir)
        self.assertEqual(answer.stderr, "")
        self.assertTrue((ott.load_dump(os.path.join(self.dir, "19")).tensors["x"] == 19).all())

    def test_threads_that_work_on_as_the_interpreter_ends_are_no_crash(self):
        for _ in range(3):
            answer = run("""
                import itertools, os, sys, threading, numpy
                import optim_test_tools as ott
                dumper, stopwatch = ott.TensorDumper(), ott.Stopwatch()
                dumper.enable(sys.argv[1], num_writer_threads=1)
                stopwatch.enable(print_every_n_iters=1, print=lambda: None)
                x, names = numpy.ones(50000), map(str, itertools.count())
                def work(call, worked):
                    while True:
                        try:
                            call()
                            worked.set()
                        except Exception:  # measured by another thread just then, or nothing is left to do it with
                            pass
                def measure():
                    with stopwatch("add"):
                        dumper.add(next(names), x, "binary")
                    ott.compare(x, x)
                for call in (measure, stopwatch.finish_iter, dumper.dump):
                    worked = threading.Event()
                    threading.Thread(target=work, args=(call, worked), daemon=True).start()
                    worked.wait()
                os.write(1, b"end")
            """, tempfile.mkdtemp())
            self.assertEqual(answer.stdout, "end", answer.stderr)

    def test_a_run_that_nobody_closed_is_closed_at_shutdown(self):
        answer = run("""
            import sys, torch
            import optim_test_tools as ott
            run = ott.TrainingRun({"run_dir": sys.argv[1] + "/run", "dump": {}, "stopwatch": {}})
            ott.TensorDumper().add("x", torch.ones(1))
            run.finish_iter()
            raise KeyError("the training failed")
        """, self.dir, code=1)
        self.assertIn("the training failed", answer.stderr)
        dump = ott.load_dump(os.path.join(self.dir, "run", "rank_00000", "dumps", "0"))
        self.assertEqual(dump.tensors["x"].tolist(), [1.0])

    def test_misuse_inside_a_run_is_an_exception_and_no_abort(self):
        answer = run("""
            import optim_test_tools as ott
            with ott.TrainingRun({"stopwatch": {"on_misuse": "MISUSE_POLICY_ABORT"}}) as run:
                ott.Stopwatch().start("open")
                try:
                    run.finish_iter()
                except ott.MisuseError as error:
                    print(error)
                ott.Stopwatch().end("open")
                run.finish_iter()
        """)
        self.assertRegex(answer.stdout, r'these run, and no iteration counts until they end:\s+"open"')

    def test_no_such_dump_or_configuration(self):
        self.assertRaises(FileNotFoundError, ott.load_dump, self.dir)
        self.assertRaises(FileNotFoundError, ott.TrainingRun, os.path.join(self.dir, "none.textproto"))
        self.assertRaisesRegex(ValueError, "stopwatsch", ott.TrainingRun, {"stopwatsch": {}})
        self.assertRaises(TypeError, ott.TrainingRun, {"stopwatch": object()})
        self.assertRaises(TypeError, ott.TrainingRun, {}, ranks=3)
        self.assertRaisesRegex(ValueError, "as_ is one of", ott.load_dump, self.dir, "jax")
        os.makedirs(os.path.join(self.dir, "0"))
        with open(os.path.join(self.dir, "0", "tensors.json"), "w", encoding="utf-8") as file:
            file.write('{"x": [1, 2')
        self.assertRaisesRegex(ott.Error, "tensors.json", ott.load_dump, os.path.join(self.dir, "0"))
        self.assertFalse(ott.compare(os.path.join(self.dir, "0"), {"x": torch.ones(2)}))


if __name__ == "__main__":
    unittest.main()

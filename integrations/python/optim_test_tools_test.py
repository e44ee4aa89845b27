"""ott with Python's habits: blocks, decorators, exceptions, comparisons that print well, dumps as arrays."""

import gzip
import inspect
import io
import json
import os
import pydoc
import subprocess
import sys
import tempfile
import threading
import unittest
import unittest.mock
from contextlib import redirect_stdout

import numpy
import torch

import optim_test_tools as ott
from optim_test_tools import _errors, _run, accvlab


class StopwatchTest(unittest.TestCase):
    def setUp(self):
        self.stopwatch = ott.Stopwatch()

    def tearDown(self):
        self.stopwatch.disable()

    def test_off_nothing_happens(self):
        self.assertFalse(self.stopwatch.enabled)
        with self.stopwatch("a"):
            self.stopwatch.end("never")
        self.stopwatch.finish_iter()
        self.assertEqual(self.stopwatch.num_measured_iters, 0)
        self.assertIsNone(self.stopwatch.mean_seconds_per_interval("a"))
        self.assertEqual(repr(self.stopwatch), "<ott.Stopwatch, off>")

    def test_blocks_decorators_and_calls_measure(self):
        self.stopwatch.enable(num_warmup_iters=1, collective_measurements=["reduce"], cpu_usage_measurement="outer")

        @self.stopwatch("decorated")
        def double(x, *, factor=2):
            "Doubles."
            return factor * x

        self.stopwatch.start_one_time("load")
        for _ in range(3):
            with self.stopwatch("outer"), self.stopwatch("inner"):
                self.assertEqual(double(2, factor=3), 6)
            for _ in range(2):
                self.stopwatch.start("reduce")
                self.stopwatch.end("reduce")
            self.stopwatch.finish_iter()
        self.stopwatch.end_one_time("load")
        self.assertEqual((double.__name__, double.__doc__), ("double", "Doubles."))
        self.assertEqual(self.stopwatch.num_measured_iters, 2)
        stats = self.stopwatch.stats()
        found = {m["name"]: (int(m["per_interval"]["count"]), m["collective"]) for m in stats["measurements"]}
        wanted = {"outer": (2, False), "inner": (2, False), "decorated": (2, False), "reduce": (4, True)}
        self.assertEqual({name: counts for name, counts in found.items() if counts[0]}, wanted)
        self.assertEqual(stats["cpu_usage"]["measurement"], "outer")
        intervals = self.stopwatch.mean_seconds_per_iteration("reduce") / self.stopwatch.mean_seconds_per_interval("reduce")
        self.assertAlmostEqual(intervals, 2)
        self.assertGreater(self.stopwatch.mean_seconds_per_iteration("outer"), self.stopwatch.mean_seconds_per_iteration("inner"))
        self.assertTrue("decorated" in self.stopwatch.table() and "decorated" in self.stopwatch.csv())
        directory = tempfile.mkdtemp()
        self.stopwatch.write(directory)
        self.assertEqual(sorted(os.listdir(directory)), ["stopwatch.csv", "stopwatch.json", "stopwatch.pb", "stopwatch.txt"])

    def test_enabling_twice_is_a_runtime_error(self):
        self.stopwatch.enable()
        line = inspect.currentframe().f_lineno - 1
        with self.assertRaisesRegex(RuntimeError, f"already enabled at .*optim_test_tools_test.py:{line}"):
            self.stopwatch.enable()
        with self.assertRaises(ott.FailedPreconditionError) as caught:
            self.stopwatch.enable()
        self.assertEqual(caught.exception.code, "FAILED_PRECONDITION")

    def test_the_table_is_printed_or_a_function_called(self):
        calls = []
        self.stopwatch.enable(print_every_n_iters=2, print=lambda: calls.append(self.stopwatch.num_measured_iters))
        for _ in range(5):
            self.stopwatch.finish_iter()
        self.assertEqual(calls, [2, 4])

    def test_the_table_goes_where_the_program_wants(self):
        lines = []
        ott.set_text_sink(lines.append)
        self.addCleanup(ott.set_text_sink, None)
        self.stopwatch.enable(print_every_n_iters=1)
        with self.stopwatch("forward"):
            pass
        self.stopwatch.finish_iter()
        self.assertEqual(len(lines), 1)
        self.assertIn("forward", lines[0])

    def test_a_measurement_may_end_on_another_thread(self):
        self.stopwatch.enable()
        self.stopwatch.start("a")
        thread = threading.Thread(target=self.stopwatch.end, args=("a",))
        thread.start()
        thread.join()
        self.stopwatch.finish_iter()

    def test_accvlabs_and_ours_are_one(self):
        accvlab.Stopwatch(0, None, False)
        self.assertTrue(self.stopwatch.enabled)
        with self.stopwatch("a"):
            pass
        accvlab.Stopwatch().start_meas("b")
        self.stopwatch.end("b")
        self.stopwatch.finish_iter()
        self.assertEqual(accvlab.Stopwatch().get_num_nonwarmup_iters_measured(), 1)


class RangesTest(unittest.TestCase):
    def test_ranges_are_blocks_and_decorators(self):
        nvtx = ott.NVTXRangeWrapper()
        with nvtx("off"):
            pass
        try:
            nvtx.enable(keep_track_of_range_order=True, on_misuse="raise")
        except NotImplementedError as error:
            self.assertIn("NVTX", str(error))  # a build without it says so
            return
        self.addCleanup(nvtx.disable)

        @nvtx("decorated")
        def f():
            return 5

        with self.assertRaises(KeyError), nvtx("a"):
            self.assertEqual(f(), 5)
            raise KeyError
        with self.assertRaises(ott.MisuseError), nvtx("a"):
            nvtx.push("b")
        nvtx.pop("a")


class DumpTest(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp()
        self.dumper = ott.TensorDumper()
        self.dumper.enable(self.dir, rank=2, world_size=4)

    def tearDown(self):
        self.dumper.disable()

    def test_dumps_are_read_back_as_numpy_and_as_torch(self):
        torch.manual_seed(0)
        tensors = {str(dtype)[6:]: torch.randn(2, 3).mul(3).to(dtype) for dtype in (
            torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int8, torch.int16, torch.int32, torch.int64,
            torch.uint8, torch.bool, torch.complex64, torch.complex128)}
        for format in ("json", "binary"):
            self.dumper.add(format, tensors, format)
        self.dumper.add("numbers", {"list": [1, 2.5, None, "x"]})
        self.dumper.dump()
        for as_ in ("numpy", "torch"):
            dump = ott.load_dump(os.path.join(self.dir, "0"), as_)
            self.assertEqual((dump.iteration, dump.rank, dump.world_size, dump.grads), (0, 2, 4, None))
            self.assertEqual(dump.tensors["numbers"], {"list": [1, 2.5, None, "x"]})
            for format in ("json", "binary"):
                for name, tensor in tensors.items():
                    loaded = dump.tensors[format][name]
                    if as_ == "torch":
                        self.assertEqual(loaded.dtype, tensor.dtype)
                        self.assertTrue(torch.equal(loaded, tensor))
                    else:
                        expected = tensor.float() if name == "bfloat16" else tensor
                        self.assertTrue(numpy.array_equal(loaded, expected.numpy()), name)
                        self.assertEqual(loaded.dtype, expected.numpy().dtype)

    def test_dlpack_and_the_buffer_protocol_are_read(self):
        x = numpy.arange(6, dtype=numpy.int16).reshape(2, 3)
        methods = {name: lambda self, name=name: getattr(x.T, name)() for name in ("__dlpack_device__", "__dlpack__")}
        self.dumper.add("d", {"dlpack": type("OnlyDLPack", (), methods)(), "buffer": memoryview(x), "array": x})
        self.dumper.dump()
        loaded = ott.load_dump(os.path.join(self.dir, "0")).tensors["d"]
        self.assertTrue(numpy.array_equal(loaded["dlpack"], x.T))
        self.assertTrue(numpy.array_equal(loaded["buffer"], x) and numpy.array_equal(loaded["array"], x))

    def test_memory_is_referred_to_and_not_copied(self):
        x = numpy.zeros(4)
        self.assertTrue(ott.compare({"x": x}, {"x": x}).bitwise_equal)
        self.dumper.add("x", x)
        self.dumper.dump()
        loaded = ott.load_dump(os.path.join(self.dir, "0"), "raw").tensors["x"]
        self.assertTrue(numpy.shares_memory(numpy.asarray(loaded), numpy.asarray(loaded)))
        before = sys.getrefcount(x)
        ott.compare(x, x)
        self.assertEqual(sys.getrefcount(x), before)

    def test_formats_overrides_axes_and_ranges(self):
        x = torch.arange(6.0).reshape(2, 3)
        self.dumper.push_range("step")
        self.dumper.add("d", {"a": x, "b": {"c": x}, "no": 1}, "npy", format_overrides={"b": "json"}, permute_axes=(1, 0),
                        permute_axes_overrides={"c": ()}, exclude=["no"])
        self.dumper.add_grad("g", {"x": x.requires_grad_(), "no": x}, exclude=["no"])
        self.dumper.set_gradients(x.sum())
        self.dumper.pop_range()
        self.assertRaises(ott.FailedPreconditionError, self.dumper.pop_range)
        self.dumper.dump()
        with open(os.path.join(self.dir, "0", "tensors.json"), encoding="utf-8") as file:
            self.assertEqual(json.load(file), {"step": {"d": {"a": "step.d.a.npy", "b": {"c": x.tolist()}}}})
        array = numpy.load(os.path.join(self.dir, "0", "[tensors.json]step.d.a.npy"))
        self.assertTrue((array == x.detach().t().numpy()).all())
        self.assertEqual(list(ott.load_dump(os.path.join(self.dir, "0")).grads["step"]["g"]), ["x"])

    def test_paused_and_counted(self):
        self.dumper.pause()
        self.assertFalse(self.dumper.active)
        self.dumper.add("x", lambda: self.fail("called while paused"))
        self.dumper.resume()
        self.dumper.count = 7
        self.dumper.add("x", lambda: torch.ones(1))
        self.dumper.dump()
        self.dumper.dump(dump_if_empty=False)
        self.assertEqual((self.dumper.count, os.listdir(self.dir)), (8, ["7"]))

    def test_what_is_pending_is_compared(self):
        for value in (1.0, 1.0, 2.0):
            self.dumper.count = 0
            self.dumper.add("x", torch.full((2,), value))
            if not os.path.exists(os.path.join(self.dir, "0")):
                self.dumper.dump()
            else:
                self.assertEqual(bool(self.dumper.compare()), value == 1.0)

    def test_a_folder_that_cannot_be_made_is_named_and_by_writer_threads_at_flush(self):
        for num_writer_threads in (0, 1):
            self.dumper.disable()
            self.dumper.enable("/dev/null/x", num_writer_threads=num_writer_threads)
            self.dumper.add("x", torch.ones(1))
            if num_writer_threads:
                self.dumper.dump()
            self.assertRaisesRegex(ott.Error, "/dev/null", self.dumper.flush if num_writer_threads else self.dumper.dump)


class CompareTest(unittest.TestCase):
    def test_verdicts(self):
        x = torch.arange(6.0).reshape(2, 3)
        self.assertIs(ott.compare(x, x.clone()).verdict, ott.Verdict.EQUAL)
        self.assertIs(ott.compare(x, x + 1).verdict, ott.Verdict.DIFFERENT)
        self.assertIs(ott.compare({}, {}).verdict, ott.Verdict.COULD_NOT_COMPARE)
        self.assertEqual(str(ott.Verdict.COULD_NOT_COMPARE), "could not compare")
        self.assertTrue(ott.compare({}, {}, allow_empty=True))
        self.assertFalse(ott.compare({"a": x}, {"b": x}))
        self.assertTrue(ott.compare({"a": x}, {"a": x, "b": x}, allow_extra=True))
        self.assertFalse(ott.compare(x, x.double()))
        self.assertTrue(ott.compare(x, x.double(), compare_dtype=False))

    def test_tolerances(self):
        x = torch.ones(3)
        self.assertFalse(ott.compare(x, x + 1e-3))
        self.assertTrue(ott.compare(x, x + 1e-3, atol=2e-3))
        self.assertTrue(ott.compare(x, x + 1e-3, rtol=2e-3))
        self.assertTrue(ott.compare({"a": {"b": x}}, {"a": {"b": x + 1e-3}}, tolerances={"a.*": (1e-2, 0)}))
        self.assertTrue(ott.compare(x, x + 1e-6, default_tolerances=True))
        nan = torch.tensor([float("nan")])
        self.assertFalse(ott.compare(nan, nan))
        self.assertTrue(ott.compare(nan, nan, nan_equal=True))
        self.assertFalse(ott.compare(torch.tensor([0.0]), torch.tensor([-0.0]), bitwise=True))
        for number in (-1, float("nan"), float("inf")):
            for given in ({"atol": number}, {"rtol": number}, {"tolerances": {"*": (number, 0)}}):
                self.assertRaisesRegex(ValueError, "atol", ott.compare, x, x + 1, **given)

    def test_it_prints_well(self):
        comparison = ott.compare({"w": torch.zeros(2)}, {"w": torch.tensor([0.0, 0.5])})
        self.assertIn("w: mismatch", str(comparison))
        self.assertTrue(str(comparison).splitlines()[-1].startswith("different"))
        self.assertTrue(repr(comparison).startswith("<ott.Comparison: different"))
        self.assertEqual(comparison.results[0]["max_abs_error"], {"error": 0.5, "index": [1]})
        self.assertIn("<testcase", comparison.junit_xml())
        self.assertIn("mismatch", comparison.csv())
        self.assertRaisesRegex(AssertionError, "w: mismatch", comparison.assert_equal)
        ott.compare(torch.ones(1), torch.ones(1)).assert_equal()

    def test_dumps_on_disk(self):
        directory = tempfile.mkdtemp()
        dumper = ott.TensorDumper()
        dumper.enable(directory)
        self.addCleanup(dumper.disable)
        for value in (1.0, 2.0):
            dumper.add("x", torch.full((2,), value))
            dumper.dump()
        first, second = (os.path.join(directory, name) for name in "01")
        self.assertTrue(ott.compare(first, first))
        self.assertEqual(ott.compare(first, second).results[0]["path"], "x")
        self.assertTrue(ott.compare(first, {"x": torch.ones(2)}))
        self.assertFalse(ott.compare(second, {"x": torch.ones(2)}))
        self.assertRaisesRegex(TypeError, "first argument", ott.compare, {"x": torch.ones(2)}, first)


class RunTest(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp()

    def test_a_run_of_one_rank(self):
        config = {"run_dir": os.path.join(self.dir, "run"), "stopwatch": {"num_warmup_iters": 1},
                  "dump": {"iterations": {"every": 2}}}
        stopwatch, dumper, said = ott.Stopwatch(), ott.TensorDumper(), []
        ott.set_text_sink(said.append)
        self.addCleanup(ott.set_text_sink, None)
        with ott.TrainingRun(config, ranks="local") as run:
            for i in range(4):
                self.assertEqual((run.iteration, dumper.active), (i, i % 2 == 0))
                with stopwatch("forward"):
                    dumper.add("x", torch.full((2,), float(i)))
                run.metric("loss", torch.tensor(0.5 * i))
                run.finish_iter()
            self.assertFalse(run.diverged)
            run.finish()
        self.assertFalse(stopwatch.enabled)
        self.assertEqual("".join(said).count("measured iterations"), 1)
        rank = os.path.join(self.dir, "run", "rank_00000")
        self.assertEqual(sorted(os.listdir(os.path.join(rank, "dumps"))), ["0", "2"])
        with open(os.path.join(rank, "metrics.jsonl"), encoding="utf-8") as file:
            self.assertEqual([json.loads(line) for line in file], [{"step": i, "loss": 0.5 * i} for i in range(4)])
        with open(os.path.join(rank, "stopwatch.json"), encoding="utf-8") as file:
            self.assertIn("forward", [m["name"] for m in json.load(file)["measurements"]])
        self.assertRaisesRegex(RuntimeError, "closed", run.finish_iter)

    def test_a_divergence_is_told(self):
        reference = {"run_dir": os.path.join(self.dir, "a"), "dump": {}}
        checked = {"run_dir": os.path.join(self.dir, "b"), "dump": {},
                   "cross_check": {"iterations": {}, "reference_run": os.path.join(self.dir, "a")}}
        told = []
        for config, value in ((reference, 1.0), (checked, 2.0)):
            with ott.TrainingRun(config, ranks="local") as run:
                run.on_divergence(lambda verdict, text: told.append((verdict, text)))
                ott.TensorDumper().add("x", torch.full((2,), value))
                run.finish_iter()
                self.assertEqual(run.diverged, value == 2.0)
        self.assertEqual(len(told), 1)
        self.assertIn('"x"', told[0][1])
        self.assertEqual(int(told[0][0]["iteration"]), 0)

        def stop(verdict, text):
            raise KeyError(text)

        checked["run_dir"] = os.path.join(self.dir, "c")
        run = ott.TrainingRun(checked, ranks="local")
        self.addCleanup(run.close)
        run.on_divergence(stop)
        ott.TensorDumper().add("x", torch.full((2,), 3.0))
        self.assertRaises(KeyError, run.finish_iter)

    def test_the_configuration_is_a_file_a_dict_or_the_environments(self):
        path = os.path.join(self.dir, "ott.textproto")
        with open(path, "w", encoding="utf-8") as file:
            file.write("stopwatch { num_warmup_iters: 3 }")
        with redirect_stdout(io.StringIO()):
            for config in (path, {"stopwatch": {}}):
                with ott.TrainingRun(config):
                    self.assertTrue(ott.Stopwatch().enabled)
            os.environ["OTT_CONFIG"] = path
            self.addCleanup(os.environ.pop, "OTT_CONFIG")
            with ott.TrainingRun():
                self.assertTrue(ott.Stopwatch().enabled)

    def test_what_started_the_job_says_where_its_ranks_meet(self):
        port = {"RANK": "0", "WORLD_SIZE": "2", "MASTER_PORT": "5"}
        torchrun = {**port, "TORCHELASTIC_RUN_ID": "1"}
        for environment, asked, expected in (
                ({}, "local_ranks", ()), ({"RANK": "0"}, "local_ranks", ()), ({"SLURM_PROCID": "0"}, "local_ranks", ()),
                ({**port, "PMI_SIZE": "2"}, "mpi_ranks", (None, 9.0)),
                ({"SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "2"}, "tcp_ranks", (None, None, None, None, 9.0)),
                (port, "tcp_ranks", (None, None, None, None, 9.0)), (torchrun, "tcp_ranks", (None, 6, None, None, 9.0)),
                ({**torchrun, "MASTER_PORT": "x"}, "tcp_ranks", (None, None, None, None, 9.0)),
                ({**torchrun, "OTT_MASTER_PORT": "7"}, "tcp_ranks", (None, None, None, None, 9.0))):
            with unittest.mock.patch.dict(os.environ, environment, clear=True), unittest.mock.patch.object(_run, "_ott") as made:
                _run.ranks(timeout=9.0)
            self.assertEqual(made.mock_calls[:1], [getattr(unittest.mock.call, asked)(*expected)], environment)
        _run._uses_mpi = False

    def test_ranks_of_one_process(self):
        ranks = ott.ranks("local")
        self.assertEqual((ranks.rank, ranks.size), (0, 1))
        x = torch.ones(3)
        ranks.all_reduce(x)
        ranks.barrier()
        self.assertEqual(x.tolist(), [1, 1, 1])
        self.assertRaises(ValueError, ranks.all_reduce, torch.ones(4)[::2])
        self.assertRaises(TypeError, ranks.all_reduce, torch.ones(2).half())
        self.assertRaises(IndexError, ranks.host, 1)
        ranks.close()
        self.assertRaises(RuntimeError, ranks.barrier)


class EmitNvtxTest(unittest.TestCase):
    def test_operations_are_in_the_trace_of_a_run(self):
        directory = tempfile.mkdtemp()
        w = torch.ones(4, 5, requires_grad=True)
        config = {"run_dir": directory + "/run", "profile": {"active": 1}}
        with redirect_stdout(io.StringIO()), ott.TrainingRun(config, ranks="local") as run:
            try:
                with ott.emit_nvtx():
                    self.assertRaises(ott.FailedPreconditionError, ott.emit_nvtx().__enter__)
                    torch.mm(torch.ones(3, 4), w).sum().backward()
            except NotImplementedError as error:
                self.assertRegex(str(error), "NVTX|LibTorch")  # a build without it says so
                return
            torch.mm(torch.ones(30, 4), w)
            run.finish_iter()
        with open(os.path.join(directory, "run", "rank_00000", "trace.json"), encoding="utf-8") as file:
            trace = file.read()
        for text in ("aten::mm", "MmBackward0", "[[3, 4], [4, 5]]"):
            self.assertIn(text, trace)
        self.assertNotIn("[[30, 4], [4, 5]]", trace)


class ErrorsTest(unittest.TestCase):
    def test_errors_have_the_code_of_their_status_and_are_pythons(self):
        for code, kind in (("NOT_FOUND", FileNotFoundError), ("RESOURCE_EXHAUSTED", OSError), ("DATA_LOSS", OSError),
                           ("ABORTED", RuntimeError), ("DEADLINE_EXCEEDED", TimeoutError), ("INTERNAL", ott.Error)):
            error = _errors.from_status(code, "what")
            self.assertIsInstance(error, kind)
            self.assertEqual((error.code, str(error), isinstance(error, ott.Error)), (code, "what", True))


class NameTest(unittest.TestCase):
    def test_a_package_called_ott_works_beside_it_in_either_order(self):
        directory = tempfile.mkdtemp()
        os.mkdir(os.path.join(directory, "ott"))
        with open(os.path.join(directory, "ott", "__init__.py"), "w", encoding="utf-8") as file:
            file.write("transport = 'optimal'")  # stands for that of ott-jax
        path = os.pathsep.join([directory] + sys.path)
        for order in ("import ott, optim_test_tools", "import optim_test_tools, ott"):
            program = f"""{order}
optim_test_tools.Stopwatch().enable(on_misuse="raise")
with optim_test_tools.Stopwatch()("forward"):
    print(ott.transport, optim_test_tools.compare([1.0], [1.0]).verdict.name)
try:
    optim_test_tools.Stopwatch().end("forward")
except optim_test_tools.MisuseError:
    print("misuse")
"""
            answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                                    env={**os.environ, "PYTHONPATH": path}, check=False)
            self.assertEqual((answer.stdout, answer.returncode), ("optimal EQUAL\nmisuse\n", 0), answer.stderr)


class ProfilerTest(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp()

    def names(self, path):
        with (gzip.open if path.endswith(".gz") else open)(path, "rt", encoding="utf-8") as file:
            return [event["name"] for event in json.load(file)["traceEvents"] if event["ph"] == "X"]

    def test_windows_follow_the_schedule_and_are_exported(self):
        stopwatch = ott.Stopwatch()
        steps = []

        def ready(prof):
            steps.append(prof.step_num)
            prof.export_chrome_trace(os.path.join(self.dir, f"{len(steps)}.json"))

        schedule = ott.profiler.schedule(wait=1, warmup=1, active=1, repeat=2, skip_first=1, skip_first_wait=1)
        with ott.profiler.profile(schedule=schedule, on_trace_ready=ready) as prof:
            for i in range(8):
                with stopwatch(f"step{i}"):
                    prof.counter("loss", 1.0)
                prof.step()
        self.assertEqual(steps, [2, 5])
        self.assertEqual(self.names(os.path.join(self.dir, "1.json")), ["ProfilerStep#2", "step2"])
        self.assertEqual(self.names(os.path.join(self.dir, "2.json")), ["ProfilerStep#5", "step5"])
        later = os.path.join(self.dir, "later.json.gz")
        prof.export_chrome_trace(later)
        self.assertEqual(self.names(later), ["ProfilerStep#5", "step5"])
        for name, rank in {"RANK": 3, "OMPI_COMM_WORLD_RANK": 2}.items():
            with unittest.mock.patch.dict(os.environ, {name: str(rank)}):
                prof.export_chrome_trace(later)
            with gzip.open(later, "rt", encoding="utf-8") as file:
                self.assertEqual(json.load(file)["otherData"]["rank"], rank)

    def test_without_a_schedule_all_is_one_window(self):
        handler = ott.profiler.tensorboard_trace_handler(self.dir, "worker")
        with ott.profiler.profile(on_trace_ready=handler), ott.Stopwatch()("forward"):
            pass
        (file,) = os.listdir(self.dir)
        self.assertRegex(file, r"^worker\.[0-9]+\.pt\.trace\.json$")
        self.assertIn("forward", self.names(os.path.join(self.dir, file)))
        for num_steps in range(3):
            with ott.profiler.profile() as prof:
                for _ in range(num_steps):
                    prof.step()
            self.assertEqual(prof.step_num, max(num_steps, 1))

    def test_what_is_not_recorded_is_refused_and_errors_come_out(self):
        for asked in ({"profile_memory": True}, {"with_stack": True}, {"activities": ["ProfilerActivity.CUDA"]}):
            self.assertRaises(NotImplementedError, ott.profiler.profile, **asked)
        self.assertRaises(TypeError, ott.profiler.profile, schedule=lambda step: None)
        with ott.profiler.profile(activities=["ProfilerActivity.CPU"], with_flops=True,
                                  on_trace_ready=lambda prof: 1 / 0,
                                  schedule=ott.profiler.schedule(wait=0, warmup=0, active=1)) as prof:
            with self.assertRaises(ott.FailedPreconditionError):
                ott.profiler.profile().start()
            self.assertRaises(ZeroDivisionError, prof.step)


class DocumentationTest(unittest.TestCase):
    def test_everything_public_has_a_docstring_and_annotations(self):
        for module in (ott, accvlab, ott.profiler):
            for name in module.__all__:
                thing = getattr(module, name)
                if name.startswith("__"):
                    continue
                self.assertTrue(inspect.getdoc(thing), name)
                if not inspect.isclass(thing) or not thing.__module__.startswith("optim_test_tools.") or name == "Ranks":
                    continue
                for member, function in vars(thing).items():
                    if member.startswith("_") or not inspect.isfunction(function):
                        continue
                    self.assertTrue(function.__doc__, f"{name}.{member}")
                    annotated = set(function.__annotations__) - {"return"}
                    self.assertEqual(annotated, set(inspect.signature(function).parameters) - {"self", "cls"}, f"{name}.{member}")

    def test_help_of_the_stopwatch_reads_well(self):
        text = pydoc.plain(pydoc.render_doc(ott.Stopwatch))
        for part in ("Named measurements over the iterations", "Times are in seconds", "start(self, /, name)"):
            self.assertIn(part, text)

    def test_the_stub_of_the_extension_names_what_it_has(self):
        from optim_test_tools import _ott

        path = os.path.join(os.path.dirname(ott.__file__), "_ott.pyi")
        with open(path, encoding="utf-8") as file:
            stub = file.read()
        names = [name for name in dir(_ott) if not name.startswith("__")] + ["__version__"]
        self.assertEqual([name for name in names if f"def {name}(" not in stub and f"class {name}:" not in stub
                          and f"{name}: str" not in stub], [])


class CheckpointsTest(unittest.TestCase):
    def test_checkpoints_are_compared_by_parts_of_the_state(self):
        with tempfile.TemporaryDirectory() as directory:
            paths = [os.path.join(directory, name) for name in ("a.npz", "b.npz")]
            for path, last in zip(paths, (3.0, 4.0)):
                numpy.savez(path, weight=numpy.array([1.0, 2.0, last]), bias=numpy.zeros(2))
            different = ott.compare_runs(*paths)
            self.assertFalse(different)
            self.assertEqual(different.verdict, ott.Verdict.DIFFERENT)
            self.assertEqual(different.states["weights"]["num_failures"], 1)
            self.assertIn("first divergence: weight: mismatch, first at element 2 [2]", str(different))
            self.assertTrue(ott.compare_runs(*paths, atol=1.0))
            numpy.savez(paths[1], w=numpy.array([1.0, 3.0, 4.0]), bias=numpy.zeros(2))
            layout = os.path.join(directory, "layout")
            with open(layout, "w", encoding="utf-8") as file:
                file.write('a { tensors { path: "weight" whole: "w" } tensors { path: "*" } }')
            self.assertEqual(str(ott.compare_runs(*paths, names=layout, num_worst=2)).count("difference (current - dumped) 1"), 2)
            self.assertRaises(ott.NotFoundError, ott.compare_runs, paths[0], os.path.join(directory, "none.npz"))

    def test_what_a_checkpoint_holds_is_shown(self):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "a.npz")
            numpy.savez(path, weight=numpy.array([[3.0, 4.0, numpy.nan]]))
            shown = ott.show(path)
            self.assertEqual((shown["format"], shown["written_by"]), ("NumPy .npz", ""))
            (weight,) = shown["tensors"]
            self.assertEqual((weight["path"], weight["shape"], weight["num_nan"], weight["max"]), ("weight", [1, 3], 1, 4.0))


if __name__ == "__main__":
    unittest.main()

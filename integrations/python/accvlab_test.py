"""optim_test_tools.accvlab behaves as ACCV-Lab's documentation says of accvlab.optim_test_tools."""

import contextlib
import importlib.machinery
import inspect
import io
import json
import os
import struct
import subprocess
import sys
import tempfile
import types
import unittest
import unittest.mock

import numpy
import torch

import optim_test_tools as ott
from optim_test_tools.accvlab import NVTXRangeWrapper, Stopwatch, TensorDumper

Type = TensorDumper.Type


def read(*parts):
    with open(os.path.join(*parts), "rb") as file:
        return file.read()


INTERFACE = {
    Stopwatch: """
        enable(num_warmup_iters, print_every_n_iters, do_cuda_sync)
        start_meas(name)
        end_meas(name)
        start_one_time_measurement(name)
        end_one_time_measurement(name)
        set_cpu_usage_meas_name(name)
        finish_iter()
        print_eval_times()
        get_num_nonwarmup_iters_measured()
    """,
    NVTXRangeWrapper: """
        enable(sync_on_push, sync_on_pop, keep_track_of_range_order)
        range_push(range_name)
        range_pop(range_name=None)
    """,
    TensorDumper: """
        enable(dump_dir)
        add_tensor_data(path, data, dump_type, dump_type_override=None, permute_axes=None, permute_axes_override=None, exclude=None)
        add_grad_data(path, data, dump_type, dump_type_override=None, permute_grad_axes=None, permute_grad_axes_override=None, exclude=None)
        set_dump_is_compare(COMPARISON)
        compare_to_dumped_data(COMPARISON, compare_if_empty=True)
        dump(dump_if_empty=True)
        set_dump_type_for_all(dump_type, include_tensors=True, include_grads=True)
        set_gradients(function_values)
        set_dump_count(count)
        reset_dump_count()
        push_range(range_name)
        pop_range()
        perform_after_dump_count(count, action)
        register_custom_converter(data_type, converter_func)
        enable_ragged_batch_dumping(as_per_sample=False)
        run_if_enabled(func)
    """,
}
COMPARISON = (
    "eps_numerical_data=1e-06, num_errors_per_tensor_to_show=1, allow_missing_data_in_current=False, "
    "allow_missing_data_in_previous=False, as_warning=False"
)


class InterfaceTest(unittest.TestCase):
    def test_parameters_and_defaults_are_theirs(self):
        for cls, text in INTERFACE.items():
            for line in text.replace("COMPARISON", COMPARISON).split("\n")[1:-1]:
                method = line.strip().partition("(")[0]
                parameters = list(inspect.signature(getattr(cls, method)).parameters.values())[1:]
                given = ", ".join(p.name + ("" if p.default is p.empty else f"={p.default}") for p in parameters)
                self.assertEqual(f"{method}({given})", line.strip())
        kinds = ["JSON", "BINARY", "IMAGE_RGB", "IMAGE_BGR", "IMAGE_I", "PICKLE"]
        self.assertEqual([(kind.value, kind.name) for kind in Type], list(enumerate(kinds)))
        self.assertTrue(Type.is_image(Type.IMAGE_I))
        self.assertFalse(Type.is_image(Type.JSON))

    def test_each_class_has_one_object(self):
        for cls in (Stopwatch, NVTXRangeWrapper, TensorDumper):
            self.assertIs(cls(), cls())

    def test_without_batching_helpers_there_is_a_warning(self):
        program = "import warnings; warnings.simplefilter('error'); from optim_test_tools import accvlab; accvlab.TensorDumper()"
        answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                                env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}, check=False)
        self.assertIn("UserWarning: `accvlab.batching_helpers` is not installed", answer.stderr)


class OffTest(unittest.TestCase):
    """Before enable() nothing happens."""

    def test_the_stopwatch_is_off(self):
        stopwatch = Stopwatch()
        self.assertFalse(stopwatch.is_enabled)
        for call in (stopwatch.end_meas, stopwatch.start_meas, stopwatch.start_meas, stopwatch.end_one_time_measurement,
                     stopwatch.set_cpu_usage_meas_name):
            self.assertIsNone(call("never"))
        with contextlib.redirect_stdout(io.StringIO()) as out:
            self.assertEqual((stopwatch.finish_iter(), stopwatch.print_eval_times()), (None, None))
        self.assertEqual(out.getvalue(), "")
        self.assertEqual(stopwatch.get_num_nonwarmup_iters_measured(), 0)
        self.assertIsNone(stopwatch.start_meas(name=3))

    def test_ranges_are_off(self):
        ranges = NVTXRangeWrapper()
        self.assertFalse(ranges.is_enabled)
        self.assertIsNone(ranges.range_pop("never"))
        self.assertIsNone(ranges.range_push("a"))
        self.assertIsNone(ranges.range_pop())

    def test_the_dumper_is_off(self):
        dumper = TensorDumper()
        self.assertFalse(dumper.is_enabled)

        def fail():
            self.fail("called while off")

        dumper.perform_after_dump_count(0, fail)
        dumper.set_dump_count(0)
        dumper.reset_dump_count()
        dumper.add_tensor_data("a", fail, Type.JSON)
        dumper.add_grad_data("a", fail, "no type")
        dumper.push_range(fail)
        dumper.pop_range()
        dumper.run_if_enabled(fail)
        dumper.set_gradients(None)
        dumper.set_dump_is_compare()
        self.assertIsNone(dumper.compare_to_dumped_data())
        self.assertIsNone(dumper.dump())
        dumper.enable_ragged_batch_dumping()
        dumper.register_custom_converter(int, fail)


class StopwatchTest(unittest.TestCase):
    def tearDown(self):
        ott.Stopwatch().disable()

    def test_averages_and_one_time_measurements_are_printed(self):
        stopwatch = Stopwatch(2, 3, False)
        stopwatch.set_cpu_usage_meas_name("train")
        stopwatch.set_cpu_usage_meas_name("train")
        stopwatch.start_one_time_measurement("all")
        with contextlib.redirect_stdout(io.StringIO()) as out:
            for i in range(5):
                stopwatch.start_meas("train")
                stopwatch.end_meas(name="train")
                if i == 4:
                    stopwatch.start_meas("seldom")
                    stopwatch.end_meas("seldom")
                self.assertEqual(stopwatch.get_num_nonwarmup_iters_measured(), max(0, i - 2))
                stopwatch.finish_iter()
        self.assertEqual(stopwatch.get_num_nonwarmup_iters_measured(), 3)
        text = out.getvalue()
        self.assertEqual(text.count("Num. measured iterations: 3"), 1)
        self.assertIn("Mean CPU usage during `train`:", text)
        self.assertIn("`all`: running", text)
        stopwatch.end_one_time_measurement("all")
        with contextlib.redirect_stdout(io.StringIO()) as out:
            stopwatch.print_eval_times()
        values, section = {}, None
        for line in out.getvalue().splitlines():
            if line.startswith("  `"):
                name, value = line.strip().split(": ")
                values[section, name.strip("`")] = float(value)
            else:
                section = line.rstrip(":")
        total = values["Total runtime", "seldom"]
        self.assertGreater(total, 0)
        self.assertAlmostEqual(values["Average runtime per iteration", "seldom"], total / 3)
        self.assertAlmostEqual(values["Average runtime per measured interval", "seldom"], total)
        self.assertGreater(values["One-time measurements", "all"], total)

    def test_during_warm_up_it_says_so(self):
        stopwatch = Stopwatch()
        stopwatch.enable(num_warmup_iters=2, print_every_n_iters=None, do_cuda_sync=False)
        for text in ("0 of 2", "1 of 2", "nothing measured yet"):
            with contextlib.redirect_stdout(io.StringIO()) as out:
                stopwatch.print_eval_times()
            self.assertIn(text, out.getvalue())
            stopwatch.finish_iter()

    def test_misuse_is_an_assertion_error(self):
        stopwatch = Stopwatch(0, None, False)
        self.assertRaises(AssertionError, stopwatch.enable, 0, None, False)
        self.assertRaises(AssertionError, Stopwatch, 0, None, False)
        self.assertRaisesRegex(AssertionError, "never.*start it first", stopwatch.end_meas, "never")
        stopwatch.start_meas("twice")
        self.assertRaisesRegex(AssertionError, "twice", stopwatch.start_meas, "twice")
        self.assertRaisesRegex(AssertionError, "twice", stopwatch.finish_iter)
        stopwatch.end_meas("twice")
        stopwatch.start_one_time_measurement("once")
        self.assertRaisesRegex(AssertionError, "once", stopwatch.start_one_time_measurement, "once")
        self.assertRaisesRegex(AssertionError, "other", stopwatch.end_one_time_measurement, "other")
        self.assertRaises(ValueError, stopwatch.set_cpu_usage_meas_name, "twice")
        stopwatch.set_cpu_usage_meas_name("usage")
        self.assertRaises(ValueError, stopwatch.set_cpu_usage_meas_name, "another")
        stopwatch.finish_iter()


class RangesTest(unittest.TestCase):
    def tearDown(self):
        ott.NVTXRangeWrapper().disable()

    def test_ranges_that_do_not_nest_are_an_assertion_error(self):
        ranges = NVTXRangeWrapper()
        try:
            ranges.enable(sync_on_push=False, sync_on_pop=False, keep_track_of_range_order=True)
        except NotImplementedError as error:
            self.assertIn("NVTX", str(error))  # a build without it says so
            return
        self.assertRaises(AssertionError, ranges.enable, False, False, True)
        ranges.range_push("outer")
        ranges.range_push(range_name="unexpected")
        self.assertRaisesRegex(AssertionError, "unexpected", ranges.range_pop, "outer")
        ranges.range_pop(range_name="outer")
        self.assertRaises(AssertionError, ranges.range_pop)


class RaggedBatch:
    """Stands for that of accvlab.batching_helpers, as far as dumps need it."""

    def __init__(self, tensor, sample_sizes):
        self.tensor, self.sample_sizes, self.non_uniform_dim, self.num_batch_dims = tensor, sample_sizes, 1, 1

    def split(self):
        return [self.tensor[i, : self.sample_sizes[i]] for i in range(len(self.sample_sizes))]


class DumperTest(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp()
        self.dumper = TensorDumper(self.dir)

    def tearDown(self):
        ott.TensorDumper().disable()

    def tree(self, count=0, name="tensors"):
        return json.loads(read(self.dir, str(count), name + ".json"))

    def dump(self, path, data):
        self.dumper.add_tensor_data(path, data, Type.JSON)
        self.dumper.dump()

    def test_it_is_enabled_once(self):
        self.assertTrue(self.dumper.is_enabled)
        self.assertRaises(RuntimeError, self.dumper.enable, self.dir)
        self.assertRaises(RuntimeError, TensorDumper, self.dir)

    def test_files_are_those_of_json_dump_and_tobytes(self):
        torch.manual_seed(1)
        x = torch.randn(3, 4)
        half = x.half()
        data = {"x": x, "flags": x > 0, "half": half, "list": [x[0], 1, "t\u00e9xt", None, True, (2.5, [])],
                "array": numpy.arange(6.0).reshape(2, 3), "scalar": numpy.float32(0.1), "count": numpy.int64(3),
                "dtype": torch.float32, "kind": int, "nan": float("nan"), 5: torch.tensor(7)}
        self.dumper.add_tensor_data("a.b", data, Type.JSON)
        self.dumper.add_tensor_data("a.bin", {"x": x.t(), "half": half}, Type.BINARY)
        self.assertIsNone(self.dumper.dump())
        expected = {"a": {"b": {
            "x": x.tolist(), "flags": (x > 0).tolist(), "half": half.tolist(),
            "list": [x[0].tolist(), 1, "t\u00e9xt", None, True, [2.5, []]], "array": [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]],
            "scalar": float(numpy.float32(0.1)), "count": 3, "dtype": "torch.float32", "kind": "<class 'int'>",
            "nan": float("nan"), "5": 7}, "bin": {"x": "a.bin.x.bin", "half": "a.bin.half.bin"}}}
        self.assertEqual(read(self.dir, "0", "tensors.json").decode(), json.dumps(expected, indent=2))
        self.assertEqual(read(self.dir, "0", "[tensors.json]a.bin.x.bin"), x.t().contiguous().numpy().tobytes())
        self.assertEqual(read(self.dir, "0", "[tensors.json]a.bin.half.bin"), half.numpy().tobytes())
        self.assertEqual(read(self.dir, "0", "[tensors.json]a.bin.x.bin.meta.json").decode(),
                         json.dumps({"file_data_shape": [4, 3], "file_data_dtype": "torch.float32"}, indent=2))
        binary = [f"[tensors.json]a.bin.{name}.bin{kind}" for name in ("half", "x") for kind in ("", ".meta.json")]
        self.assertEqual(sorted(os.listdir(os.path.join(self.dir, "0"))), [*binary, "manifest.json", "tensors.json"])

    def test_a_dump_without_a_manifest_is_read_and_compared(self):
        # Python's dumper writes none.
        x = torch.tensor([[1.5, -2.0]])
        os.makedirs(os.path.join(self.dir, "0"))
        with open(os.path.join(self.dir, "0", "tensors.json"), "w") as file:
            json.dump({"x": x.tolist()}, file, indent=2)
        self.dumper.add_tensor_data("x", x, Type.JSON)
        self.dumper.compare_to_dumped_data()
        self.assertTrue((ott.load_dump(os.path.join(self.dir, "0")).tensors["x"] == x.numpy()).all())

    def test_the_type_closest_to_the_tensor_counts_and_axes_are_permuted(self):
        x = torch.arange(6.0).reshape(2, 3)
        self.dumper.add_tensor_data(
            "d", {"outer": {"inner": x, "other": x}, "plain": x}, Type.JSON,
            dump_type_override={"outer": Type.BINARY, "inner": Type.JSON}, permute_axes=(1, 0),
            permute_axes_override={"plain": None})
        self.dumper.dump()
        self.assertEqual(self.tree()["d"], {"outer": {"inner": x.t().tolist(), "other": "d.outer.other.bin"},
                                            "plain": x.tolist()})
        self.assertEqual(json.loads(read(self.dir, "0", "[tensors.json]d.outer.other.bin.meta.json")),
                         {"file_data_shape": [3, 2], "file_data_dtype": "torch.float32"})

    def test_names_are_excluded_at_any_level_of_dicts(self):
        data = {"a": torch.ones(1), "no": object(), "in": {"no": object(), "b": 1}}
        self.dumper.add_tensor_data("d", data, Type.JSON, exclude=["no"])
        self.dumper.dump()
        self.assertEqual(self.tree(), {"d": {"a": [1.0], "in": {"b": 1}}})

    def test_ranges_and_callables(self):
        for i in range(2):
            self.dumper.push_range(lambda: f"loop_{i}")
            self.dumper.push_range("inner")
            self.dumper.add_tensor_data("x", lambda: torch.tensor(i), Type.JSON)
            self.dumper.pop_range()
            self.dumper.pop_range()
        self.assertRaises(IndexError, self.dumper.pop_range)
        ran = []
        self.dumper.run_if_enabled(lambda: ran.append(1))
        self.assertEqual(ran, [1])
        self.dumper.dump()
        self.assertEqual(self.tree(), {"loop_0": {"inner": {"x": 0}}, "loop_1": {"inner": {"x": 1}}})

    def test_converters_chain(self):
        Box, Pair = type("Box", (types.SimpleNamespace,), {}), type("Pair", (types.SimpleNamespace,), {})
        self.dumper.register_custom_converter(Box, lambda box: box.corners)
        self.dumper.register_custom_converter(Pair, lambda pair: {"a": pair.a, "b": [pair.b]})
        self.dumper.add_tensor_data("p", Pair(a=Box(corners=torch.ones(2)), b=Box(corners=numpy.zeros(1))), Type.JSON)
        self.assertRaises(TypeError, self.dumper.add_tensor_data, "q", {"x": object()}, Type.JSON)
        self.dumper.dump()
        self.assertEqual(self.tree(), {"p": {"a": [1.0, 1.0], "b": [[0.0]]}})

    def test_ragged_batches_are_samples_or_members(self):
        self.assertRaises(ImportError, self.dumper.enable_ragged_batch_dumping)
        modules = {name: types.ModuleType(name) for name in ("accvlab", "accvlab.batching_helpers")}
        for name, module in modules.items():
            module.__spec__, module.__path__ = importlib.machinery.ModuleSpec(name, None, is_package=True), []
        modules["accvlab.batching_helpers"].RaggedBatch = RaggedBatch
        patched = unittest.mock.patch.dict(sys.modules, modules)
        patched.start()
        self.addCleanup(patched.stop)
        batch = RaggedBatch(torch.arange(6.0).reshape(2, 3), torch.tensor([3, 1]))
        self.dumper.enable_ragged_batch_dumping(as_per_sample=True)
        self.dumper.add_tensor_data("samples", batch, Type.JSON)
        self.dumper.enable_ragged_batch_dumping()
        self.dump("members", batch)
        self.assertEqual(self.tree(), {
            "samples": [[0.0, 1.0, 2.0], [3.0]],
            "members": {"data": [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]], "sample_sizes": [3, 1], "non_uniform_dim": 1,
                        "num_batch_dims": 1}})

    def test_images_are_scaled_and_numbered(self):
        image = torch.arange(24.0).reshape(1, 2, 2, 2, 3)
        self.dumper.add_tensor_data("i", {"rgb": image, "gray": image[0, 0, :, :, 0]}, Type.IMAGE_RGB,
                                    dump_type_override={"gray": Type.IMAGE_I})
        self.dumper.dump()
        self.assertEqual(self.tree(), {"i": {"rgb": [["i.rgb.0.0.png", "i.rgb.0.1.png"]], "gray": "i.gray.png"}})
        self.assertEqual(json.loads(read(self.dir, "0", "[tensors.json]i.rgb.0.1.png.meta.json")),
                         {"original_range": [12.0, 23.0], "image_format": "RGB"})
        png = read(self.dir, "0", "[tensors.json]i.gray.png")
        self.assertEqual(struct.unpack(">II", png[16:24]), (2, 2))

    def test_gradients_are_autograds_and_the_trainings_are_left_alone(self):
        w, unused, plain = torch.tensor([1.0, 2.0], requires_grad=True), torch.ones(1, requires_grad=True), torch.ones(1)
        hidden = w * 3
        values = [(hidden * hidden).sum(), w.sum()]
        self.dumper.add_grad_data("g", {"w": w, "unused": unused, "plain": plain, "list": [hidden]}, Type.JSON)
        self.dumper.add_grad_data("bin", w, Type.BINARY)
        self.dumper.set_gradients(values)
        self.assertIsNone(w.grad)
        sum(values).backward()
        self.dumper.dump()
        self.assertEqual(read(self.dir, "0", "grads.json").decode(), json.dumps(
            {"g": {"w": [19.0, 37.0], "unused": None, "plain": "`.requires_grad == False`", "list": [[6.0, 12.0]]},
             "bin": "bin.bin"}, indent=2))
        self.assertEqual(read(self.dir, "0", "[grads.json]bin.bin"), w.grad.numpy().tobytes())
        self.assertEqual(self.tree(), {})

    def test_gradients_that_were_not_set_are_a_value_error(self):
        w = torch.ones(1, requires_grad=True)
        self.dumper.add_grad_data("w", w, Type.JSON)
        self.assertRaises(ValueError, self.dumper.dump)
        with self.assertRaisesRegex(RuntimeError, "scalar"):
            self.dumper.add_grad_data("w", w, Type.JSON)
            self.dumper.set_gradients(w.expand(2) * 1)
        ott.TensorDumper().discard()

    def test_an_occupied_path_is_an_assertion_error(self):
        self.dumper.add_tensor_data("a", {"x": torch.ones(1)}, Type.JSON)
        self.dumper.add_tensor_data("a", {"y": torch.ones(1)}, Type.JSON)
        self.assertRaises(AssertionError, self.dumper.add_tensor_data, "a", {"x": 1}, Type.JSON)
        self.assertRaises(AssertionError, self.dumper.add_tensor_data, "a.x", torch.ones(1), Type.JSON)
        self.assertRaises(ValueError, self.dumper.add_tensor_data, "b", 3, Type.JSON)
        self.assertRaises(NotImplementedError, self.dumper.add_tensor_data, "c", torch.ones(1), Type.PICKLE)
        self.assertRaises(ValueError, self.dumper.add_tensor_data, "c", torch.ones(1), "JSON")

    def test_set_dump_type_for_all_goes_before_what_the_code_says(self):
        self.dumper.add_tensor_data("before", torch.ones(1), Type.BINARY)
        self.dumper.set_dump_type_for_all(Type.JSON)
        self.dumper.add_tensor_data("after", {"x": torch.ones(1)}, Type.PICKLE, {"x": Type.BINARY})
        self.dumper.dump()
        self.assertEqual(self.tree(), {"before": [1.0], "after": {"x": [1.0]}})

    def test_actions_run_when_the_count_is_reached(self):
        ran = []
        self.dumper.perform_after_dump_count(1, lambda: ran.append("one"))
        self.dumper.perform_after_dump_count(2, lambda: self.fail("replaced"))
        self.dumper.perform_after_dump_count(2, lambda: ran.append("two"))
        self.dumper.perform_after_dump_count(3, exit)
        self.dumper.dump()
        self.dumper.dump(dump_if_empty=False)
        self.assertEqual(ran, ["one"])
        self.dumper.dump()
        self.assertEqual(ran, ["one", "two"])
        self.assertRaises(SystemExit, self.dumper.dump)
        self.dumper.set_dump_count(2)
        self.assertEqual(ran, ["one", "two", "two"])
        self.dumper.reset_dump_count()
        self.dump("x", torch.ones(1))
        self.assertEqual(self.tree(0), {"x": [1.0]})
        self.assertEqual(sorted(os.listdir(self.dir)), ["0", "1", "2"])

    def dump_then_compare(self, first, second, **parameters):
        self.dump("d", first)
        self.dumper.reset_dump_count()
        self.dumper.add_tensor_data("d", second, Type.JSON)
        result = self.dumper.compare_to_dumped_data(**parameters)
        self.assertEqual(ott.TensorDumper().count, 1)
        return result

    def test_equal_data_compare_quietly(self):
        infinite, zeros = torch.tensor([1.0, float("inf")]), torch.zeros(2)
        for first, second, parameters in (
                ({"x": infinite, "n": None, "l": [1, "a"]}, {"x": infinite, "n": None, "l": [1, "a"]}, {}),
                ({"x": zeros}, {"x": zeros + 0.5}, {"eps_numerical_data": 0.5}), ({"x": zeros}, {"x": zeros.double()}, {})):
            self.dumper.reset_dump_count()
            self.assertIsNone(self.dump_then_compare(first, second, **parameters))

    def test_a_difference_is_a_value_error_or_a_warning(self):
        for value in (0.5, float("nan")):
            self.dumper.reset_dump_count()
            with self.assertRaisesRegex(ValueError, r"\bd\.x: "):
                self.dump_then_compare({"x": torch.zeros(2)}, {"x": torch.full((2,), value)})
            self.assertEqual(ott.TensorDumper().count, 1)
        self.dumper.reset_dump_count()
        with self.assertWarnsRegex(UserWarning, r"\bd\.x: "):
            self.dump_then_compare({"x": torch.zeros(2)}, {"x": torch.ones(2)}, as_warning=True)

    def test_the_listed_differences_are_as_listed(self):
        self.dumper.add_tensor_data("", {"x": torch.ones(1)}, Type.JSON)
        self.assertRaises(AssertionError, self.dumper.add_tensor_data, "", torch.ones(1), Type.JSON)
        self.assertRaisesRegex(TypeError, "bad", self.dumper.add_tensor_data, "bad", {"y": object()}, Type.JSON)
        self.dumper.dump()
        self.assertEqual(self.tree(0), {"x": [1.0]})
        self.dumper.reset_dump_count()
        self.assertRaises(ValueError, self.dumper.compare_to_dumped_data, allow_missing_data_in_current=True)

    def test_missing_data_are_allowed_where_asked_for(self):
        x = torch.ones(1)
        less, more = {"x": x}, {"x": x, "y": x}
        for first, second, parameter, other in (
                (more, less, "allow_missing_data_in_current", "allow_missing_data_in_previous"),
                (less, more, "allow_missing_data_in_previous", "allow_missing_data_in_current")):
            self.dumper.reset_dump_count()
            self.assertRaises(ValueError, self.dump_then_compare, first, second, **{other: True})
            self.dumper.reset_dump_count()
            self.dump_then_compare(first, second, **{parameter: True})

    def test_without_a_reference_it_is_a_file_not_found_error(self):
        ran = []
        self.dumper.perform_after_dump_count(1, lambda: ran.append(1))
        self.dumper.add_tensor_data("x", torch.ones(1), Type.JSON)
        self.assertRaises(FileNotFoundError, self.dumper.compare_to_dumped_data)
        self.assertEqual(ran, [1])
        self.assertIsNone(self.dumper.compare_to_dumped_data(compare_if_empty=False))
        self.assertEqual(ott.TensorDumper().count, 1)

    def test_dump_compares_when_told_to(self):
        self.dump("x", torch.ones(1))
        before = read(self.dir, "0", "tensors.json")
        self.dumper.reset_dump_count()
        self.dumper.set_dump_is_compare(eps_numerical_data=0.1)
        self.dump("x", torch.full((1,), 1.05))
        self.dumper.reset_dump_count()
        self.dumper.add_tensor_data("x", torch.full((1,), 1.5), Type.JSON)
        self.assertRaises(ValueError, self.dumper.dump)
        self.dumper.reset_dump_count()
        self.dumper.set_dump_is_compare(allow_missing_data_in_previous=True)
        self.dump("", {"x": torch.ones(1), "y": 1.0})
        self.dumper.dump(dump_if_empty=False)
        self.assertEqual(ott.TensorDumper().count, 1)
        self.assertEqual(read(self.dir, "0", "tensors.json"), before)

    def test_gradients_are_compared_too(self):
        for factor in (2.0, 3.0):
            w = torch.ones(1, requires_grad=True)
            self.dumper.add_grad_data("w", w, Type.JSON)
            self.dumper.set_gradients((w * factor).sum())
            if factor == 2.0:
                self.dumper.dump()
                self.dumper.reset_dump_count()
        self.assertRaisesRegex(ValueError, "grads.w", self.dumper.compare_to_dumped_data)


if __name__ == "__main__":
    unittest.main()

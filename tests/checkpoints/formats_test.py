"""Compares what PyTorch 2.13 and Debian's 1.13 write, in each pair of formats and layouts: formats_test.py OTT.

Equal states have no difference, and each of the faults is found and named.
"""

import collections
import copy
import functools
import itertools
import json
import os
import subprocess
import sys
import tempfile
import unittest

import torch
import writers
from writers import flip_bit, swap, transpose

OTT = sys.argv.pop(1)
OLD_PYTHON = "/usr/bin/python3"


def ott(*arguments, **options):
    return subprocess.run([OTT, *arguments], capture_output=True, text=True, **options)


def step_once_more(state):
    for of_parameter in state["optimizer"]["state"].values():
        of_parameter["step"] += 1


def drop_moment(state):
    for of_parameter in state["optimizer"]["state"].values():
        of_parameter.pop("exp_avg_sq")


# The change, the part of the state that differs, and what is said of the first difference.
WEIGHT_FAULTS = {
    "bit": (lambda state: flip_bit(state["model"], "1.weight", 1, 1), "weights", "1.weight", "flipped bit 20"),
    "swapped": (lambda state: swap(state["model"], "0.bias", "1.bias"), "weights", "0.bias", "1.bias of the reference"),
    "transposed": (lambda state: transpose(state["model"], "1.weight"), "weights", "1.weight", "it is that of the reference, transposed"),
}
STATE_FAULTS = {
    "step": (step_once_more, "optimizer step", "step", "reference 2, current 3"),
    "moment": (drop_moment, "optimizer moments", "exp_avg_sq", "missing"),
}
OTHER_RANDOM = {"torch": torch.Generator().manual_seed(7).get_state()}
RANDOM_FAULTS = {"random": (lambda state: state["rng_state"].update(OTHER_RANDOM), "random numbers", "rng_state.torch", "mismatch")}
FAULTS = {**WEIGHT_FAULTS, **STATE_FAULTS, **RANDOM_FAULTS}


class Made:
    """Made by a call of what another call made."""

    def __init__(self, how):
        self.how = how

    def __reduce__(self):
        return functools.partial(Made, self.how), ()


class FormatsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.mkdtemp()
        same = writers.train()
        cls.states = {"same": same, **{name: copy.deepcopy(same) for name in FAULTS}}
        for name, (change, *_) in FAULTS.items():
            change(cls.states[name])
        cls.whole, cls.trained, cls.weights = list(writers.WHOLE), list(writers.TRAINED), list(writers.WEIGHTS)
        for name in cls.whole + cls.trained + cls.weights:
            # An optimizer that is loaded has all moments, and a module all of its weights' shapes.
            states = {of: state for of, state in cls.states.items() if not (name == "fsdp2" and of == "moment")}
            if name in cls.trained:
                states.pop("random")
            if name in cls.weights:
                states = {of: state for of, state in states.items() if of in ("same", *WEIGHT_FAULTS)}
            writers.write(name, states, cls.directory)
        cls.write_with_old_pytorch()

    @classmethod
    def write_with_old_pytorch(cls):
        states = os.path.join(cls.directory, "states.pt")
        torch.save(cls.states, states)
        if subprocess.run([OLD_PYTHON, "-c", "import torch"], capture_output=True).returncode != 0:
            print("no PyTorch in", OLD_PYTHON, "here: its files are not compared")
            return
        old = os.path.join(cls.directory, "old")
        os.makedirs(old)
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        command = [OLD_PYTHON, writers.__file__, states, old, *writers.OLD_WHOLE, *writers.OLD_WEIGHTS]
        subprocess.run(command, check=True, env=environment)
        cls.whole += ["old/" + name for name in writers.OLD_WHOLE]
        cls.weights += ["old/" + name for name in writers.OLD_WEIGHTS]

    def path(self, name, of):
        return os.path.join(self.directory, f"{name}.{of}")

    def compare(self, reference, current, *flags):
        result = ott("compare", "--format", "json", *flags, reference, current)
        self.assertIn(result.returncode, (0, 1), f"{result.args}\n{result.stdout}{result.stderr}")
        return json.loads(result.stdout)

    def states_of(self, comparison):
        return {state["kind"]: state for state in comparison["dumps"][0]["states"]}

    def pairs(self, *names):
        """Ordered, those that hold the given state."""
        return itertools.permutations([name for group in names for name in group], 2)

    def expect_equal(self, a, b, kinds):
        with self.subTest(reference=a, current=b):
            comparison = self.compare(self.path(a, "same"), self.path(b, "same"), "--bitwise")
            if kinds is None:
                self.assertEqual((comparison["verdict"], comparison["problems"]), ("equal", []))
                return
            for kind in kinds:
                self.assertEqual(self.states_of(comparison)[kind]["num_failures"], 0, kind)

    def expect_named(self, a, b, fault):
        if not os.path.exists(self.path(b, fault)):
            return
        _, kind, name, detail = FAULTS[fault]
        with self.subTest(reference=a, current=b, fault=fault):
            comparison = self.compare(self.path(a, "same"), self.path(b, fault))
            states = self.states_of(comparison)
            self.assertEqual(comparison["verdict"], "different")
            self.assertGreater(states[kind]["num_failures"], 0)
            failing = [of for of, state in states.items() if state["num_failures"] - state["num_missing"] - state["num_extra"] > 0]
            # ZeRO's master weights are the weights.
            expected = [] if fault == "moment" else [kind, "master weights"] if kind == "weights" and "master weights" in failing else [kind]
            self.assertEqual(failing, expected)
            failures = [failure for failure in comparison["dumps"][0]["failures"] if failure["path"].endswith(name)]
            self.assertTrue(failures, comparison["dumps"][0]["failures"])
            said = json.dumps(failures[0]) + ott("compare", self.path(a, "same"), self.path(b, fault)).stdout
            # ZeRO's master weight of a layer is its weight.
            self.assertTrue(detail in said or detail.replace(" of", ".fp32 of") in said, said)

    def test_equal_states_are_equal_in_each_pair(self):
        for a, b in [*self.pairs(self.whole), *self.pairs(self.weights)]:
            self.expect_equal(a, b, None)
        for a, b in self.pairs(self.whole, self.trained):
            if a in self.trained or b in self.trained:
                self.expect_equal(a, b, ["weights"])
        for a, b in itertools.product(self.whole + self.trained, self.weights):
            self.expect_equal(a, b, ["weights"])
            self.expect_equal(b, a, ["weights"])

    def test_moments_and_steps_go_by_name_where_one_side_has_names(self):
        by_name = ["fsdp2", *(name for name in self.trained if name != "accelerate")]
        for a, b in itertools.product([name for name in self.whole if name not in by_name], by_name):
            self.expect_equal(a, b, ["weights", "optimizer moments", "optimizer step"])
            self.expect_equal(b, a, ["weights", "optimizer moments", "optimizer step"])

    def test_each_fault_is_named_in_each_pair(self):
        for faults, references, currents in (
            (FAULTS, self.whole, self.whole),
            (WEIGHT_FAULTS, self.weights, self.weights),
            ({**WEIGHT_FAULTS, **STATE_FAULTS}, ["zip", "fsdp2", *self.trained], self.trained),
        ):
            for fault, a, b in itertools.product(faults, references, currents):
                self.expect_named(a, b, fault)

    def compare_small(self, reference, current):
        paths = [os.path.join(self.directory, name) for name in ("small_a.pt", "small_b.pt")]
        for path, state in zip(paths, (reference, current)):
            torch.save(state, path)
        result = ott("compare", *paths)
        return result.returncode, result.stdout + result.stderr

    def test_what_differs_in_something_small_is_no_silent_pass(self):
        w = torch.arange(6.0).reshape(2, 3)
        z = torch.tensor([1 + 1j])
        nan = torch.tensor([0x7FC00000, 0x7FC00001], dtype=torch.int32).view(torch.float32)

        def with_attribute(tensor, value):
            tensor.tag = value
            return tensor

        def quantized(values):
            return torch.quantize_per_tensor(values, 0.1, 0, torch.qint8)

        for name, a, b in (
            ("dtype", torch.arange(6), torch.arange(6, dtype=torch.int32)),
            ("attribute of a parameter", with_attribute(torch.nn.Parameter(w.clone()), 1), with_attribute(torch.nn.Parameter(w.clone()), 2)),
            ("attribute of a tensor", with_attribute(w.clone(), 1), with_attribute(w.clone(), 2)),
            ("conjugate", z, z.conj()),
            ("negative", z.imag, z.conj().imag),
            ("quantized", quantized(w), quantized(w.flip(0))),
            ("sparse", w.to_sparse(), (w * 2).to_sparse()),
            ("empty", torch.empty(0, 3), torch.empty(3, 0)),
            ("scalar", torch.tensor([2.0]), torch.tensor(2.0)),
            ("NaN payload", nan, nan.flip(0)),
            ("-0", torch.tensor([0.0, 1.0]), torch.tensor([-0.0, 1.0])),
            ("-0 of Python", 0.0, -0.0),
            ("None", None, 0),
            ("empty list", [], {}),
            ("float8 of another kind", *(torch.tensor([v], dtype=torch.uint8).view(torch.float8_e8m0fnu) for v in (1, 9))),
            ("hyperparameter", {"betas": (0.9, 0.999)}, {"betas": (0.9, 0.99)}),
            ("nested", {"a": {"b": 1, "c": 2}}, {"a": {"b": 1}}),
            ("text", "cosine", "linear"),
            ("large integer", 2**80, 2**80 + 1),
            ("past doubles", 2**53, 2**53 + 1),
            ("set", {1, 2}, {1, 3}),
            ("Counter, as MultiStepLR's milestones", collections.Counter([30]), collections.Counter([40])),
            ("key of many bits", {2**70: 1}, {2**71: 1}),
            ("last of a long key", {tuple(range(9)): 1}, {(*range(8), 9): 1}),
            ("innermost of a key", {(((((1,),),),),): 1}, {(((((2,),),),),): 1}),
            ("attribute of a dictionary", with_attribute(collections.OrderedDict(), 1), with_attribute(collections.OrderedDict(), 2)),
            ("what makes an object", Made(1), Made(2)),
            ("text that is no UTF-8", "\ud800", "\ud801"),
            ("moment in fewer bits", {"exp_avg": w}, {"exp_avg": w.bfloat16()}),
        ):
            with self.subTest(name):
                code, text = self.compare_small({"model": {"w": w}, "x": a}, {"model": {"w": w}, "x": b})
                self.assertEqual(code, 1, text)
                self.assertIn("first divergence: x", text)
        for name, a, b, note in (
            ("requires_grad", w.clone(), w.clone().requires_grad_(), "x has requires_grad=True in the current alone"),
            ("frozen", torch.nn.Parameter(w.clone(), requires_grad=False), torch.nn.Parameter(w.clone()), "x has requires_grad=False in the reference alone"),
            ("integer and number", {"lr": 1}, {"lr": 1.0}, "x.lr is of type integer in the reference, of type number in the current"),
            ("integer and tensor", 2, torch.tensor(2.0), "x is of type integer in the reference, of type tensor in the current"),
            ("bool and integer", True, 1, "x is of type bool in the reference, of type integer in the current"),
            ("strides", w, w.t().contiguous().t(), "x lies in another order of its dimensions in memory"),
            ("untied", [w, w], [w, w.clone()], "x.1 shares its elements with model.w in the reference alone"),
        ):
            with self.subTest(name):
                code, text = self.compare_small({"model": {"w": w}, "x": a}, {"model": {"w": w}, "x": b})
                self.assertEqual(code, 0, text)
                self.assertIn(note, text)

    def test_quantized_tensors_are_read_in_both_forms_of_torch_save(self):
        w = torch.arange(32.0).reshape(4, 8)  # PyTorch fills whole bytes of each row alone
        by_channel = [torch.full([4], 0.1), torch.zeros(4), 0]
        zip_path, legacy_path = self.path("quantized", "zip"), self.path("quantized", "legacy")
        for name, make in {
            **{str(of): functools.partial(torch.quantize_per_tensor, scale=0.1, zero_point=0, dtype=of) for of in (torch.qint8, torch.quint8, torch.qint32)},
            **{str(of): lambda w, of=of: torch.quantize_per_channel(w, *by_channel, of) for of in (torch.quint4x2, torch.quint2x4)},
        }.items():
            with self.subTest(name):
                torch.save({"model": w, "x": make(w)}, zip_path)
                for values, differ in ((w, []), (w.flip(0), ["x.args.0.bytes"])):
                    torch.save({"model": w, "x": make(values)}, legacy_path, _use_new_zipfile_serialization=False)
                    failures = self.compare(zip_path, legacy_path, "--bitwise")["dumps"][0]["failures"]
                    self.assertEqual([failure["path"] for failure in failures], differ)

    def test_what_is_equal_is_not_blamed(self):
        nan = torch.tensor([1.0, float("nan")])
        first, second = set(), set()
        for a, b in zip((8, 16, 0), (16, 0, 8)):
            first.add(a)
            second.add(b)
        self.assertNotEqual(list(first), list(second))
        for name, a, b in (("NaN", nan, nan.clone()), ("NaN of Python", [float("nan")], [float("nan")]), ("set", first, second)):
            with self.subTest(name):
                code, text = self.compare_small({"model": {"w": nan}, "x": a}, {"model": {"w": nan}, "x": b})
                self.assertEqual(code, 0, text)

    def test_names_are_guessed_on_request_and_that_is_no_pass(self):
        same = self.states["same"]["model"]
        renamed = {f"net.block_{name.replace('.', '_')}": tensor for name, tensor in same.items()}
        paths = [self.path("guess", name) for name in ("a", "b", "rules")]
        for path, weights in zip(paths, (same, renamed)):
            torch.save(weights, path)
        guess = ott("compare", "--bitwise", *paths[:2], "--guess-names", paths[2])
        self.assertEqual(guess.returncode, 2, guess.stdout + guess.stderr)
        self.assertIn("weights equal (6)", guess.stdout)
        self.assertIn("which tensors go together was guessed: 6 by equal elements", guess.stdout)
        # Somebody looked at them.
        kept = ott("compare", "--bitwise", *paths[:2], "--names", paths[2])
        self.assertEqual(kept.returncode, 0, kept.stdout + kept.stderr)
        self.assertIn("verdict: equal", kept.stdout)

    def test_the_report_compares_checkpoints(self):
        for of, code in (("same", 0), ("bit", 1)):
            report = ott("report", self.path("legacy", of), "--reference", self.path("dcp_2", "same"), "--html", self.path("report", "html"))
            self.assertEqual(report.returncode, code, report.stdout + report.stderr)
            self.assertIn("verdict: different" if code else "verdict: equal", report.stdout)
            self.assertTrue(os.path.exists(self.path("report", "html")))
        alone = ott("report", self.path("zip", "same"))
        self.assertEqual(alone.returncode, 2)
        self.assertIn("--reference", alone.stderr)

    def test_a_file_that_is_cut_is_an_error_that_names_it(self):
        for name in self.whole + self.trained + self.weights:
            path = self.path(name, "same")
            files = [path] if os.path.isfile(path) else [os.path.join(of, file) for of, _, inner in os.walk(path) for file in inner]
            for file in files:
                with open(file, "rb") as opened:
                    whole = opened.read()
                if os.path.basename(file) == "latest":
                    continue
                for size in (0, len(whole) // 4, len(whole) // 2, len(whole) - 1):
                    with open(file, "wb") as opened:
                        opened.write(whole[:size])
                    with self.subTest(file=file, size=size):
                        result = ott("show", path, timeout=60)
                        self.assertEqual(result.returncode, 2, result.stdout + result.stderr)
                        self.assertIn(os.path.basename(file), result.stderr)
                with open(file, "wb") as opened:
                    opened.write(whole)


if __name__ == "__main__":
    unittest.main()

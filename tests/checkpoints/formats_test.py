"""Compares what PyTorch 2.13 and Debian's 1.13 write, in each pair of formats and layouts: formats_test.py OTT.

Equal states have no difference, and each of the faults is found and named.
"""

import copy
import itertools
import json
import os
import subprocess
import sys
import tempfile
import unittest

import torch
import writers

OTT = sys.argv.pop(1)
OLD_PYTHON = "/usr/bin/python3"


def flip_bit(state):
    state["model"]["1.weight"].view(torch.int32)[1, 1] ^= 1 << 20


def swap_layers(state):
    weights = state["model"]
    weights["0.bias"], weights["1.bias"] = weights["1.bias"], weights["0.bias"]


def transpose(state):
    state["model"]["1.weight"] = state["model"]["1.weight"].t().contiguous()


def step_once_more(state):
    for of_parameter in state["optimizer"]["state"].values():
        of_parameter["step"] += 1


def drop_moment(state):
    for of_parameter in state["optimizer"]["state"].values():
        of_parameter.pop("exp_avg_sq")


def old_random(state):
    state["rng_state"]["torch"] = torch.Generator().manual_seed(7).get_state()


# The change, the part of the state that differs, and what is said of the first difference.
WEIGHT_FAULTS = {
    "bit": (flip_bit, "weights", "1.weight", "flipped bit 20"),
    "swapped": (swap_layers, "weights", "0.bias", "1.bias of the reference"),
    "transposed": (transpose, "weights", "1.weight", "it is that of the reference, transposed"),
}
STATE_FAULTS = {
    "step": (step_once_more, "optimizer step", "step", "reference 2, current 3"),
    "moment": (drop_moment, "optimizer moments", "exp_avg_sq", "missing"),
}
RANDOM_FAULTS = {"random": (old_random, "random numbers", "rng_state.torch", "mismatch")}
FAULTS = {**WEIGHT_FAULTS, **STATE_FAULTS, **RANDOM_FAULTS}


class FormatsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.mkdtemp()
        same = writers.train()
        cls.states = {"same": same, **{name: copy.deepcopy(same) for name in FAULTS}}
        for name, (change, *_) in FAULTS.items():
            change(cls.states[name])
        cls.whole, cls.zero, cls.weights = list(writers.WHOLE), list(writers.ZERO), list(writers.WEIGHTS)
        for name in cls.whole + cls.zero + cls.weights:
            # An optimizer that is loaded has all moments, and a module all of its weights' shapes.
            states = {of: state for of, state in cls.states.items() if not (name == "fsdp2" and of == "moment")}
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
        command = [OTT, "compare", "--format", "json", *flags, reference, current]
        result = subprocess.run(command, capture_output=True, text=True)
        self.assertIn(result.returncode, (0, 1), f"{command}\n{result.stdout}{result.stderr}")
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
            self.assertEqual(failing, [kind] if fault != "moment" else [])
            failures = [failure for failure in comparison["dumps"][0]["failures"] if failure["path"].endswith(name)]
            self.assertTrue(failures, comparison["dumps"][0]["failures"])
            self.assertIn(detail, json.dumps(failures[0]) + self.text(a, b, fault))

    def text(self, a, b, fault):
        return subprocess.run([OTT, "compare", self.path(a, "same"), self.path(b, fault)], capture_output=True, text=True).stdout

    def test_equal_states_are_equal_in_each_pair(self):
        for a, b in self.pairs(self.whole):
            self.expect_equal(a, b, None)
        for a, b in self.pairs(self.weights):
            self.expect_equal(a, b, None)
        for a, b in self.pairs(self.whole, self.zero):
            if a in self.zero or b in self.zero:
                self.expect_equal(a, b, ["weights"])
        for a, b in itertools.product(self.whole + self.zero, self.weights):
            self.expect_equal(a, b, ["weights"])
            self.expect_equal(b, a, ["weights"])

    def test_moments_and_steps_go_by_name_where_one_side_has_names(self):
        by_name = ["fsdp2", *self.zero]
        for a, b in itertools.product([name for name in self.whole if name not in by_name], by_name):
            self.expect_equal(a, b, ["weights", "optimizer moments", "optimizer step"])
            self.expect_equal(b, a, ["weights", "optimizer moments", "optimizer step"])

    def test_each_fault_is_named_in_each_pair(self):
        for fault in FAULTS:
            for a, b in itertools.product(self.whole, self.whole):
                self.expect_named(a, b, fault)
        for fault in WEIGHT_FAULTS:
            for a, b in itertools.product(self.weights, self.weights):
                self.expect_named(a, b, fault)

    def test_a_file_that_is_cut_is_an_error_that_names_it(self):
        for name in self.whole + self.zero + self.weights:
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
                        result = subprocess.run([OTT, "show", path], capture_output=True, text=True, timeout=60)
                        self.assertEqual(result.returncode, 2, result.stdout + result.stderr)
                        self.assertIn(os.path.basename(file), result.stderr)
                with open(file, "wb") as opened:
                    opened.write(whole)


if __name__ == "__main__":
    unittest.main()

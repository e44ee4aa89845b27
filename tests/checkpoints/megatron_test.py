"""Compares Hugging Face's weights with Megatron's folders of ranks by the ready names files: megatron_test.py OTT FOLDER_OF_NAMES."""

import argparse
import itertools
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import torch
from models import EXPERTS, LAYERS, gpt2, llama, mixtral
from safetensors.torch import save_file
from writers import flip_bit, swap, transpose

OTT, NAMES = sys.argv.pop(1), sys.argv.pop(1)


def share(name, weight, ranks, rank):
    """Of tensor parallelism."""
    if isinstance(weight, tuple):
        return torch.cat([part.chunk(ranks)[rank] for part in weight])
    if re.search(r"linear_proj\.weight|linear_fc2\.weight", name):
        return weight.chunk(ranks, 1)[rank].clone()
    if re.search(r"embedding\.word_|output_layer|linear_qkv\.(weight|bias)|linear_fc1\.(weight|bias)", name):
        return weight.chunk(ranks)[rank].clone()
    return weight.clone()


def local_name(name, pp, stage, ep, expert_rank):
    """None where the rank does not hold it."""
    if name.startswith("embedding.") and stage > 0 or re.match("output_layer|decoder.final", name) and stage < pp - 1:
        return None
    for what, ranks, rank, count in (("layers", pp, stage, LAYERS), ("local_experts", ep, expert_rank, EXPERTS)):
        found = re.search(rf"\.{what}\.(\d+)\.", name)
        if not found:
            continue
        local = int(found[1]) - rank * count // ranks
        if not 0 <= local < count // ranks:
            return None
        name = name.replace(found[0], f".{what}.{local}.")
    return name


def write_megatron(wholes, path, tp, pp, ep=1):
    folder = os.path.join(path, "iter_0000100")
    with open(os.path.join(path, "latest_checkpointed_iteration.txt"), "w") as file:
        file.write("100")
    for t in range(tp):
        for p in range(pp):
            for e in range(ep):
                model = {}
                for name, weight in wholes.items():
                    local = local_name(name, pp, p, ep, e)
                    if local:
                        model[local] = share(name, weight, tp, t)
                name = f"mp_rank_{t:02d}" + (f"_{p:03d}" if pp > 1 or ep > 1 else "") + (f"_{e:03d}" if ep > 1 else "")
                os.makedirs(os.path.join(folder, name))
                moments = {i: {"step": 100, "exp_avg": weight / 2, "exp_avg_sq": weight * weight} for i, weight in enumerate(model.values())}
                state = {
                    "args": argparse.Namespace(num_layers=LAYERS),
                    "checkpoint_version": 3.0,
                    "iteration": 100,
                    "model": model,
                    "optimizer": {"optimizer": {"state": moments}},
                    "rng_state": [{"torch_rng_state": torch.Generator().manual_seed(t).get_state()}],
                }
                torch.save(state, os.path.join(folder, name, "model_optim_rng.pt"))


UP, NORMS = "model.layers.2.mlp.up_proj.weight", [f"model.layers.{layer}.input_layernorm.weight" for layer in (0, 3)]
OUT = "model.layers.1.self_attn.o_proj.weight"
# The change, and what is said of the first difference.
FAULTS = {
    "same": (lambda _: None, "weights equal (39)"),
    "bit": (lambda hf: flip_bit(hf, UP, 3, 1), f"{UP}: mismatch, first at element 25 [3, 1]"),
    "swapped": (lambda hf: swap(hf, *NORMS), f"{NORMS[0]}: mismatch: it is, bit for bit, {NORMS[1]} of the reference"),
    "transposed": (lambda hf: transpose(hf, OUT), f"{OUT}: mismatch: it is that of the reference, transposed"),
}


class MegatronTest(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.directory)

    def write(self, model, *ranks):
        hf, megatron = model
        self.hf, self.megatron = os.path.join(self.directory, "hf.safetensors"), os.path.join(self.directory, "megatron")
        save_file({name: tensor.contiguous() for name, tensor in hf.items()}, self.hf)
        shutil.rmtree(self.megatron, ignore_errors=True)
        os.makedirs(self.megatron)
        write_megatron(megatron, self.megatron, *ranks)

    def change(self, folder, change, of="model"):
        path = os.path.join(self.megatron, "iter_0000100", folder, "model_optim_rng.pt")
        state = torch.load(path, weights_only=False)
        change(state[of])
        torch.save(state, path)

    def run_ott(self, *arguments):
        result = subprocess.run([OTT, *arguments], capture_output=True, text=True)
        return result.returncode, result.stdout + result.stderr

    def compare(self, names):
        return self.run_ott("compare", "--bitwise", "--names", os.path.join(NAMES, names + ".textproto"), self.hf, self.megatron)

    def expect(self, code, said, names="llama_megatron"):
        found, text = self.compare(names)
        self.assertEqual((found, said in text), (code, True), text)

    def test_ranks_of_any_grid_are_joined(self):
        for tp, pp in ((1, 1), (2, 1), (2, 2), (1, 4)):
            self.write(llama(), tp, pp)
            self.expect(0, "weights equal (39)")

    def test_each_fault_is_named_between_each_two_grids(self):
        grids = {"hugging_face": None, "1_1": (1, 1), "2_1": (2, 1), "1_4": (1, 4), "2_2": (2, 2)}

        def path(grid, fault):
            return os.path.join(self.directory, f"{grid}.{fault}")

        for fault in ("reference", *FAULTS):
            hf, _ = llama()
            FAULTS.get(fault, FAULTS["same"])[0](hf)
            for grid, ranks in grids.items():
                if ranks is None:
                    save_file(hf, path(grid, fault))
                else:
                    os.makedirs(path(grid, fault))
                    write_megatron(llama(hf)[1], path(grid, fault), *ranks)
        with open(os.path.join(NAMES, "llama_megatron.textproto")) as file:
            rules = file.read()
        for (a, ranks_a), (b, ranks_b) in itertools.product(grids.items(), grids.items()):
            names = os.path.join(self.directory, "names.textproto")
            with open(names, "w") as file:
                file.write((rules.replace("\nb {", "\na {") if ranks_a else "") + (rules if ranks_b else ""))
            for fault, (_, said) in FAULTS.items():
                with self.subTest(reference=a, current=b, fault=fault):
                    code, text = self.run_ott("compare", "--names", names, path(a, "reference"), path(b, fault))
                    self.assertEqual((code, said in text), (int(fault != "same"), True), text)

    def test_faults_beside_the_weights_are_named_with_the_rank(self):
        for of, change, said in (
            ("optimizer", lambda state: state["optimizer"]["state"][3].pop("exp_avg_sq"), "optimizer moments DIFFER (1 of 108, 1 missing; of rank 1)"),
            ("optimizer", lambda state: state["optimizer"]["state"][3].update(step=101), "optimizer step DIFFER (1 of 54; of rank 1)"),
            ("rng_state", lambda state: state[0]["torch_rng_state"][9].add_(1), "random numbers DIFFER (1 of 2; of rank 1)"),
        ):
            self.write(llama(), 2, 1)
            reference = shutil.copytree(self.megatron, os.path.join(self.directory, "reference"), dirs_exist_ok=True)
            self.change("mp_rank_01", change, of)
            code, text = self.run_ott("compare", reference, self.megatron)
            self.assertEqual((code, said in text, text.count("DIFFER")), (1, True, 1), text)

    def test_experts_are_counted_over_ranks(self):
        for ranks in ((1, 1, 2), (2, 2, 2), (1, 2, 4)):
            self.write(mixtral(), *ranks)
            self.expect(0, "")

    def test_gpt2_is_transposed_and_tied(self):
        for ranks in ((1, 1), (2, 2)):
            self.write(gpt2(), *ranks)
            said = "output_layer, which only the current has, is bit for bit its word_embeddings: they are tied"
            self.expect(0, said, "gpt2_megatron")

    def test_an_output_layer_that_is_not_tied_is_a_difference(self):
        self.write(gpt2(), 2, 2)
        self.change("mp_rank_01_001", lambda model: model["output_layer.weight"].view(torch.int32)[0].bitwise_xor_(1))
        self.expect(1, "output_layer: extra", "gpt2_megatron")

    def test_faults_are_named_by_the_whole_tensor(self):
        def swap_gate_and_up(model):
            fused = model["decoder.layers.1.mlp.linear_fc1.weight"]
            fused.copy_(torch.cat(fused.chunk(2)[::-1]))

        projection = "decoder.layers.0.self_attention.linear_proj.weight"
        for change, first in (
            (swap_gate_and_up, "model.layers.3.mlp.gate_proj.weight: mismatch"),
            # The second half of dimension 1.
            (lambda model: flip_bit(model, projection, 3, 1), "model.layers.2.self_attn.o_proj.weight: mismatch, first at element 29 [3, 5]"),
            (lambda model: model.pop("decoder.final_layernorm.weight"), "model.norm.weight: parts are missing on rank 3"),
            (lambda model: model["decoder.final_layernorm.weight"].add_(1), "model.norm.weight: its replicas differ: rank 3"),
        ):
            self.write(llama(), 2, 2)
            self.change("mp_rank_01_001", change)
            self.expect(1, first)

    def test_a_grid_that_lacks_a_rank_is_an_error(self):
        self.write(llama(), 2, 2)
        shutil.rmtree(os.path.join(self.megatron, "iter_0000100", "mp_rank_01_000"))
        self.expect(2, "has 3 folders mp_rank_*, but 2 of tensor, 2 of pipeline and 1 of expert parallelism")

    def test_crosscheck_takes_layouts_of_checkpoints(self):
        layout = os.path.join(NAMES, "llama_megatron.textproto")
        self.write(llama(), 2, 2)
        code, text = self.run_ott("crosscheck", "--layout", layout, self.hf, self.megatron)
        self.assertEqual(code, 0, text)
        self.change("mp_rank_01_001", lambda model: model["decoder.layers.0.mlp.linear_fc2.weight"].add_(1))
        code, text = self.run_ott("crosscheck", "--layout", layout, self.hf, self.megatron)
        self.assertEqual(code, 1, text)
        self.assertIn("model.layers.2.mlp.down_proj.weight", text)


if __name__ == "__main__":
    unittest.main()

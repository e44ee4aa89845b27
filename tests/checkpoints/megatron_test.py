"""Compares Hugging Face's weights with Megatron's folders of ranks by the ready names files: megatron_test.py OTT FOLDER_OF_NAMES."""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import torch
from safetensors.torch import save_file
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

OTT, NAMES = sys.argv.pop(1), sys.argv.pop(1)
LAYERS, EXPERTS, PADDED_VOCABULARY = 4, 4, 16


def padded(weight):
    return torch.cat([weight, torch.zeros(PADDED_VOCABULARY - len(weight), weight.shape[1])])


def grouped(*parts, groups):
    """The rows of query, key and value, which alternate by groups."""
    return torch.cat([part.reshape(groups, -1, *part.shape[1:]) for part in parts], 1).flatten(0, 1)


def llama():
    torch.manual_seed(2)
    sizes = {"hidden_size": 8, "intermediate_size": 6, "num_hidden_layers": LAYERS, "vocab_size": 10}
    hf = LlamaForCausalLM(LlamaConfig(**sizes, num_attention_heads=4, num_key_value_heads=2)).state_dict()
    hf = {name: torch.randn(tensor.shape) for name, tensor in hf.items()}
    megatron = {
        "embedding.word_embeddings.weight": padded(hf["model.embed_tokens.weight"]),
        "output_layer.weight": padded(hf["lm_head.weight"]),
        "decoder.final_layernorm.weight": hf["model.norm.weight"],
    }
    for layer in range(LAYERS):
        h, m = f"model.layers.{layer}.", f"decoder.layers.{layer}."
        qkv = [hf[h + f"self_attn.{of}_proj.weight"] for of in "qkv"]
        megatron[m + "self_attention.linear_qkv.weight"] = grouped(*qkv, groups=2)
        megatron[m + "self_attention.linear_qkv.layer_norm_weight"] = hf[h + "input_layernorm.weight"]
        megatron[m + "self_attention.linear_proj.weight"] = hf[h + "self_attn.o_proj.weight"]
        megatron[m + "mlp.linear_fc1.weight"] = (hf[h + "mlp.gate_proj.weight"], hf[h + "mlp.up_proj.weight"])
        megatron[m + "mlp.linear_fc1.layer_norm_weight"] = hf[h + "post_attention_layernorm.weight"]
        megatron[m + "mlp.linear_fc2.weight"] = hf[h + "mlp.down_proj.weight"]
    return hf, megatron


def mixtral():
    """Llama's, with experts in place of each layer's MLP, by the names that the hub's files have."""
    hf, megatron = llama()
    for layer in range(LAYERS):
        h, m = f"model.layers.{layer}.", f"decoder.layers.{layer}.mlp."
        for of in ("gate", "up", "down"):
            del hf[h + f"mlp.{of}_proj.weight"]
        megatron[f"decoder.layers.{layer}.pre_mlp_layernorm.weight"] = megatron.pop(m + "linear_fc1.layer_norm_weight")
        del megatron[m + "linear_fc1.weight"], megatron[m + "linear_fc2.weight"]
        hf[h + "block_sparse_moe.gate.weight"] = megatron[m + "router.weight"] = torch.randn(EXPERTS, 8)
        for expert in range(EXPERTS):
            w1, w2, w3 = torch.randn(6, 8), torch.randn(8, 6), torch.randn(6, 8)
            for name, weight in {"w1": w1, "w2": w2, "w3": w3}.items():
                hf[h + f"block_sparse_moe.experts.{expert}.{name}.weight"] = weight
            megatron[m + f"experts.local_experts.{expert}.linear_fc1.weight"] = (w1, w3)
            megatron[m + f"experts.local_experts.{expert}.linear_fc2.weight"] = w2
    return hf, megatron


def gpt2():
    torch.manual_seed(3)
    sizes = {"n_embd": 8, "n_head": 2, "n_layer": LAYERS, "n_positions": 6, "vocab_size": 11}
    hf = GPT2LMHeadModel(GPT2Config(**sizes, bos_token_id=0, eos_token_id=0)).state_dict()
    hf = {name: torch.randn(tensor.shape) for name, tensor in hf.items() if name != "lm_head.weight"}
    megatron = {
        "embedding.word_embeddings.weight": padded(hf["transformer.wte.weight"]),
        "embedding.position_embeddings.weight": hf["transformer.wpe.weight"],
        # As the last stage of a pipeline holds it, which the first one shares it with.
        "output_layer.weight": padded(hf["transformer.wte.weight"]),
    }
    for of in ("weight", "bias"):
        turned = (lambda tensor: tensor.t()) if of == "weight" else (lambda tensor: tensor)
        megatron[f"decoder.final_layernorm.{of}"] = hf[f"transformer.ln_f.{of}"]
        for layer in range(LAYERS):
            h, m = f"transformer.h.{layer}.", f"decoder.layers.{layer}."
            megatron[m + f"input_layernorm.{of}"] = hf[h + f"ln_1.{of}"]
            megatron[m + f"pre_mlp_layernorm.{of}"] = hf[h + f"ln_2.{of}"]
            qkv = turned(hf[h + f"attn.c_attn.{of}"]).chunk(3)
            megatron[m + f"self_attention.linear_qkv.{of}"] = grouped(*qkv, groups=2)
            megatron[m + f"self_attention.linear_proj.{of}"] = turned(hf[h + f"attn.c_proj.{of}"])
            megatron[m + f"mlp.linear_fc1.{of}"] = turned(hf[h + f"mlp.c_fc.{of}"])
            megatron[m + f"mlp.linear_fc2.{of}"] = turned(hf[h + f"mlp.c_proj.{of}"])
    return hf, megatron


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
                state = {"args": argparse.Namespace(num_layers=LAYERS), "checkpoint_version": 3.0, "iteration": 100, "model": model}
                torch.save(state, os.path.join(folder, name, "model_optim_rng.pt"))


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

    def change(self, folder, change):
        path = os.path.join(self.megatron, "iter_0000100", folder, "model_optim_rng.pt")
        state = torch.load(path, weights_only=False)
        change(state["model"])
        torch.save(state, path)

    def run_ott(self, *arguments):
        result = subprocess.run([OTT, *arguments], capture_output=True, text=True)
        return result.returncode, result.stdout + result.stderr

    def compare(self, names):
        return self.run_ott("compare", "--bitwise", "--names", os.path.join(NAMES, names + ".textproto"), self.hf, self.megatron)

    def test_ranks_of_any_grid_are_joined(self):
        for tp, pp in ((1, 1), (2, 1), (2, 2), (1, 4)):
            self.write(llama(), tp, pp)
            code, text = self.compare("llama_megatron")
            self.assertEqual((code, "weights equal (39)" in text), (0, True), f"tensor {tp}, pipeline {pp}: {text}")

    def test_experts_are_counted_over_ranks(self):
        for ranks in ((1, 1, 2), (2, 2, 2), (1, 2, 4)):
            self.write(mixtral(), *ranks)
            code, text = self.compare("llama_megatron")
            self.assertEqual(code, 0, f"{ranks}: {text}")

    def test_gpt2_is_transposed_and_tied(self):
        for ranks in ((1, 1), (2, 2)):
            self.write(gpt2(), *ranks)
            code, text = self.compare("gpt2_megatron")
            self.assertEqual(code, 0, f"{ranks}: {text}")
            self.assertIn("output_layer, which only the current has, is bit for bit its word_embeddings: they are tied", text)

    def test_an_output_layer_that_is_not_tied_is_a_difference(self):
        self.write(gpt2(), 2, 2)
        self.change("mp_rank_01_001", lambda model: model["output_layer.weight"].view(torch.int32)[0].bitwise_xor_(1))
        code, text = self.compare("gpt2_megatron")
        self.assertEqual(code, 1, text)
        self.assertIn("output_layer: extra", text)

    def test_faults_are_named_by_the_whole_tensor(self):
        def swap_gate_and_up(model):
            fused = model["decoder.layers.1.mlp.linear_fc1.weight"]
            fused.copy_(torch.cat(fused.chunk(2)[::-1]))

        def flip_bit(model):
            model["decoder.layers.0.self_attention.linear_proj.weight"].view(torch.int32)[3, 1] ^= 1 << 20

        for change, first in (
            (swap_gate_and_up, "model.layers.3.mlp.gate_proj.weight: mismatch"),
            # The second half of dimension 1.
            (flip_bit, "model.layers.2.self_attn.o_proj.weight: mismatch, first at element 29 [3, 5]"),
            (lambda model: model.pop("decoder.final_layernorm.weight"), "model.norm.weight: parts are missing on rank 3"),
            (lambda model: model["decoder.final_layernorm.weight"].add_(1), "model.norm.weight: its replicas differ: rank 3"),
        ):
            self.write(llama(), 2, 2)
            self.change("mp_rank_01_001", change)
            code, text = self.compare("llama_megatron")
            self.assertEqual(code, 1, text)
            self.assertIn(first, text)

    def test_a_grid_that_lacks_a_rank_is_an_error(self):
        self.write(llama(), 2, 2)
        shutil.rmtree(os.path.join(self.megatron, "iter_0000100", "mp_rank_01_000"))
        code, text = self.compare("llama_megatron")
        self.assertEqual(code, 2, text)
        self.assertIn("has 3 folders mp_rank_*, but 2 of tensor, 2 of pipeline and 1 of expert parallelism", text)

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

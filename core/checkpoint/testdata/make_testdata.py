"""Writes the checkpoints beside it: python3 make_testdata.py, with PyTorch 2.13, NumPy, safetensors and huggingface_hub.

All files of one training hold the same state, as formats allow: a model of two layers after two steps of Adam.
"""

import copy
import os
import pickle
import random

import huggingface_hub
import numpy
import torch
from safetensors.torch import save_file

os.chdir(os.path.dirname(os.path.abspath(__file__)))


def train():
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Linear(3, 3), torch.nn.Linear(3, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    for _ in range(2):
        model(torch.randn(5, 4)).square().sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        scheduler.step()
    return model, optimizer, scheduler


model, optimizer, scheduler = train()
random.seed(1)
numpy.random.seed(1)
state = {
    "model": model.state_dict(),
    "optimizer": optimizer.state_dict(),
    "scheduler": scheduler.state_dict(),
    "rng_state": {"torch": torch.get_rng_state(), "numpy": numpy.random.get_state(), "python": random.getstate()},
    "epoch": 2,
}
torch.save(state, "whole.pt")
torch.save(state, "whole_legacy.pt", _use_new_zipfile_serialization=False)
torch.save(model.state_dict(), "weights.pt")
torch.jit.save(torch.jit.script(model), "script.pt")
numpy.savez("weights.npz", **{name: value.numpy() for name, value in model.state_dict().items()})
numpy.savez_compressed("weights_compressed.npz", **{name: value.numpy() for name, value in model.state_dict().items()})



def save_fault(name, change):
    """The same state with one fault."""
    faulty = copy.deepcopy(state)
    change(faulty)
    torch.save(faulty, f"fault_{name}.pt")


def flip_bit(faulty):
    faulty["model"]["1.weight"].view(torch.int32)[1, 1] ^= 1 << 20


def swap_layers(faulty):
    weights = faulty["model"]
    weights["0.bias"], weights["1.bias"] = weights["1.bias"], weights["0.bias"]


def transpose(faulty):
    faulty["model"]["1.weight"] = faulty["model"]["1.weight"].t().contiguous()


def step_once_more(faulty):
    for of_parameter in faulty["optimizer"]["state"].values():
        of_parameter["step"] += 1


save_fault("bit", flip_bit)
save_fault("swapped", swap_layers)
save_fault("transposed", transpose)
save_fault("moment", lambda faulty: faulty["optimizer"]["state"][2].pop("exp_avg_sq"))
save_fault("step", step_once_more)
save_fault("random", lambda faulty: faulty["rng_state"].update(torch=torch.Generator().manual_seed(7).get_state()))
save_fault("epoch", lambda faulty: faulty.update(epoch=1))
torch.save({"state_dict": {"module." + name: value for name, value in model.state_dict().items()}}, "wrapped.pt")



def llama():
    """The weights of a Llama as Hugging Face names them, and as Megatron does: 4 heads of 2 elements in 2 groups."""
    torch.manual_seed(2)
    hf = {"model.embed_tokens.weight": torch.randn(10, 8), "lm_head.weight": torch.randn(10, 8), "model.norm.weight": torch.randn(8)}
    megatron = {}

    def padded(weight):
        return torch.cat([weight, torch.zeros(6, 8)])

    for layer in range(2):
        h, m = f"model.layers.{layer}.", f"decoder.layers.{layer}."
        for name, shape in {
            "self_attn.q_proj.weight": (8, 8),
            "self_attn.k_proj.weight": (4, 8),
            "self_attn.v_proj.weight": (4, 8),
            "self_attn.o_proj.weight": (8, 8),
            "mlp.gate_proj.weight": (6, 8),
            "mlp.up_proj.weight": (6, 8),
            "mlp.down_proj.weight": (8, 6),
            "input_layernorm.weight": (8,),
            "post_attention_layernorm.weight": (8,),
        }.items():
            hf[h + name] = torch.randn(shape)
        q, k, v = (hf[h + f"self_attn.{name}_proj.weight"].view(2, -1, 8) for name in "qkv")
        megatron[m + "self_attention.linear_qkv.weight"] = torch.cat([q, k, v], 1).reshape(16, 8)
        megatron[m + "self_attention.linear_qkv.layer_norm_weight"] = hf[h + "input_layernorm.weight"]
        megatron[m + "self_attention.linear_proj.weight"] = hf[h + "self_attn.o_proj.weight"]
        megatron[m + "mlp.linear_fc1.weight"] = torch.cat([hf[h + "mlp.gate_proj.weight"], hf[h + "mlp.up_proj.weight"]])
        megatron[m + "mlp.linear_fc1.layer_norm_weight"] = hf[h + "post_attention_layernorm.weight"]
        megatron[m + "mlp.linear_fc2.weight"] = hf[h + "mlp.down_proj.weight"]
    megatron["embedding.word_embeddings.weight"] = padded(hf["model.embed_tokens.weight"])
    megatron["output_layer.weight"] = padded(hf["lm_head.weight"])
    megatron["decoder.final_layernorm.weight"] = hf["model.norm.weight"]
    return hf, megatron


hf_llama, megatron_llama = llama()
save_file(hf_llama, "llama_hf.safetensors")
torch.save({"model": megatron_llama}, "llama_megatron.pt")
# Fuses gate and up in the other order.
fused = megatron_llama["decoder.layers.1.mlp.linear_fc1.weight"]
megatron_llama["decoder.layers.1.mlp.linear_fc1.weight"] = torch.cat([fused[6:], fused[:6]])
torch.save({"model": megatron_llama}, "fault_llama_megatron.pt")

base = torch.arange(12.0)
torch.save(
    {
        "transposed": base.view(3, 4).t(),
        "slice": base[2:5],
        "expanded": base[:1].expand(5),
        "scalar": torch.tensor(7),
        "empty": torch.zeros(0, 3),
        "bfloat16": base.to(torch.bfloat16),
        "float8": base.to(torch.float8_e4m3fn),
        "uint16": torch.tensor([1, 65535], dtype=torch.uint16),
        "complex": torch.tensor([1 + 2j]),
        "bool": torch.tensor([True, False]),
        "parameter": torch.nn.Parameter(base[:2]),
        "numpy": numpy.arange(6, dtype=numpy.int32).reshape(2, 3, order="F"),
        "numpy_scalar": numpy.float64(2.5),
        "size": torch.Size([2, 3]),
        "dtype": torch.float16,
        1: "one",
        ("a", 2): "pair",
        "large": 1 << 100,
        "set": {5},
    },
    "values.pt",
)
with open("plain.pkl", "wb") as file:
    pickle.dump({"step": 3, "names": ["a", "b"]}, file)


class Calls:
    def __reduce__(self):
        return os.system, ("touch /tmp/ott_checkpoint_was_run",)


torch.save({"weight": torch.ones(2), "calls": Calls()}, "calls.pt")

save_file(model.state_dict(), "weights.safetensors", metadata={"format": "pt"})
save_file({name: value.bfloat16() for name, value in model.state_dict().items()}, "weights_bfloat16.safetensors")
rounded = {name: value.bfloat16() for name, value in model.state_dict().items()}
rounded["0.bias"].view(torch.int16)[1] += 1
save_file(rounded, "fault_bfloat16.safetensors")
os.makedirs("sharded", exist_ok=True)
huggingface_hub.save_torch_state_dict(model.state_dict(), "sharded", max_shard_size=100)

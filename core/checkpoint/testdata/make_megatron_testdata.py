"""Writes megatron_core_1 and _2, distributed checkpoints of Megatron-core 0.16.1 and its distributed optimizer, on one and two ranks.

The weights are those of llama_hf.safetensors, which a step of Adam with a rate of 0 leaves as they are. Two ranks are tensor-parallel.
Megatron-core asks for a GPU: its tensors are made on the CPU behind its back. Needs `pip install megatron-core`, beside PyTorch 2.13
and safetensors.
"""

import os
import pickle
import shutil

import torch
from safetensors.torch import load_file

os.chdir(os.path.dirname(os.path.abspath(__file__)))
torch.cuda.synchronize = lambda *_: None
torch.cuda.current_device = lambda: "cpu"


class OnCPU(torch.overrides.TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        if str(kwargs.get("device", "")).startswith("cuda"):
            kwargs["device"] = "cpu"
        if function is torch.Tensor.cuda:
            return args[0]
        result = function(*args, **kwargs)
        return result.replace("torch.", "torch.cuda.") if function is torch.Tensor.type and len(args) == 1 else result


def grouped(*parts, groups):
    """The rows of query, key and value, which alternate by groups."""
    return torch.cat([part.reshape(groups, -1, *part.shape[1:]) for part in parts], 1).flatten(0, 1)


def wholes(hf, layers):
    """The whole weights by Megatron's names; the halves of linear_fc1 are split one by one."""

    def padded(weight):
        return torch.cat([weight, torch.zeros(16 - len(weight), weight.shape[1])])

    weights = {
        "embedding.word_embeddings.weight": padded(hf["model.embed_tokens.weight"]),
        "output_layer.weight": padded(hf["lm_head.weight"]),
        "decoder.final_layernorm.weight": hf["model.norm.weight"],
    }
    for layer in range(layers):
        h, m = f"model.layers.{layer}.", f"decoder.layers.{layer}."
        weights[m + "self_attention.linear_qkv.weight"] = grouped(*(hf[h + f"self_attn.{of}_proj.weight"] for of in "qkv"), groups=2)
        weights[m + "self_attention.linear_proj.weight"] = hf[h + "self_attn.o_proj.weight"]
        weights[m + "input_layernorm.weight"] = hf[h + "input_layernorm.weight"]
        weights[m + "pre_mlp_layernorm.weight"] = hf[h + "post_attention_layernorm.weight"]
        weights[m + "mlp.linear_fc1.weight"] = (hf[h + "mlp.gate_proj.weight"], hf[h + "mlp.up_proj.weight"])
        weights[m + "mlp.linear_fc2.weight"] = hf[h + "mlp.down_proj.weight"]
    return weights


def share(whole, parameter, ranks, rank):
    if isinstance(whole, tuple):
        return torch.cat([part.chunk(ranks)[rank] for part in whole])
    dims = [dim for dim in range(whole.dim()) if whole.shape[dim] != parameter.shape[dim]]
    return whole.chunk(ranks, dims[0])[rank] if dims else whole


def write(rank, ranks, path, store):
    with OnCPU():
        torch.distributed.init_process_group("gloo", f"file://{store}", rank=rank, world_size=ranks)
        from megatron.core import dist_checkpointing, parallel_state
        from megatron.core.distributed import DistributedDataParallel, DistributedDataParallelConfig
        from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec
        from megatron.core.models.gpt.gpt_model import GPTModel
        from megatron.core.optimizer import OptimizerConfig, get_megatron_optimizer
        from megatron.core.transformer.transformer_config import TransformerConfig

        parallel_state.initialize_model_parallel(ranks)
        hf = load_file("llama_hf.safetensors")
        layers = sum(name.endswith("o_proj.weight") for name in hf)
        config = TransformerConfig(
            num_layers=layers,
            hidden_size=8,
            num_attention_heads=4,
            num_query_groups=2,
            ffn_hidden_size=len(hf["model.layers.0.mlp.gate_proj.weight"]),
            tensor_model_parallel_size=ranks,
            use_cpu_initialization=True,
            pipeline_dtype=torch.float32,
            gated_linear_unit=True,
            add_bias_linear=False,
            normalization="RMSNorm",
            bias_activation_fusion=False,
            gradient_accumulation_fusion=False,
            activation_func=torch.nn.functional.silu,
        )
        model = GPTModel(
            config,
            get_gpt_layer_local_spec(normalization="RMSNorm"),
            vocab_size=16,
            max_sequence_length=6,
            share_embeddings_and_output_weights=False,
            position_embedding_type="rope",
        )
        with torch.no_grad():
            parameters = dict(model.named_parameters())
            whole_weights = wholes(hf, layers)
            for name, whole in whole_weights.items():
                parameters[name].copy_(share(whole, parameters[name], ranks, rank))
        parallel = DistributedDataParallel(config, DistributedDataParallelConfig(use_distributed_optimizer=True), model)
        optimizer = get_megatron_optimizer(OptimizerConfig(optimizer="adam", lr=0.0, clip_grad=0.0, use_distributed_optimizer=True), [parallel])
        for name, whole in whole_weights.items():
            gradient = tuple(part.flip(0) for part in whole) if isinstance(whole, tuple) else whole.flip(0)
            parameters[name].main_grad.copy_(share(gradient, parameters[name], ranks, rank))
        optimizer.step()
        state = {"model": model.sharded_state_dict()}
        state["optimizer"] = optimizer.sharded_state_dict(state["model"], metadata={"distrib_optim_sharding_type": "fully_reshardable"})
        dist_checkpointing.save(state, path)


if __name__ == "__main__":
    for ranks in (1, 2):
        path, store = os.path.abspath(f"megatron_core_{ranks}"), os.path.abspath(f"store_{ranks}")
        shutil.rmtree(path, ignore_errors=True)
        os.makedirs(path)
        torch.multiprocessing.start_processes(write, (ranks, path, store), ranks, start_method="spawn")
        os.remove(store)
        # The name of the folder on this machine is left out.
        with open(f"{path}/.metadata", "rb") as file:
            metadata = pickle.load(file)
        metadata.storage_meta.checkpoint_id = os.path.basename(path)
        with open(f"{path}/.metadata", "wb") as file:
            pickle.dump(metadata, file)

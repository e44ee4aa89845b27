"""Writes distributed checkpoints of Megatron-core and its distributed optimizer: make_megatron_testdata.py NAME...

The weights are those of llama_hf.safetensors, which a step of Adam with a rate of 0 leaves as they are. Megatron-core asks for a GPU:
its tensors are made on the CPU behind its back. Needs `pip install megatron-core==0.16.1`, beside PyTorch 2.13 and safetensors;
megatron_flat needs 0.12.1, which is older than what it calls there.
"""

import os
import pickle
import shutil
import sys

import numpy
import torch
from safetensors.torch import load_file

os.chdir(os.path.dirname(os.path.abspath(__file__)))
torch.cuda.synchronize = lambda *_: None
torch.cuda.current_device = lambda: "cpu"
# Tensor-parallel ranks, those of data parallelism, and the format of the optimizer.
CASES = {
    "megatron_core_1": (1, 1, "fully_reshardable"),
    "megatron_core_2": (2, 1, "fully_reshardable"),
    "megatron_buckets": (1, 2, "dp_reshardable"),
    "megatron_flat": (2, 2, "fully_sharded_model_space"),
}


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


def fit_old_megatron():
    from megatron.core import fp8_utils
    from megatron.core.dist_checkpointing.strategies import filesystem_async
    from torch.distributed.checkpoint.filesystem import SerializationFormat

    numpy.product = numpy.prod
    write_item = filesystem_async._write_item
    filesystem_async._write_item = lambda *arguments: write_item(*arguments, SerializationFormat.TORCH_SAVE)
    fp8_utils._quantize_param_shard_impl = lambda *_: None


def write(process, ranks, replicas, kind, path, store):
    rank = process % ranks
    with OnCPU():
        torch.distributed.init_process_group("gloo", f"file://{store}", rank=process, world_size=ranks * replicas)
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
        if kind == "fully_sharded_model_space":
            fit_old_megatron()
        optimizer.step()
        state = {"model": model.sharded_state_dict()}
        if kind == "fully_sharded_model_space":
            state["optimizer"] = optimizer.sharded_state_dict(state["model"], sharding_type=kind)
        else:
            state["optimizer"] = optimizer.sharded_state_dict(state["model"], metadata={"distrib_optim_sharding_type": kind})
        dist_checkpointing.save(state, path)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        ranks, replicas, kind = CASES[name]
        path, store = os.path.abspath(name), os.path.abspath(f"store_{name}")
        shutil.rmtree(path, ignore_errors=True)
        os.makedirs(path)
        torch.multiprocessing.start_processes(write, (ranks, replicas, kind, path, store), ranks * replicas, start_method="spawn")
        os.remove(store)
        # The name of the folder on this machine is left out.
        with open(f"{path}/.metadata", "rb") as file:
            metadata = pickle.load(file)
        if metadata.storage_meta:
            metadata.storage_meta.checkpoint_id = os.path.basename(path)
        with open(f"{path}/.metadata", "wb") as file:
            pickle.dump(metadata, file)

"""Writes distributed checkpoints of Megatron-core and its distributed optimizer: make_megatron_testdata.py NAME...

The weights are those of llama_hf.safetensors, or of gpt2_hf.safetensors and mixtral_hf.safetensors, which are written beside. A step of
Adam with a rate of 0 leaves them as they are. Megatron-core asks for a GPU: its tensors are made on the CPU behind its back. Needs
`pip install megatron-core==0.16.1`, beside PyTorch 2.13, transformers and safetensors; megatron_flat needs 0.12.1, which is older than
what it calls there.
"""

import os
import pathlib
import pickle
import re
import shutil
import sys

import numpy
import torch
from safetensors.torch import load_file, save_file

os.chdir(os.path.dirname(os.path.abspath(__file__)))
sys.path.append(os.path.abspath("../../../tests/checkpoints"))
import models  # noqa: E402

torch.cuda.synchronize = lambda *_: None
torch.cuda.current_device = lambda: "cpu"
# The model, tensor- and expert-parallel ranks, those of data parallelism, and the format of the optimizer.
CASES = {
    "megatron_core_1": ("llama", 1, 1, 1, "fully_reshardable"),
    "megatron_core_2": ("llama", 2, 1, 1, "fully_reshardable"),
    "megatron_buckets": ("llama", 1, 1, 2, "dp_reshardable"),
    "megatron_flat": ("llama", 2, 1, 2, "fully_sharded_model_space"),
    "megatron_gpt2": ("gpt2", 2, 1, 1, None),
    "megatron_mixtral": ("mixtral", 1, 2, 2, None),
}
GATED = {"normalization": "RMSNorm", "gated_linear_unit": True, "add_bias_linear": False, "activation_func": torch.nn.functional.silu, "num_query_groups": 2}
# What TransformerConfig and GPTModel are given.
MODELS = {
    "llama": (lambda: models.llama(load_file("llama_hf.safetensors")), {"num_attention_heads": 4, **GATED}, {"position_embedding_type": "rope"}),
    "mixtral": (
        models.mixtral,
        {"num_attention_heads": 4, "num_moe_experts": models.EXPERTS, "moe_router_topk": 2, **GATED},
        {"position_embedding_type": "rope"},
    ),
    "gpt2": (models.gpt2, {"num_attention_heads": 2}, {"position_embedding_type": "learned_absolute", "share_embeddings_and_output_weights": True}),
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


def local_name(name, expert_ranks, rank):
    """The name on a rank of the parameters without Transformer Engine; None where the rank does not hold it."""
    name = name.replace("self_attention.linear_qkv.layer_norm_", "input_layernorm.").replace("mlp.linear_fc1.layer_norm_", "pre_mlp_layernorm.")
    if found := re.search(r"local_experts\.(\d+)\.", name):
        holder, local = divmod(int(found[1]), models.EXPERTS // expert_ranks)
        return name.replace(found[0], f"local_experts.{local}.") if holder == rank else None
    return name


def write(process, model_name, ranks, expert_ranks, replicas, kind, path, store):
    rank = process % ranks
    with OnCPU():
        torch.distributed.init_process_group("gloo", f"file://{store}", rank=process, world_size=ranks * replicas)
        from megatron.core import dist_checkpointing, parallel_state
        from megatron.core.distributed import DistributedDataParallel, DistributedDataParallelConfig
        from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec
        from megatron.core.models.gpt.gpt_model import GPTModel
        from megatron.core.optimizer import OptimizerConfig, get_megatron_optimizer
        from megatron.core.transformer.transformer_config import TransformerConfig

        parallel_state.initialize_model_parallel(ranks, expert_model_parallel_size=expert_ranks)
        make, of_config, of_model = MODELS[model_name]
        _, whole_weights = make()
        config = TransformerConfig(
            num_layers=sum(name.endswith("linear_proj.weight") for name in whole_weights),
            hidden_size=8,
            ffn_hidden_size=32 if model_name == "gpt2" else 6,
            tensor_model_parallel_size=ranks,
            expert_model_parallel_size=expert_ranks,
            use_cpu_initialization=True,
            pipeline_dtype=torch.float32,
            bias_activation_fusion=False,
            gradient_accumulation_fusion=False,
            **of_config,
        )
        spec = get_gpt_layer_local_spec(
            normalization=config.normalization, num_experts=config.num_moe_experts, moe_grouped_gemm=False
        )
        model = GPTModel(config, spec, vocab_size=16, max_sequence_length=6, **of_model)
        parameters = dict(model.named_parameters())
        names = {name: local_name(name, expert_ranks, rank=process % expert_ranks) for name in whole_weights}
        # The output layer is the embedding where they are tied.
        weights = {names[name]: whole for name, whole in whole_weights.items() if names[name] in parameters}
        assert weights.keys() == parameters.keys(), weights.keys() ^ parameters.keys()
        with torch.no_grad():
            for name, whole in weights.items():
                parameters[name].copy_(share(whole, parameters[name], ranks, rank))
        if kind is None:
            return dist_checkpointing.save({"model": model.sharded_state_dict()}, path)
        parallel = DistributedDataParallel(config, DistributedDataParallelConfig(use_distributed_optimizer=True), model)
        optimizer = get_megatron_optimizer(OptimizerConfig(optimizer="adam", lr=0.0, clip_grad=0.0, use_distributed_optimizer=True), [parallel])
        for name, whole in weights.items():
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
        model_name, ranks, _, replicas, _ = case = CASES[name]
        if model_name != "llama":
            hf, _ = MODELS[model_name][0]()
            save_file({of: tensor.contiguous() for of, tensor in hf.items()}, f"{model_name}_hf.safetensors")
        path, store = os.path.abspath(name), os.path.abspath(f"store_{name}")
        shutil.rmtree(path, ignore_errors=True)
        os.makedirs(path)
        torch.multiprocessing.start_processes(write, (*case, path, store), ranks * replicas, start_method="spawn")
        pathlib.Path(store).unlink(missing_ok=True)
        # The name of the folder on this machine is left out.
        with open(f"{path}/.metadata", "rb") as file:
            metadata = pickle.load(file)
        if metadata.storage_meta:
            metadata.storage_meta.checkpoint_id = os.path.basename(path)
        with open(f"{path}/.metadata", "wb") as file:
            pickle.dump(metadata, file)

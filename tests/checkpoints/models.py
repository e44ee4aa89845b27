"""Small models, each as Hugging Face's weights and as Megatron's whole ones by name. Those of gate and up are a pair, split one by one."""

import torch
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

LAYERS, EXPERTS, PADDED_VOCABULARY = 4, 4, 16


def padded(weight):
    return torch.cat([weight, torch.zeros(PADDED_VOCABULARY - len(weight), weight.shape[1])])


def grouped(*parts, groups):
    """The rows of query, key and value, which alternate by groups."""
    return torch.cat([part.reshape(groups, -1, *part.shape[1:]) for part in parts], 1).flatten(0, 1)


def llama(hf=None):
    """Of these weights of Hugging Face's, or of random ones: 4 heads of 2 elements in 2 groups."""
    if hf is None:
        torch.manual_seed(2)
        sizes = {"hidden_size": 8, "intermediate_size": 6, "num_hidden_layers": LAYERS, "vocab_size": 10}
        hf = LlamaForCausalLM(LlamaConfig(**sizes, num_attention_heads=4, num_key_value_heads=2)).state_dict()
        hf = {name: torch.randn(tensor.shape) for name, tensor in hf.items()}
    megatron = {
        "embedding.word_embeddings.weight": padded(hf["model.embed_tokens.weight"]),
        "output_layer.weight": padded(hf["lm_head.weight"]),
        "decoder.final_layernorm.weight": hf["model.norm.weight"],
    }
    for layer in range(sum(name.endswith("o_proj.weight") for name in hf)):
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

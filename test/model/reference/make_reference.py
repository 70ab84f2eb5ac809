#!/usr/bin/env python3
"""Writes tiny random models as GGUF (F32) and the logits that Hugging Face transformers computes for them in float32.

    python3 make_reference.py FOLDER        (needs torch and transformers)

<name>.gguf    the model, tensors laid out and named as llama.cpp's converter does
<name>.logits  little-endian: int32 tokens, int32 vocabulary, int32 ids[tokens], float32 logits[tokens][vocabulary]
"""
import math
import struct
import sys
from pathlib import Path

import torch
import transformers
from transformers import LlamaConfig, LlamaForCausalLM, Qwen2Config, Qwen2ForCausalLM, Qwen3Config, Qwen3ForCausalLM

TOKENS = 48
VOCAB = 200  # not a multiple of any vector width
SHAPE = dict(vocab_size=VOCAB, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
             num_key_value_heads=2, max_position_embeddings=128, rms_norm_eps=1e-5)


def gguf_value(value):
    if isinstance(value, bool):
        return struct.pack("<IB", 7, value)
    if isinstance(value, int):
        return struct.pack("<II", 4, value)
    if isinstance(value, float):
        return struct.pack("<If", 6, value)
    text = value.encode()
    return struct.pack("<IQ", 8, len(text)) + text


def write_gguf(path, metadata, tensors):
    out = bytearray(b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(metadata)))
    for key, value in metadata.items():
        out += struct.pack("<Q", len(key)) + key.encode() + gguf_value(value)
    offset = 0
    for name, tensor in tensors.items():
        shape = list(reversed(tensor.shape))
        out += struct.pack("<Q", len(name)) + name.encode() + struct.pack("<I", len(shape))
        out += struct.pack(f"<{len(shape)}Q", *shape) + struct.pack("<IQ", 0, offset)
        offset += (tensor.numel() * 4 + 31) // 32 * 32
    out += bytes(-len(out) % 32)
    for tensor in tensors.values():
        out += tensor.contiguous().numpy().astype("<f4").tobytes()
        out += bytes(-len(out) % 32)
    path.write_bytes(out)


def interleave(weight, heads):
    """Rows of rotated halves become rows of rotated pairs, as the llama architecture's files store queries and keys."""
    return weight.reshape(heads, 2, weight.shape[0] // heads // 2, *weight.shape[1:]).transpose(1, 2).reshape(weight.shape)


NAMES = {
    "input_layernorm": "attn_norm", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output", "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm",
    "post_attention_layernorm": "ffn_norm", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down",
    "model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output",
}


def gguf_tensors(model, config, architecture):
    tensors = {}
    for name, tensor in model.state_dict().items():
        stem, kind = name.rsplit(".", 1)
        if stem == "lm_head" and config.tie_word_embeddings:
            continue
        if architecture == "llama" and stem.endswith("q_proj"):
            tensor = interleave(tensor, config.num_attention_heads)
        if architecture == "llama" and stem.endswith("k_proj"):
            tensor = interleave(tensor, config.num_key_value_heads)
        if stem.startswith("model.layers."):
            _, _, layer, stem = stem.split(".", 3)
            tensors[f"blk.{layer}.{NAMES[stem]}.{kind}"] = tensor
        else:
            tensors[f"{NAMES[stem]}.{kind}"] = tensor
    return tensors


def llama3_factors(theta, head_dim, scaling):
    """The divisors of rope_freqs.weight, from the definition in Llama 3.1's configuration."""
    original = scaling["original_max_position_embeddings"]
    low, high, factor = scaling["low_freq_factor"], scaling["high_freq_factor"], scaling["factor"]
    divisors = []
    for i in range(head_dim // 2):
        wavelength = 2 * math.pi * theta ** (2 * i / head_dim)
        smooth = min(max((original / wavelength - low) / (high - low), 0.0), 1.0)
        divisors.append(1 / ((1 - smooth) / factor + smooth))
    return torch.tensor(divisors)


def make(folder, name, architecture, config_type, model_type, metadata=None, extra=None, **options):
    theta = options.setdefault("rope_theta", 10000.0)
    config = config_type(**{**SHAPE, **options}, attn_implementation="eager")
    torch.manual_seed(sum(name.encode()))
    model = model_type(config).float().eval()
    with torch.no_grad():
        for key, tensor in model.named_parameters():
            if "norm" in key:
                tensor.uniform_(0.5, 1.5)
            else:
                tensor.normal_(0.0, 0.3 if key.endswith("bias") else 0.15)
        ids = torch.randint(0, VOCAB, (1, TOKENS))
        logits = model(input_ids=ids).logits[0]
    head_dim = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    keys = {
        "context_length": 128, "embedding_length": 64, "feed_forward_length": 96, "block_count": 2, "attention.head_count": 4,
        "attention.head_count_kv": 2, "attention.layer_norm_rms_epsilon": 1e-5, "rope.freq_base": theta,
        "rope.dimension_count": head_dim, "attention.key_length": head_dim, "attention.value_length": head_dim, **(metadata or {}),
    }
    tensors = {**gguf_tensors(model, config, architecture), **(extra or {})}
    write_gguf(folder / f"{name}.gguf",
               {"general.architecture": architecture, "general.name": name, **{f"{architecture}.{k}": v for k, v in keys.items()}},
               tensors)
    header = struct.pack(f"<ii{TOKENS}i", TOKENS, VOCAB, *ids[0].tolist())
    (folder / f"{name}.logits").write_bytes(header + logits.contiguous().numpy().astype("<f4").tobytes())
    rotary = model.model.rotary_emb
    print(name, "logits", float(logits.min()), float(logits.max()), "rope", rotary.inv_freq.tolist(), rotary.attention_scaling)


def main():
    folder = Path(sys.argv[1])
    print("torch", torch.__version__, "transformers", transformers.__version__)
    llama = ("llama", LlamaConfig, LlamaForCausalLM)
    qwen2 = ("qwen2", Qwen2Config, Qwen2ForCausalLM)
    qwen3 = ("qwen3", Qwen3Config, Qwen3ForCausalLM)

    make(folder, "llama-biased", *llama, tie_word_embeddings=False, attention_bias=True)
    scaling = dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=64,
                   rope_theta=10000.0)
    make(folder, "llama-llama3", *llama, tie_word_embeddings=True, rope_scaling=scaling,
         extra={"rope_freqs.weight": llama3_factors(10000.0, 16, scaling)})
    make(folder, "llama-linear", *llama, tie_word_embeddings=False,
         rope_scaling=dict(rope_type="linear", factor=4.0, rope_theta=10000.0),
         metadata={"rope.scaling.type": "linear", "rope.scaling.factor": 4.0})
    short, long = [1.0 + 0.1 * i for i in range(8)], [1.0 + 0.7 * i for i in range(8)]
    make(folder, "llama-longrope", *llama, tie_word_embeddings=True, original_max_position_embeddings=16,
         rope_scaling=dict(rope_type="longrope", short_factor=short, long_factor=long, factor=8.0, attention_factor=1.2,
                           original_max_position_embeddings=16, rope_theta=10000.0),
         metadata={"rope.scaling.type": "longrope", "rope.scaling.factor": 8.0, "rope.scaling.original_context_length": 16,
                   "rope.scaling.attn_factor": 1.2},
         extra={"rope_factors_short.weight": torch.tensor(short), "rope_factors_long.weight": torch.tensor(long)})
    make(folder, "qwen2-yarn", *qwen2, tie_word_embeddings=True,
         rope_scaling=dict(rope_type="yarn", factor=4.0, original_max_position_embeddings=32, rope_theta=10000.0),
         metadata={"rope.scaling.type": "yarn", "rope.scaling.factor": 4.0, "rope.scaling.original_context_length": 32})
    make(folder, "qwen3", *qwen3, tie_word_embeddings=False, head_dim=32, rope_theta=1000000.0)


if __name__ == "__main__":
    main()

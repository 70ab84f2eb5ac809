#!/usr/bin/env python3
"""Writes tiny random models as GGUF (F32) and the logits that Hugging Face transformers computes for them in float32.

    python3 make_reference.py FOLDER [NAME...]        (needs torch and transformers; without names all of them)

<name>.gguf    the model, tensors laid out and named as llama.cpp's converter does
<name>.logits  little-endian: int32 tokens, int32 vocabulary, int32 ids[tokens], float32 logits[tokens][vocabulary]
<name>.greedy  of the newer ones: int32 tokens, int32 steps, int32 ids[tokens], int32 greedy[steps], float32 margins[steps] between the
               two best logits
"""
import math
import struct
import sys
from pathlib import Path

import torch
import transformers
from transformers import (Gemma2Config, Gemma2ForCausalLM, GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM, Qwen2Config,
                          Qwen2ForCausalLM, Qwen3Config, Qwen3ForCausalLM)

TOKENS = 48
PROMPT = 24  # of them, from which greedy tokens go on
LEAST_MARGIN = 4e-3  # of a greedy token: twice the error that a logit may have
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


def randomise(model, name, norm_centre):
    torch.manual_seed(sum(name.encode()))
    with torch.no_grad():
        for key, tensor in model.named_parameters():
            if key.endswith("bias"):
                tensor.normal_(0.0, 0.3)
            elif "norm" in key or "ln_" in key:
                tensor.uniform_(norm_centre - 0.5, norm_centre + 0.5)
            else:
                tensor.normal_(0.0, 0.15)


def save(folder, name, architecture, model, keys, tensors):
    """Writes the model and what it computes for random ids."""
    write_gguf(folder / f"{name}.gguf",
               {"general.architecture": architecture, "general.name": name, **{f"{architecture}.{k}": v for k, v in keys.items()}},
               tensors)
    with torch.no_grad():
        ids = torch.randint(0, VOCAB, (1, TOKENS))
        logits = model(input_ids=ids, use_cache=False).logits[0]
    header = struct.pack(f"<ii{TOKENS}i", TOKENS, VOCAB, *ids[0].tolist())
    (folder / f"{name}.logits").write_bytes(header + logits.contiguous().numpy().astype("<f4").tobytes())
    print(name, "logits", float(logits.min()), float(logits.max()))
    return ids[0].tolist()


def save_greedy(folder, name, model, prompt):
    sequence, margins = list(prompt), []
    with torch.no_grad():
        for _ in range(PROMPT):
            last = model(input_ids=torch.tensor([sequence]), use_cache=False).logits[0, -1]
            best = torch.topk(last, 2)
            margins.append(float(best.values[0] - best.values[1]))
            sequence.append(int(best.indices[0]))
    if min(margins) < LEAST_MARGIN:
        raise SystemExit(f"{name}: two tokens are as good as equal ({min(margins)}), choose other weights")
    steps = len(margins)
    (folder / f"{name}.greedy").write_bytes(struct.pack(f"<ii{len(sequence)}i{steps}f", len(prompt), steps, *sequence, *margins))
    print(name, "greedy", sequence[len(prompt):], "least margin", min(margins))


def make(folder, name, architecture, config_type, model_type, metadata=None, extra=None, **options):
    theta = options.setdefault("rope_theta", 10000.0)
    config = config_type(**{**SHAPE, **options}, attn_implementation="eager")
    model = model_type(config).float().eval()
    randomise(model, name, 1.0)
    head_dim = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    keys = {
        "context_length": 128, "embedding_length": 64, "feed_forward_length": 96, "block_count": 2, "attention.head_count": 4,
        "attention.head_count_kv": 2, "attention.layer_norm_rms_epsilon": 1e-5, "rope.freq_base": theta,
        "rope.dimension_count": head_dim, "attention.key_length": head_dim, "attention.value_length": head_dim, **(metadata or {}),
    }
    save(folder, name, architecture, model, keys, {**gguf_tensors(model, config, architecture), **(extra or {})})
    rotary = model.model.rotary_emb
    print("rope", rotary.inv_freq.tolist(), rotary.attention_scaling)


def make_gpt2(folder, name):
    config = GPT2Config(vocab_size=VOCAB, n_embd=64, n_inner=80, n_layer=2, n_head=4, n_positions=64, layer_norm_epsilon=1e-5,
                        bos_token_id=None, eos_token_id=None, attn_implementation="eager")
    model = GPT2LMHeadModel(config).float().eval()
    randomise(model, name, 1.0)
    names = {"wte": "token_embd", "wpe": "position_embd", "ln_f": "output_norm", "ln_1": "attn_norm", "attn.c_attn": "attn_qkv",
             "attn.c_proj": "attn_output", "ln_2": "ffn_norm", "mlp.c_fc": "ffn_up", "mlp.c_proj": "ffn_down"}
    tensors = {}
    for key, tensor in model.transformer.state_dict().items():
        stem, kind = key.rsplit(".", 1)
        prefix = ""
        if stem.startswith("h."):
            _, layer, stem = stem.split(".", 2)
            prefix = f"blk.{layer}."
        if stem not in names:
            continue  # masks
        if "c_" in stem and kind == "weight":
            tensor = tensor.t()  # kept as [inputs, outputs]
        tensors[f"{prefix}{names[stem]}.{kind}"] = tensor
    keys = {"context_length": 64, "embedding_length": 64, "feed_forward_length": 80, "block_count": 2, "attention.head_count": 4,
            "attention.layer_norm_epsilon": 1e-5}
    ids = save(folder, name, "gpt2", model, keys, tensors)
    save_greedy(folder, name, model, ids[:PROMPT])


def make_gemma2(folder, name):
    """The window is shorter than the prompt and no multiple of a block, and the caps are low, so that each of them counts."""
    config = Gemma2Config(vocab_size=VOCAB, hidden_size=64, intermediate_size=48, num_hidden_layers=3, num_attention_heads=2,
                          num_key_value_heads=1, head_dim=24, query_pre_attn_scalar=24, max_position_embeddings=1024, rms_norm_eps=1e-6,
                          rope_theta=10000.0, sliding_window=12, attn_logit_softcapping=1.5, final_logit_softcapping=1.5,
                          attn_implementation="eager")
    model = Gemma2ForCausalLM(config).float().eval()
    randomise(model, name, 0.0)
    with torch.no_grad():
        model.model.embed_tokens.weight.mul_(0.3)  # else each token would foretell itself
    norms = {"input_layernorm": "attn_norm", "post_attention_layernorm": "post_attention_norm", "pre_feedforward_layernorm": "ffn_norm",
             "post_feedforward_layernorm": "post_ffw_norm"}
    tensors = {}
    for key, tensor in model.model.state_dict().items():
        stem, kind = key.rsplit(".", 1)
        prefix = ""
        if stem.startswith("layers."):
            _, layer, stem = stem.split(".", 2)
            prefix = f"blk.{layer}."
        gguf_name = norms.get(stem) or NAMES.get(stem) or NAMES["model." + stem]
        tensors[f"{prefix}{gguf_name}.{kind}"] = tensor + 1 if "norm" in stem else tensor  # transformers adds 1 later
    keys = {"context_length": 1024, "embedding_length": 64, "feed_forward_length": 48, "block_count": 3, "attention.head_count": 2,
            "attention.head_count_kv": 1, "attention.key_length": 24, "attention.value_length": 24,
            "attention.layer_norm_rms_epsilon": 1e-6, "attention.sliding_window": 12, "attn_logit_softcapping": 1.5,
            "final_logit_softcapping": 1.5}
    ids = save(folder, name, "gemma2", model, keys, tensors)
    save_greedy(folder, name, model, ids[:PROMPT])


def main():
    folder, names = Path(sys.argv[1]), sys.argv[2:]
    print("torch", torch.__version__, "transformers", transformers.__version__)
    llama = ("llama", LlamaConfig, LlamaForCausalLM)
    qwen2 = ("qwen2", Qwen2Config, Qwen2ForCausalLM)
    qwen3 = ("qwen3", Qwen3Config, Qwen3ForCausalLM)
    llama3 = dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=64,
                  rope_theta=10000.0)
    short, long = [1.0 + 0.1 * i for i in range(8)], [1.0 + 0.7 * i for i in range(8)]
    models = {
        "llama-biased": lambda name: make(folder, name, *llama, tie_word_embeddings=False, attention_bias=True),
        "llama-llama3": lambda name: make(
            folder, name, *llama, tie_word_embeddings=True, rope_scaling=llama3,
            extra={"rope_freqs.weight": llama3_factors(10000.0, 16, llama3)}),
        "llama-linear": lambda name: make(
            folder, name, *llama, tie_word_embeddings=False, rope_scaling=dict(rope_type="linear", factor=4.0, rope_theta=10000.0),
            metadata={"rope.scaling.type": "linear", "rope.scaling.factor": 4.0}),
        "llama-longrope": lambda name: make(
            folder, name, *llama, tie_word_embeddings=True, original_max_position_embeddings=16,
            rope_scaling=dict(rope_type="longrope", short_factor=short, long_factor=long, factor=8.0, attention_factor=1.2,
                              original_max_position_embeddings=16, rope_theta=10000.0),
            metadata={"rope.scaling.type": "longrope", "rope.scaling.factor": 8.0, "rope.scaling.original_context_length": 16,
                      "rope.scaling.attn_factor": 1.2},
            extra={"rope_factors_short.weight": torch.tensor(short), "rope_factors_long.weight": torch.tensor(long)}),
        "qwen2-yarn": lambda name: make(
            folder, name, *qwen2, tie_word_embeddings=True,
            rope_scaling=dict(rope_type="yarn", factor=4.0, original_max_position_embeddings=32, rope_theta=10000.0),
            metadata={"rope.scaling.type": "yarn", "rope.scaling.factor": 4.0, "rope.scaling.original_context_length": 32}),
        "qwen3": lambda name: make(folder, name, *qwen3, tie_word_embeddings=False, head_dim=32, rope_theta=1000000.0),
        "gpt2": lambda name: make_gpt2(folder, name),
        "gemma2": lambda name: make_gemma2(folder, name),
    }
    for name in names or models:
        models[name](name)


if __name__ == "__main__":
    main()

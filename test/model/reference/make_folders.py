#!/usr/bin/env python3
"""Writes tiny random models as Hugging Face folders and what transformers computes for them in float32.

    python3 make_folders.py FOLDER [NAME...]        (needs torch, transformers 5 and safetensors; without names all of them)

<name>/config.json, model.safetensors   the model, its parameters rounded to bf16
<name>/reference.json                   input_ids, last_logits, 24 greedy tokens and the margin between the two best logits at each of them

Seeds are tried until no greedy token is a near tie. Families whose code is not part of transformers are written from a model that computes
the same, with the tensor names and the configuration of their own code.
"""
import json
import sys
import traceback
from pathlib import Path

import torch
import transformers as T
from safetensors.torch import load_file, save_file

LINEAR = "linear_attention"
VOCAB, PROMPT, STEPS, LEAST_MARGIN = 120, 40, 24, 6e-3
B = dict(vocab_size=VOCAB, hidden_size=32, intermediate_size=48, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=2,
         max_position_embeddings=256, bos_token_id=0, eos_token_id=1, pad_token_id=2)
GPT = dict(vocab_size=VOCAB, bos_token_id=0, eos_token_id=1)


def rope(kind, **more):
    return {"rope_parameters": {"rope_type": kind, "rope_theta": 10000.0, **more}}


def plus_one(model):
    """Whether norms multiply by 1 + weight."""
    name = type(model).__name__.lower()
    return ("gemma" in name and not name.startswith(("gemma3n", "gemma4"))) or "nemotron" in name


def randomise(model, seed):
    torch.manual_seed(seed)
    with torch.no_grad():
        for name, p in model.named_parameters():
            if "alpha_" in name:
                p.uniform_(-1.0, 1.0)
            elif name.endswith(("correct_output_scale", "router.scale", "per_expert_scale")):
                p.uniform_(0.5, 1.5)
            elif name.endswith("modality_router.weight"):  # what it reads is divided by its width
                p.normal_(0, 0.5 * p.shape[-1] ** 0.5)
            elif name.endswith("sinks"):
                p.normal_(0, 1.0)
            elif p.dim() >= 2 and "norm" not in name:
                p.normal_(0, 1.6 / p.shape[-1] ** 0.5)
            elif ("norm" in name or "ln_" in name) and name.endswith("weight"):
                p.normal_(0.0 if plus_one(model) else 1.0, 0.2)
            else:
                p.normal_(0, 0.2)
        # Parameters only: rounding the module would round rotary frequencies too. What corrects the choice of experts is a buffer in most.
        corrections = [b for name, b in model.named_buffers() if "correction_bias" in name]
        for b in corrections:
            b.normal_(0, 0.2)
        scales = [b for name, b in model.named_buffers() if name.endswith("layer_scalar")]
        for b in scales:
            b.uniform_(0.5, 1.5)
        for p in [*model.parameters(), *corrections, *scales]:
            p.copy_(p.to(torch.bfloat16).float())
    return model.float().eval()


def reference(model):
    ids = torch.randint(3, VOCAB, (PROMPT,)).tolist()
    sequence, margins = list(ids), []
    with torch.no_grad():
        last = model(torch.tensor([ids]), use_cache=False).logits[0, -1].float()
        for _ in range(STEPS):
            logits = model(torch.tensor([sequence]), use_cache=False).logits[0, -1].float()
            best = torch.topk(logits, 2).values
            margins.append(float(best[0] - best[1]))
            sequence.append(int(logits.argmax()))
    return {"input_ids": ids, "last_logits": last.tolist(), "greedy": sequence[PROMPT:], "margins": margins}


def best_of_seeds(name, make, bend=lambda model: None):
    for seed in range(1, 60):
        model = randomise(make(), seed + 1000 * sum(name.encode()))
        bend(model)
        found = reference(model)
        if min(found["margins"]) >= LEAST_MARGIN:
            return model, found
    raise RuntimeError("all seeds give near ties")


def tensors_of(model):
    tied = set(getattr(model, "_tied_weights_keys", None) or {}) if model.config.get_text_config().tie_word_embeddings else set()
    state = {k: v.to(torch.bfloat16).contiguous().clone() for k, v in model.state_dict().items() if k not in tied and v.is_floating_point()}
    return state


def write(folder, name, found, config, tensors):
    path = folder / name
    path.mkdir(parents=True, exist_ok=True)
    (path / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    if tensors is not None:
        save_file(tensors, path / "model.safetensors", metadata={"format": "pt"})
    found["last_logits"] = [round(x, 7) for x in found["last_logits"]]
    found["margins"] = [round(x, 5) for x in found["margins"]]
    (path / "reference.json").write_text(json.dumps(found) + "\n")


def part_experts(path):
    """Experts that were saved joined, as the files of the hub have them."""
    if "gpt-oss" in str(path) or "gemma4" in str(path):
        return
    tensors = parted(load_file(path), None)
    save_file({k: v.contiguous().clone() for k, v in tensors.items()}, path, metadata={"format": "pt"})


def plain(name, model_class, config_class, **options):
    """A family of transformers: saved by itself, so that names are those of its files."""
    def job(folder):
        make = lambda: getattr(T, model_class)(getattr(T, config_class)(**{k: v for k, v in options.items() if v is not None}))
        model, found = best_of_seeds(name, make)
        model.config.dtype = torch.bfloat16
        state = {k: v.to(torch.bfloat16) if v.is_floating_point() else v for k, v in model.state_dict().items()}
        model.save_pretrained(folder / name, state_dict=state)
        part_experts(folder / name / "model.safetensors")
        (folder / name / "generation_config.json").unlink(missing_ok=True)
        write(folder, name, found, json.loads((folder / name / "config.json").read_text()), None)
    return job


def decoder(name, model_class, config_class, **options):
    return plain(name, model_class, config_class, **{**B, **options})


def renamed(name, twin, config, rename):
    """A family of remote code: `twin` computes the same, rename(tensors, twin) gives its tensors, `config` what its configuration says."""
    def job(folder):
        model, found = best_of_seeds(name, twin)
        write(folder, name, found, config, {k: v.contiguous().clone() for k, v in rename(tensors_of(model), model).items()})
    return job


def llama(**more):
    return lambda: T.LlamaForCausalLM(T.LlamaConfig(**{**B, **more}))


def mapped(tensors, names):
    out = {}
    for key, value in tensors.items():
        for old, new in names.items():
            key = key.replace(old, new)
        out[key] = value
    return out


def internlm2(tensors, model):
    c = model.config
    group, d = c.num_attention_heads // c.num_key_value_heads, c.head_dim
    out = {}
    for i in range(c.num_hidden_layers):
        q, k, v = (tensors.pop(f"model.layers.{i}.self_attn.{x}_proj.weight") for x in "qkv")
        parts = [q.reshape(-1, group, d, c.hidden_size), k.reshape(-1, 1, d, c.hidden_size), v.reshape(-1, 1, d, c.hidden_size)]
        out[f"model.layers.{i}.attention.wqkv.weight"] = torch.cat(parts, 1).reshape(-1, c.hidden_size)
    names = {"model.embed_tokens": "model.tok_embeddings", "self_attn.o_proj": "attention.wo", "mlp.gate_proj": "feed_forward.w1",
             "mlp.up_proj": "feed_forward.w3", "mlp.down_proj": "feed_forward.w2", "input_layernorm": "attention_norm",
             "post_attention_layernorm": "ffn_norm", "lm_head": "output"}
    return {**mapped(tensors, names), **out}


def packed_qkv(tensors, model):
    for i in range(model.config.num_hidden_layers):
        parts = [tensors.pop(f"model.layers.{i}.self_attn.{x}_proj.weight") for x in "qkv"]
        tensors[f"model.layers.{i}.self_attn.W_pack.weight"] = torch.cat(parts, 0)
    return tensors


def exaone3(tensors, model):
    names = {"model.embed_tokens": "transformer.wte", "model.layers": "transformer.h", "model.norm": "transformer.ln_f",
             "self_attn.o_proj": "self_attn.out_proj", "self_attn": "attn.attention", "input_layernorm": "ln_1",
             "post_attention_layernorm": "ln_2", "mlp.gate_proj": "mlp.c_fc_0", "mlp.up_proj": "mlp.c_fc_1", "mlp.down_proj": "mlp.c_proj"}
    return mapped(tensors, names)


def parted(tensors, model):
    out = {}
    for name, value in tensors.items():
        if not name.endswith((".experts.gate_up_proj", ".experts.up_proj", ".experts.down_proj")):
            out[name] = value
            continue
        for i, expert in enumerate(value):
            parts = expert.chunk(2) if name.endswith("gate_up_proj") else [expert]
            for part, kind in zip(parts, ("gate_proj", "up_proj") if len(parts) == 2 else (name.rsplit(".", 1)[1],)):
                out[f"{name.rsplit('.', 1)[0]}.{i}.{kind}.weight"] = part
    return out


def same(tensors, model):
    return tensors


MXFP4_VALUES = torch.tensor([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0])


def to_mxfp4(weights):
    """[experts, inputs, outputs] -> blocks [experts, outputs, inputs / 32, 16], scales [experts, outputs, inputs / 32], and their values."""
    rows = weights.transpose(1, 2).reshape(weights.shape[0], weights.shape[2], -1, 32)
    exponent = torch.floor(torch.log2(rows.abs().amax(-1, keepdim=True).clamp(min=1e-20))) - 2
    codes = ((rows / 2.0 ** exponent).unsqueeze(-1) - MXFP4_VALUES).abs().argmin(-1)
    values = (MXFP4_VALUES[codes] * 2.0 ** exponent).reshape(weights.shape[0], weights.shape[2], -1).transpose(1, 2)
    return (codes[..., 0::2] | codes[..., 1::2] << 4).to(torch.uint8), (exponent[..., 0] + 127).to(torch.uint8), values


def gpt_oss_mxfp4(name, config):
    """Experts as the files of the hub have them."""
    packed = {}

    def bend(model):
        with torch.no_grad():
            for i, layer in enumerate(model.model.layers):
                for part in ("gate_up_proj", "down_proj"):
                    parameter = getattr(layer.mlp.experts, part)
                    blocks, scales, values = to_mxfp4(parameter)
                    parameter.copy_(values)
                    packed[f"model.layers.{i}.mlp.experts.{part}_blocks"] = blocks
                    packed[f"model.layers.{i}.mlp.experts.{part}_scales"] = scales

    def job(folder):
        model, found = best_of_seeds(name, lambda: T.GptOssForCausalLM(T.GptOssConfig(**config)), bend)
        tensors = {k: v for k, v in tensors_of(model).items() if not k.endswith(("gate_up_proj", "down_proj"))}
        written = {**json.loads(model.config.to_json_string(use_diff=False)), "quantization_config": {"quant_method": "mxfp4"}}
        write(folder, name, found, written, {**tensors, **packed})
    return job


OLD = dict(hidden_size=32, intermediate_size=48, num_hidden_layers=3, num_attention_heads=4, vocab_size=VOCAB,
           max_position_embeddings=256, rms_norm_eps=1e-6, bos_token_id=0, eos_token_id=1, torch_dtype="bfloat16", hidden_act="silu")
LLAMA3 = dict(factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=64)
FULL, SLIDING = "full_attention", "sliding_attention"
SPB = dict(num_hidden_layers=4, sliding_window=12, layer_types=[SLIDING, SLIDING, SLIDING, FULL])
# MiniCPM: embeddings by scale_emb, branches by scale_depth / sqrt(layers), logits over hidden_size / dim_model_base.
MINICPM = dict(scale_emb=4, scale_depth=1.4, dim_model_base=16)

MLA = dict(num_key_value_heads=4, kv_lora_rank=20, qk_nope_head_dim=12, qk_rope_head_dim=8, v_head_dim=16, n_routed_experts=8,
           num_experts_per_tok=3, moe_intermediate_size=20, first_k_dense_replace=1)

JOBS = {
    "llama-llama3": ("LlamaForCausalLM", "LlamaConfig", rope("llama3", **LLAMA3)),
    "llama-biased": ("LlamaForCausalLM", "LlamaConfig", dict(attention_bias=True, mlp_bias=True, head_dim=12, tie_word_embeddings=True)),
    "llama-linear": ("LlamaForCausalLM", "LlamaConfig", rope("linear", factor=4.0)),
    "llama-dynamic": ("LlamaForCausalLM", "LlamaConfig", rope("dynamic", factor=4.0)),
    "mistral": ("MistralForCausalLM", "MistralConfig", dict(sliding_window=12, head_dim=16)),
    "ministral": ("MinistralForCausalLM", "MinistralConfig", dict(sliding_window=12, head_dim=16, layer_types=[SLIDING, FULL, SLIDING])),
    "ministral3": ("Ministral3ForCausalLM", "Ministral3Config", dict(head_dim=16, rope_parameters={
        "rope_type": "yarn", "rope_theta": 1000000.0, "factor": 16.0, "original_max_position_embeddings": 16, "beta_fast": 32.0,
        "beta_slow": 1.0, "mscale": 1.0, "mscale_all_dim": 1.0, "llama_4_scaling_beta": 0.1})),
    "qwen2-yarn": ("Qwen2ForCausalLM", "Qwen2Config", dict(tie_word_embeddings=True, **rope(
        "yarn", factor=4.0, original_max_position_embeddings=64))),
    "qwen2-window": ("Qwen2ForCausalLM", "Qwen2Config", dict(use_sliding_window=True, sliding_window=12, max_window_layers=1)),
    "qwen3": ("Qwen3ForCausalLM", "Qwen3Config", dict(head_dim=16)),
    "phi3": ("Phi3ForCausalLM", "Phi3Config", dict(sliding_window=12)),
    "phi3-longrope": ("Phi3ForCausalLM", "Phi3Config", dict(
        original_max_position_embeddings=16, rope_parameters={
            "rope_type": "longrope", "rope_theta": 10000.0, "partial_rotary_factor": 0.75, "original_max_position_embeddings": 16,
            "short_factor": [1.0 + 0.1 * k for k in range(3)], "long_factor": [1.0 + 0.5 * k for k in range(3)]})),
    "phi3-longrope-crossed": ("Phi3ForCausalLM", "Phi3Config", dict(
        original_max_position_embeddings=52, rope_parameters={
            "rope_type": "longrope", "rope_theta": 10000.0, "partial_rotary_factor": 1.0, "original_max_position_embeddings": 52,
            "short_factor": [1.0 + 0.1 * k for k in range(4)], "long_factor": [1.0 + 0.5 * k for k in range(4)]})),
    "phi": ("PhiForCausalLM", "PhiConfig", dict(num_key_value_heads=4, partial_rotary_factor=0.5)),
    "gemma": ("GemmaForCausalLM", "GemmaConfig", dict(head_dim=16, num_key_value_heads=1)),
    "gemma2": ("Gemma2ForCausalLM", "Gemma2Config", dict(head_dim=16, sliding_window=12, query_pre_attn_scalar=12,
                                                            attn_implementation="eager")),  # others leave the cap of scores out
    "gemma3": ("Gemma3ForCausalLM", "Gemma3TextConfig", dict(head_dim=16, query_pre_attn_scalar=12, **SPB, rope_parameters={
        SLIDING: {"rope_type": "default", "rope_theta": 10000.0}, FULL: {"rope_type": "linear", "rope_theta": 1000000.0, "factor": 8.0}})),
    # Streams, inputs of each layer, keys and values of other layers, sparse activations.
    "gemma3n": ("Gemma3nForCausalLM", "Gemma3nTextConfig", dict(
        num_hidden_layers=5, intermediate_size=[48, 40, 48, 40, 48], head_dim=12, sliding_window=12, hidden_size_per_layer_input=8,
        layer_types=[SLIDING, FULL, SLIDING, SLIDING, FULL], vocab_size_per_layer_input=VOCAB, num_kv_shared_layers=2, laurel_rank=8,
        activation_sparsity_pattern=[0.9, 0.6, 0.0, 0.0, 0.0])),
    # Gemma 4's small sizes, its large one, and its mixture of experts.
    "gemma4": ("Gemma4ForCausalLM", "Gemma4TextConfig", dict(
        num_hidden_layers=4, head_dim=16, global_head_dim=24, sliding_window=12, hidden_size_per_layer_input=8, intermediate_size=40,
        layer_types=[SLIDING, FULL, SLIDING, FULL], vocab_size_per_layer_input=VOCAB, num_kv_shared_layers=2, use_double_wide_mlp=True,
        final_logit_softcapping=30.0)),
    "gemma4-large": ("Gemma4ForCausalLM", "Gemma4TextConfig", dict(
        num_hidden_layers=4, head_dim=16, global_head_dim=32, sliding_window=12, hidden_size_per_layer_input=0, attention_k_eq_v=True,
        layer_types=[SLIDING, SLIDING, SLIDING, FULL], num_global_key_value_heads=1, final_logit_softcapping=30.0)),
    "gemma4-moe": ("Gemma4ForCausalLM", "Gemma4TextConfig", dict(
        num_hidden_layers=2, head_dim=16, global_head_dim=32, sliding_window=12, hidden_size_per_layer_input=0, attention_k_eq_v=True,
        layer_types=[SLIDING, FULL], num_global_key_value_heads=1, final_logit_softcapping=30.0, enable_moe_block=True, num_experts=8,
        top_k_experts=3, moe_intermediate_size=20)),
    "smollm3": ("SmolLM3ForCausalLM", "SmolLM3Config", dict(no_rope_layers=[1, 0, 1])),
    "granite": ("GraniteForCausalLM", "GraniteConfig", dict(embedding_multiplier=4.0, logits_scaling=2.0, residual_multiplier=0.4,
                                                             attention_multiplier=0.25)),
    "olmo": ("OlmoForCausalLM", "OlmoConfig", dict(clip_qkv=1.0)),
    "olmo2": ("Olmo2ForCausalLM", "Olmo2Config", {}),
    "olmo2-biased": ("Olmo2ForCausalLM", "Olmo2Config", dict(attention_bias=True)),
    "olmo3": ("Olmo3ForCausalLM", "Olmo3Config", dict(**SPB)),
    "cohere": ("CohereForCausalLM", "CohereConfig", dict(use_qk_norm=True, logit_scale=0.25)),
    "cohere-untied": ("CohereForCausalLM", "CohereConfig", dict(tie_word_embeddings=False)),
    "cohere2": ("Cohere2ForCausalLM", "Cohere2Config", dict(head_dim=16, logit_scale=0.25, **SPB)),
    "glm": ("GlmForCausalLM", "GlmConfig", dict(head_dim=16, attention_bias=True)),
    "glm4": ("Glm4ForCausalLM", "Glm4Config", dict(head_dim=16, attention_bias=True)),
    "starcoder2": ("Starcoder2ForCausalLM", "Starcoder2Config", dict(sliding_window=12)),
    "stablelm": ("StableLmForCausalLM", "StableLmConfig", dict(partial_rotary_factor=0.5, use_qkv_bias=True)),
    "stablelm-parallel": ("StableLmForCausalLM", "StableLmConfig", dict(partial_rotary_factor=0.25, qk_layernorm=True,
                                                                         use_parallel_residual=True)),
    "nemotron": ("NemotronForCausalLM", "NemotronConfig", dict(partial_rotary_factor=0.5)),
    "exaone4": ("Exaone4ForCausalLM", "Exaone4Config", dict(sliding_window_pattern=4, **SPB)),
    "ernie4.5": ("Ernie4_5ForCausalLM", "Ernie4_5Config", dict(head_dim=16)),
    "hunyuan": ("HunYuanDenseV1ForCausalLM", "HunYuanDenseV1Config", dict(head_dim=16)),
    "hunyuan-alpha": ("HunYuanDenseV1ForCausalLM", "HunYuanDenseV1Config", dict(head_dim=16, rope_parameters={
        "rope_type": "dynamic", "rope_theta": 10000.0, "alpha": 1000.0, "factor": 1.0})),
    "seed-oss": ("SeedOssForCausalLM", "SeedOssConfig", dict(head_dim=16)),
    "apertus": ("ApertusForCausalLM", "ApertusConfig", rope("llama3", **LLAMA3)),
    "arcee": ("ArceeForCausalLM", "ArceeConfig", {}),
    # Mixtures of experts.
    "mixtral": ("MixtralForCausalLM", "MixtralConfig", dict(num_local_experts=8, num_experts_per_tok=2, sliding_window=12)),
    "qwen2-moe": ("Qwen2MoeForCausalLM", "Qwen2MoeConfig", dict(
        num_experts=8, num_experts_per_tok=3, moe_intermediate_size=20, shared_expert_intermediate_size=28, mlp_only_layers=[1])),
    "qwen3-moe": ("Qwen3MoeForCausalLM", "Qwen3MoeConfig", dict(
        head_dim=16, num_experts=8, num_experts_per_tok=3, moe_intermediate_size=20, norm_topk_prob=True, decoder_sparse_step=2)),
    "olmoe": ("OlmoeForCausalLM", "OlmoeConfig", dict(num_experts=8, num_experts_per_tok=3)),
    "granite-moe": ("GraniteMoeForCausalLM", "GraniteMoeConfig", dict(
        num_local_experts=8, num_experts_per_tok=3, embedding_multiplier=4.0, logits_scaling=2.0, residual_multiplier=0.4,
        attention_multiplier=0.25)),
    "granite-moe-shared": ("GraniteMoeSharedForCausalLM", "GraniteMoeSharedConfig", dict(
        num_local_experts=8, num_experts_per_tok=3, shared_intermediate_size=28)),
    "phimoe": ("PhimoeForCausalLM", "PhimoeConfig", dict(
        num_local_experts=8, num_experts_per_tok=2, attention_bias=True, lm_head_bias=True)),
    "gpt-oss": ("GptOssForCausalLM", "GptOssConfig", dict(
        head_dim=16, intermediate_size=32, num_local_experts=8, num_experts_per_tok=3, sliding_window=12,
        attn_implementation="eager", layer_types=[SLIDING, FULL, SLIDING],
        **rope("yarn", factor=4.0, original_max_position_embeddings=64, beta_fast=32.0, beta_slow=1.0, truncate=False))),
    "ernie4.5-moe": ("Ernie4_5_MoeForCausalLM", "Ernie4_5_MoeConfig", dict(
        moe_num_experts=8, moe_k=3, moe_intermediate_size=20, moe_num_shared_experts=2, moe_layer_start_index=1)),
    "glm4-moe": ("Glm4MoeForCausalLM", "Glm4MoeConfig", dict(
        head_dim=16, n_routed_experts=8, num_experts_per_tok=3, moe_intermediate_size=20, n_shared_experts=1, first_k_dense_replace=1,
        routed_scaling_factor=1.5, use_qk_norm=True, attention_bias=True, n_group=1, topk_group=1)),
    "dots1": ("Dots1ForCausalLM", "Dots1Config", dict(
        head_dim=16, n_routed_experts=8, num_experts_per_tok=3, moe_intermediate_size=20, n_shared_experts=2, first_k_dense_replace=1,
        routed_scaling_factor=1.5, n_group=1, topk_group=1)),
    "minimax-m2": ("MiniMaxM2ForCausalLM", "MiniMaxM2Config", dict(
        head_dim=16, intermediate_size=20, num_local_experts=8, num_experts_per_tok=3,
        **rope("default", partial_rotary_factor=0.5))),
    "hunyuan-moe": ("HunYuanMoEV1ForCausalLM", "HunYuanMoEV1Config", dict(head_dim=16, num_experts=8, moe_topk=3)),
    "flex-olmo": ("FlexOlmoForCausalLM", "FlexOlmoConfig", dict(num_experts=8, num_experts_per_tok=3)),
    # Latent attention.
    "deepseek-v2": ("DeepseekV2ForCausalLM", "DeepseekV2Config", dict(
        **MLA, q_lora_rank=24, topk_method="group_limited_greedy", n_group=4, topk_group=2, n_shared_experts=1, routed_scaling_factor=4.0,
        **rope("yarn", factor=4.0, original_max_position_embeddings=64, beta_fast=32.0, beta_slow=1.0))),
    "deepseek-v3": ("DeepseekV3ForCausalLM", "DeepseekV3Config", dict(
        **MLA, q_lora_rank=24, n_group=4, topk_group=2, n_shared_experts=1, routed_scaling_factor=2.5, norm_topk_prob=True,
        **rope("yarn", factor=4.0, original_max_position_embeddings=64, beta_fast=32.0, beta_slow=1.0, mscale=1.0, mscale_all_dim=1.0))),
    "deepseek-v3-biased": ("DeepseekV3ForCausalLM", "DeepseekV3Config", dict(
        **MLA, q_lora_rank=24, n_group=1, topk_group=1, n_shared_experts=1, attention_bias=True)),
    "glm4-moe-lite": ("Glm4MoeLiteForCausalLM", "Glm4MoeLiteConfig", dict(
        **MLA, q_lora_rank=24, n_group=1, topk_group=1, n_shared_experts=1, routed_scaling_factor=1.8, norm_topk_prob=True)),
    "minicpm3": ("MiniCPM3ForCausalLM", "MiniCPM3Config", dict(
        num_key_value_heads=4, kv_lora_rank=20, q_lora_rank=24, qk_nope_head_dim=12, qk_rope_head_dim=8, v_head_dim=16, scale_emb=4,
        scale_depth=1.0, dim_model_base=16)),
    "lfm2": ("Lfm2ForCausalLM", "Lfm2Config", dict(num_hidden_layers=4, layer_types=["conv", FULL, "conv", "conv"])),
    "lfm2-biased": ("Lfm2ForCausalLM", "Lfm2Config", dict(num_hidden_layers=4, layer_types=["conv", "conv", FULL, FULL], conv_bias=True,
                                                         conv_L_cache=4, block_auto_adjust_ff_dim=False)),
    "granite4": ("GraniteMoeHybridForCausalLM", "GraniteMoeHybridConfig", dict(
        num_hidden_layers=4, layer_types=["mamba", "mamba", "attention", "mamba"], num_local_experts=0, num_experts_per_tok=0,
        shared_intermediate_size=48, mamba_n_heads=8, mamba_d_head=8, mamba_n_groups=1, mamba_d_state=16, mamba_d_conv=4, mamba_expand=2,
        mamba_chunk_size=16, embedding_multiplier=4.0, logits_scaling=2.0, residual_multiplier=0.4, attention_multiplier=0.25,
        position_embedding_type="nope")),
    "granite4-moe": ("GraniteMoeHybridForCausalLM", "GraniteMoeHybridConfig", dict(
        num_hidden_layers=4, layer_types=["mamba", "mamba", "attention", "mamba"], num_local_experts=8, num_experts_per_tok=3,
        intermediate_size=20, shared_intermediate_size=28, mamba_n_heads=8, mamba_d_head=8, mamba_n_groups=1, mamba_d_state=16,
        mamba_d_conv=4, mamba_expand=2, mamba_chunk_size=16, embedding_multiplier=4.0, logits_scaling=2.0, residual_multiplier=0.4,
        attention_multiplier=0.25, position_embedding_type="nope")),
    "bamba": ("BambaForCausalLM", "BambaConfig", dict(
        num_hidden_layers=4, attn_layer_indices=[2], mamba_n_heads=8, mamba_d_head=8, mamba_n_groups=2, mamba_d_state=16, mamba_d_conv=4,
        mamba_expand=2, mamba_chunk_size=16)),
    "bamba-single": ("BambaForCausalLM", "BambaConfig", dict(
        num_hidden_layers=3, attn_layer_indices=[1], mamba_n_heads=8, mamba_d_head=8, mamba_n_groups=1, mamba_d_state=16, mamba_d_conv=4,
        mamba_expand=2, mamba_chunk_size=16)),
    "falcon-h1": ("FalconH1ForCausalLM", "FalconH1Config", dict(
        head_dim=16, mamba_d_ssm=48, mamba_n_heads=6, mamba_d_head=8, mamba_n_groups=2, mamba_d_state=16, mamba_d_conv=4,
        mamba_chunk_size=16, embedding_multiplier=2.0, lm_head_multiplier=0.5, attention_in_multiplier=0.8, attention_out_multiplier=0.9,
        key_multiplier=0.7, ssm_in_multiplier=1.2, ssm_out_multiplier=0.6, mlp_multipliers=[0.9, 0.8],
        ssm_multipliers=[0.9, 1.1, 0.8, 1.2, 0.7])),
    "falcon-h1-normed": ("FalconH1ForCausalLM", "FalconH1Config", dict(
        head_dim=16, mamba_d_ssm=48, mamba_n_heads=6, mamba_d_head=8, mamba_n_groups=2, mamba_d_state=16, mamba_d_conv=4,
        mamba_chunk_size=16, mamba_rms_norm=True, mamba_norm_before_gate=False, tie_word_embeddings=True, embedding_multiplier=2.0,
        lm_head_multiplier=0.5)),
    "nemotron-h": ("NemotronHForCausalLM", "NemotronHConfig", dict(
        num_hidden_layers=5, layers_block_type=["mamba", "attention", "mlp", "mamba", "mlp"], head_dim=16, mamba_num_heads=8,
        mamba_head_dim=8, n_groups=2, ssm_state_size=16, conv_kernel=4, expand=2, chunk_size=16)),
    "nemotron-h-moe": ("NemotronHForCausalLM", "NemotronHConfig", dict(
        num_hidden_layers=5, hybrid_override_pattern="ME*EM", head_dim=16, mamba_num_heads=8, mamba_head_dim=8, n_groups=2,
        ssm_state_size=16, conv_kernel=4, expand=2, chunk_size=16, n_routed_experts=8, num_experts_per_tok=3, moe_intermediate_size=20,
        moe_shared_expert_intermediate_size=28, n_group=1, topk_group=1, norm_topk_prob=True, routed_scaling_factor=2.5)),
    "nemotron-h-latent": ("NemotronHForCausalLM", "NemotronHConfig", dict(
        num_hidden_layers=5, hybrid_override_pattern="ME*EM", head_dim=16, mamba_num_heads=8, mamba_head_dim=8, n_groups=2,
        ssm_state_size=16, conv_kernel=4, expand=2, chunk_size=16, n_routed_experts=8, num_experts_per_tok=3, moe_intermediate_size=20,
        moe_latent_size=16, moe_shared_expert_intermediate_size=28, n_group=1, topk_group=1, norm_topk_prob=True,
        routed_scaling_factor=2.5)),
    "qwen3.5": ("Qwen3_5ForCausalLM", "Qwen3_5TextConfig", dict(
        num_hidden_layers=4, layer_types=[LINEAR, LINEAR, FULL, LINEAR], head_dim=16, linear_num_key_heads=2, linear_num_value_heads=4,
        linear_key_head_dim=8, linear_value_head_dim=12, linear_conv_kernel_dim=4, rope_parameters={
            "rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.5, "mrope_section": [2, 1, 1],
            "mrope_interleaved": True})),
    "qwen3.5-moe": ("Qwen3_5MoeForCausalLM", "Qwen3_5MoeTextConfig", dict(
        num_hidden_layers=3, layer_types=[LINEAR, FULL, LINEAR], head_dim=16, linear_num_key_heads=2, linear_num_value_heads=4,
        linear_key_head_dim=8, linear_value_head_dim=8, linear_conv_kernel_dim=4, num_experts=8, num_experts_per_tok=3,
        moe_intermediate_size=20, shared_expert_intermediate_size=28, rope_parameters={
            "rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.25, "mrope_section": [1, 1, 0],
            "mrope_interleaved": True})),
    "qwen3-next": ("Qwen3NextForCausalLM", "Qwen3NextConfig", dict(
        num_hidden_layers=3, layer_types=[LINEAR, FULL, LINEAR], head_dim=16, linear_num_key_heads=2, linear_num_value_heads=4,
        linear_key_head_dim=8, linear_value_head_dim=12, linear_conv_kernel_dim=4, num_experts=8, num_experts_per_tok=3,
        moe_intermediate_size=20, shared_expert_intermediate_size=28, norm_topk_prob=True, decoder_sparse_step=1,
        rope_parameters={"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.25})),
    "lfm2-moe": ("Lfm2MoeForCausalLM", "Lfm2MoeConfig", dict(
        num_hidden_layers=4, layer_types=["conv", FULL, "conv", "conv"], num_dense_layers=1, num_experts=8, num_experts_per_tok=3,
        moe_intermediate_size=20, use_expert_bias=True, norm_topk_prob=True, routed_scaling_factor=1.5)),
}
JOBS = {name: decoder(name, model, config, **options) for name, (model, config, options) in JOBS.items()}
NEOX = dict(hidden_size=32, intermediate_size=48, num_hidden_layers=3, num_attention_heads=4, max_position_embeddings=256, **GPT)
FALCON = dict(hidden_size=32, num_hidden_layers=3, num_attention_heads=4, max_position_embeddings=256, ffn_hidden_size=48, **GPT)
JOBS.update({
    "mamba2": plain("mamba2", "Mamba2ForCausalLM", "Mamba2Config", hidden_size=32, num_hidden_layers=3, num_heads=8, head_dim=8, expand=2,
                    n_groups=2, state_size=16, conv_kernel=4, chunk_size=16, tie_word_embeddings=True, **GPT),
    "mamba2-single": plain("mamba2-single", "Mamba2ForCausalLM", "Mamba2Config", hidden_size=32, num_hidden_layers=2, num_heads=8,
                           head_dim=8, expand=2, n_groups=1, state_size=16, conv_kernel=4, chunk_size=16, tie_word_embeddings=True, **GPT),
    "gpt2": plain("gpt2", "GPT2LMHeadModel", "GPT2Config", n_embd=32, n_inner=48, n_layer=3, n_head=4, n_positions=256, **GPT),
    "gpt-neox": plain("gpt-neox", "GPTNeoXForCausalLM", "GPTNeoXConfig", rotary_pct=0.5, **NEOX),
    "gpt-neox-serial": plain("gpt-neox-serial", "GPTNeoXForCausalLM", "GPTNeoXConfig", use_parallel_residual=False, hidden_act="gelu_new",
                             **NEOX),
    "gptj": plain("gptj", "GPTJForCausalLM", "GPTJConfig", n_embd=32, n_inner=48, n_layer=3, n_head=4, n_positions=256, rotary_dim=4,
                  **GPT),
    "falcon": plain("falcon", "FalconForCausalLM", "FalconConfig", new_decoder_architecture=True, num_kv_heads=2, bias=False, **FALCON),
    "falcon-mq": plain("falcon-mq", "FalconForCausalLM", "FalconConfig", multi_query=True, parallel_attn=True, bias=False, **FALCON),
    "mpt": plain("mpt", "MptForCausalLM", "MptConfig", d_model=32, n_heads=4, n_layers=3, expansion_ratio=2, max_seq_len=256, **GPT),
    "bloom": plain("bloom", "BloomForCausalLM", "BloomConfig", hidden_size=32, n_layer=3, n_head=4, **GPT),
    "gemma3-wrapped": plain("gemma3-wrapped", "Gemma3ForConditionalGeneration", "Gemma3Config", image_token_index=110,
                            boi_token_index=111, eoi_token_index=112, mm_tokens_per_image=4, tie_word_embeddings=True,
                            text_config={**B, "head_dim": 16, "query_pre_attn_scalar": 12, **SPB, "model_type": "gemma3_text"},
                            vision_config=dict(hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2,
                                               image_size=28, patch_size=14, model_type="siglip_vision_model")),
    "internlm2": renamed("internlm2", llama(), {"architectures": ["InternLM2ForCausalLM"], "model_type": "internlm2",
                                                **OLD, "num_key_value_heads": 2, "rope_theta": 10000, "bias": False,
                                                "tie_word_embeddings": False}, internlm2),
    "internlm3": renamed("internlm3", llama(head_dim=16),
                         {"architectures": ["InternLM3ForCausalLM"], "model_type": "internlm3", **OLD, "num_key_value_heads": 2,
                          "head_dim": 16, "qkv_bias": False, "bias": False, "rope_theta": 10000, "tie_word_embeddings": False}, same),
    "baichuan": renamed("baichuan", llama(num_key_value_heads=4), {"architectures": ["BaichuanForCausalLM"], "model_type": "baichuan",
                                                                   **OLD, "model_max_length": 256, "tie_word_embeddings": False},
                        packed_qkv),
    "minicpm": renamed("minicpm", lambda: T.GraniteForCausalLM(T.GraniteConfig(**{
        **B, "embedding_multiplier": 4.0, "residual_multiplier": 1.4 / 3 ** 0.5, "logits_scaling": 2.0, "attention_multiplier": 8 ** -0.5,
        "tie_word_embeddings": True})), {"architectures": ["MiniCPMForCausalLM"], "model_type": "minicpm", **OLD,
                                         "num_key_value_heads": 2, **MINICPM, "tie_word_embeddings": True}, same),
    "exaone3": renamed("exaone3", llama(**rope("llama3", **LLAMA3)), {
        "architectures": ["ExaoneForCausalLM"], "model_type": "exaone", "hidden_size": 32, "intermediate_size": 48, "num_layers": 3,
        "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8, "vocab_size": VOCAB, "max_position_embeddings": 256,
        "layer_norm_epsilon": 1e-6, "activation_function": "silu", "bos_token_id": 0, "eos_token_id": 1, "tie_word_embeddings": False,
        "rope_theta": 10000.0, "rope_scaling": {"rope_type": "llama3", **LLAMA3}, "torch_dtype": "bfloat16"}, exaone3),
})

JOBS["gpt-oss-mxfp4"] = gpt_oss_mxfp4("gpt-oss-mxfp4", dict(
    **{**B, "intermediate_size": 64}, head_dim=16, num_local_experts=8, num_experts_per_tok=3, sliding_window=12,
    attn_implementation="eager", layer_types=[SLIDING, FULL, SLIDING]))
JOBS["kimi-k2"] = renamed("kimi-k2", lambda: T.DeepseekV3ForCausalLM(T.DeepseekV3Config(**{
    **B, **MLA, "q_lora_rank": 24, "n_group": 1, "topk_group": 1, "n_shared_experts": 1, "routed_scaling_factor": 2.827})), {
        "architectures": ["DeepseekV3ForCausalLM"], "model_type": "kimi_k2", **OLD, **MLA, "q_lora_rank": 24, "n_group": 1, "topk_group": 1,
        "n_shared_experts": 1, "routed_scaling_factor": 2.827, "norm_topk_prob": True, "scoring_func": "sigmoid",
        "topk_method": "noaux_tc", "rope_theta": 10000.0, "tie_word_embeddings": False, "moe_layer_freq": 1}, parted)

# What is said of DeepSeek-V2-Lite, but smaller: latents of whole blocks of a K-quant.
LITE = dict(kv_lora_rank=256, qk_nope_head_dim=32, qk_rope_head_dim=64, v_head_dim=32, n_routed_experts=16, num_experts_per_tok=6,
            n_shared_experts=2, moe_intermediate_size=8, first_k_dense_replace=1, num_hidden_layers=2, num_attention_heads=2,
            num_key_value_heads=2, q_lora_rank=None, n_group=1, topk_group=1, topk_method="greedy", norm_topk_prob=False,
            routed_scaling_factor=1.0, max_position_embeddings=163840, rms_norm_eps=1e-6)
LITE_YARN = {"beta_fast": 32, "beta_slow": 1, "factor": 40, "mscale": 0.707, "mscale_all_dim": 0.707,
             "original_max_position_embeddings": 4096, "type": "yarn"}
JOBS["deepseek-v2-lite"] = renamed("deepseek-v2-lite", lambda: T.DeepseekV2ForCausalLM(T.DeepseekV2Config(**{
    **B, **LITE, "rope_parameters": {**{k: v for k, v in LITE_YARN.items() if k != "type"}, "rope_type": "yarn", "rope_theta": 10000.0}})), {
        "architectures": ["DeepseekV2ForCausalLM"], "model_type": "deepseek_v2", **OLD, **LITE, "scoring_func": "softmax",
        "seq_aux": True, "moe_layer_freq": 1, "ep_size": 1, "rope_theta": 10000, "rope_scaling": LITE_YARN,
        "tie_word_embeddings": False}, parted)
# As Hunyuan's own configuration says it, a number for each layer.
JOBS["hunyuan-moe-lists"] = renamed("hunyuan-moe-lists", lambda: T.HunYuanMoEV1ForCausalLM(T.HunYuanMoEV1Config(**{
    **B, "head_dim": 16, "num_experts": 8, "moe_topk": [2, 3, 1], "intermediate_size": 20})), {
        "architectures": ["HunYuanMoEV1ForCausalLM"], "model_type": "hunyuan_v1_moe", **OLD, "num_key_value_heads": 2, "head_dim": 16,
        "intermediate_size": 20, "num_experts": [8, 8, 8], "moe_topk": [2, 3, 1], "moe_intermediate_size": [20, 20, 20],
        "num_shared_expert": [1, 1, 1], "use_mixed_mlp_moe": True, "use_cla": False, "moe_layer_num_skipped": 0, "rope_theta": 10000.0,
        "rms_norm_eps": 1e-5, "tie_word_embeddings": False}, parted)

if __name__ == "__main__":
    target = Path(sys.argv[1])
    torch.set_num_threads(1)
    for wanted, run in JOBS.items():
        if len(sys.argv) > 2 and wanted not in sys.argv[2:]:
            continue
        try:
            run(target)
            print("ok", wanted, flush=True)
        except Exception as error:
            print("FAILED", wanted, type(error).__name__, str(error)[:300], flush=True)
            traceback.print_exc(limit=-3)

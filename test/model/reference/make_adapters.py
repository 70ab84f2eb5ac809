#!/usr/bin/env python3
"""Writes adapters of tiny models (make_folders.py) and what PEFT computes with them in float32.

    python3 make_adapters.py FOLDERS OUT [WORD]        (needs torch, transformers 5, peft, safetensors; those alone whose names have the word)

<name>/adapter_config.json, adapter_model.safetensors   the adapter of the folder that reference.json names
<name>/reference.json                                   input_ids, last_logits, 24 greedy tokens and their margins

Seeds are tried until no greedy token is a near tie.
"""
import json
import sys
from pathlib import Path

import peft
import torch
import transformers as T
from adapter_files import randomise, save
from safetensors.torch import load_file

VOCAB, PROMPT, STEPS, LEAST_MARGIN = 120, 40, 24, 6e-3

CASES = {
    "lora": ("mistral", dict(r=4, lora_alpha=8, target_modules=["q_proj", "v_proj"])),
    "lora-all-linear": ("qwen3", dict(r=3, lora_alpha=6, target_modules="all-linear")),
    "rslora": ("llama-llama3", dict(r=4, lora_alpha=4, use_rslora=True, target_modules=["q_proj", "k_proj", "o_proj", "down_proj"])),
    "dora": ("mistral", dict(r=4, lora_alpha=8, use_dora=True, target_modules=["q_proj", "k_proj", "up_proj", "down_proj"])),
    "patterns": ("smollm3", dict(r=2, lora_alpha=4, target_modules=r".*\.(q_proj|gate_proj)",
                                 rank_pattern={"gate_proj": 5, r"layers\.0\.self_attn\.q_proj": 3}, alpha_pattern={r"layers\.1\..*gate_proj": 9})),
    "saved-heads": ("qwen3", dict(r=2, lora_alpha=4, target_modules=["o_proj"], modules_to_save=["lm_head", "embed_tokens"])),
    "embeddings": ("mistral", dict(r=4, lora_alpha=8, target_modules=["embed_tokens", "lm_head", "v_proj"])),
    "joined": ("phi3", dict(r=4, lora_alpha=8, target_modules=["qkv_proj", "gate_up_proj", "o_proj"])),
    "turned": ("gpt2", dict(r=4, lora_alpha=8, target_modules=["c_attn", "c_fc", "c_proj"], fan_in_fan_out=True)),
    "biases": ("qwen2-window", dict(r=4, lora_alpha=8, target_modules=["q_proj", "k_proj"], bias="lora_only")),
    "grouped": ("falcon", dict(r=4, lora_alpha=8, target_modules=["query_key_value", "dense"])),
    "saved-norms": ("qwen3", dict(r=4, lora_alpha=8, target_modules=["q_proj"], modules_to_save=["norm"])),
    "saved-projections": ("mistral", dict(r=4, lora_alpha=8, target_modules=["v_proj"], modules_to_save=["q_proj", "o_proj", "down_proj"])),
    "saved-plus-one": ("gemma3", dict(r=4, lora_alpha=8, target_modules=["gate_proj"],
                                      modules_to_save=["post_feedforward_layernorm", "k_norm", "up_proj"])),
    "saved-turned": ("gpt2", dict(r=4, lora_alpha=8, target_modules=["c_attn"], fan_in_fan_out=True, modules_to_save=["c_fc", "ln_1"])),
    "saved-joined": ("phi3", dict(r=4, lora_alpha=8, target_modules=["o_proj"], modules_to_save=["qkv_proj", "gate_up_proj"])),
    "saved-latents": ("deepseek-v3", dict(r=4, lora_alpha=8, target_modules=["o_proj"], modules_to_save=["kv_b_proj", "kv_a_layernorm"])),
    "experts": ("qwen3-moe", dict(r=2, lora_alpha=4, target_modules=["q_proj"], target_parameters=["mlp.experts.gate_up_proj", "mlp.experts.down_proj"])),
    "experts-turned": ("gpt-oss", dict(r=2, lora_alpha=4, target_modules=["q_proj"], target_parameters=["1.mlp.experts.down_proj", "mlp.experts.gate_up_proj"])),
    "experts-renamed": ("mixtral", dict(r=2, lora_alpha=4, target_modules=["w1", "w2", "w3", "v_proj"])),
    "tokens-tied": ("smollm3", dict(r=2, lora_alpha=4, target_modules=["v_proj"], trainable_token_indices=[90, 5, 17, 44, 61, 103, 112])),
    "tokens": ("mistral", dict(r=2, lora_alpha=4, target_modules=["v_proj"], trainable_token_indices={"embed_tokens": [5, 13, 46, 88, 112], "lm_head": [100, 7, 33, 51, 52, 53]})),
    "odd": ("qwen3", dict(r=3, lora_alpha=5, use_rslora=True, lora_bias=True, target_modules=r".*\.[02]\.(self_attn\.(q|o)_proj|mlp\.down_proj)", rank_pattern={r"layers\.\d+\.mlp.*": 6, "q_proj": 2}, alpha_pattern={"o_proj": 1})),
    "odd-excluded": ("qwen2-window", dict(r=5, lora_alpha=3, use_dora=True, bias="all", target_modules="all-linear", exclude_modules=r".*\.0\..*")),
    "windows": ("gemma3", dict(r=4, lora_alpha=8, use_dora=True, target_modules=["q_proj", "v_proj", "gate_proj"])),
}


def reference(model):
    ids = torch.randint(3, VOCAB, (PROMPT,)).tolist()
    sequence, margins = list(ids), []
    with torch.no_grad():
        last = model(input_ids=torch.tensor([ids]), use_cache=False).logits[0, -1].float()
        for _ in range(STEPS):
            logits = model(input_ids=torch.tensor([sequence]), use_cache=False).logits[0, -1].float()
            best = torch.topk(logits, 2).values
            margins.append(round(float(best[0] - best[1]), 5))
            sequence.append(int(logits.argmax()))
    return {"input_ids": ids, "last_logits": [round(x, 7) for x in last.tolist()], "greedy": sequence[PROMPT:], "margins": margins}


def load(folder):
    return T.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()


def write(out, name, base, found, by):
    (out / name / "reference.json").write_text(json.dumps({"base": base, "by": by, **found}) + "\n")


def main():
    folders, out = Path(sys.argv[1]), Path(sys.argv[2])
    for name, (base, options) in CASES.items():
        if len(sys.argv) > 3 and sys.argv[3] not in name:
            continue
        try:
            for seed in range(1, 40):
                model = load(folders / base)
                adapted = peft.get_peft_model(model, peft.LoraConfig(task_type="CAUSAL_LM", **options)).eval()
                randomise(adapted, seed, biases=0.2)
                found = reference(adapted)
                if min(found["margins"]) >= LEAST_MARGIN:
                    break
            else:
                print(name, "all seeds give near ties")
                continue
            save(adapted, out / name, base)
            write(out, name, base, found, f"peft {peft.__version__}, transformers {T.__version__}")
            print(name, "seed", seed, sorted(load_file(out / name / "adapter_model.safetensors"))[:4])
        except Exception as error:  # the others are wanted all the same
            print(name, type(error).__name__, str(error)[:300])


main()

#!/usr/bin/env python3
"""Writes adapters of tiny models (make_folders.py) and what PEFT computes with them in float32.

    python3 make_adapters.py FOLDERS OUT        (needs torch, transformers 5, safetensors; with peft it is used, otherwise the weights
                                                 are merged by its formulas, and reference.json says so)

<name>/adapter_config.json, adapter_model.safetensors   the adapter of the folder that reference.json names
<name>/reference.json                                   input_ids, last_logits, 24 greedy tokens and their margins

Seeds are tried until no greedy token is a near tie.
"""
import json
import sys
from pathlib import Path

import torch
import transformers as T
from safetensors.torch import load_file

try:
    import peft
except ImportError:
    peft = None

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


def randomise(adapted, seed):
    torch.manual_seed(seed)
    with torch.no_grad():
        for name, p in adapted.named_parameters():
            if "lora_magnitude" in name:
                p.mul_(1 + 0.2 * torch.randn_like(p))
            elif "lora_A" in name or "lora_embedding_A" in name:
                p.normal_(0, 1 / p.shape[-1] ** 0.5)
            elif "lora_B" in name or "lora_embedding_B" in name:
                p.normal_(0, 0.3)
            elif "modules_to_save" in name:
                p.add_(0.1 * torch.randn_like(p))
            elif p.requires_grad:  # biases
                p.add_(0.2 * torch.randn_like(p))


def load(folder):
    return T.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()


def write(out, name, base, found, by):
    (out / name / "reference.json").write_text(json.dumps({"base": base, "by": by, **found}) + "\n")


def main():
    folders, out = Path(sys.argv[1]), Path(sys.argv[2])
    print("peft", getattr(peft, "__version__", None), "transformers", T.__version__)
    if peft is None:
        sys.exit("peft is missing")
    for name, (base, options) in CASES.items():
        try:
            for seed in range(1, 40):
                model = load(folders / base)
                adapted = peft.get_peft_model(model, peft.LoraConfig(task_type="CAUSAL_LM", **options)).eval()
                randomise(adapted, seed)
                found = reference(adapted)
                if min(found["margins"]) >= LEAST_MARGIN:
                    break
            else:
                print(name, "all seeds give near ties")
                continue
            (out / name).mkdir(parents=True, exist_ok=True)
            adapted.save_pretrained(out / name)
            config = json.loads((out / name / "adapter_config.json").read_text())
            config["base_model_name_or_path"] = base
            (out / name / "adapter_config.json").write_text(json.dumps(config, indent=1) + "\n")
            (out / name / "README.md").unlink(missing_ok=True)
            write(out, name, base, found, f"peft {peft.__version__}, transformers {T.__version__}")
            print(name, "seed", seed, sorted(load_file(out / name / "adapter_model.safetensors"))[:4])
        except Exception as error:  # the others are wanted all the same
            print(name, type(error).__name__, str(error)[:300])


main()

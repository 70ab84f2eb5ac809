#!/usr/bin/env python3
"""Writes adapters of the tiny encoders (make_encoders.py) and what PEFT computes with them in float32.

    python3 make_encoder_adapters.py ENCODERS OUT        (needs torch, transformers 5, peft, safetensors)

<name>/adapter_config.json, adapter_model.safetensors   the adapter
<name>/reference.json                                   {base, by, texts: [{ids, types, vector or logits}]}, vectors pooled as the base's are
"""
import json
import sys
from pathlib import Path

import peft
import torch
import transformers as T
from adapter_files import randomise, save
from safetensors.torch import load_file

L = dict(r=4, lora_alpha=8)
# The base, classes (0: vectors), options.
CASES = {
    "lora": ("bert", 0, dict(L, target_modules=["query", "value"])),
    "dora-labels": ("bert-labels", 3, dict(L, use_dora=True, target_modules=["query", "key", "dense"])),
    "new-head": ("bert", 5, dict(L, target_modules=["query", "value"])),
    "rslora": ("roberta", 0, dict(r=4, lora_alpha=4, use_rslora=True, target_modules=["query", "key", "value", "dense"])),
    "rank": ("xlm-roberta-rank", 1, dict(L, bias="lora_only", target_modules=["query", "value"])),
    "joined-labels": ("modernbert-labels", 3, dict(r=3, lora_alpha=6, target_modules="all-linear")),
    "joined-dora": ("modernbert", 0, dict(L, use_dora=True, target_modules=["Wqkv", "Wi"])),
    "embeddings": ("distilbert", 0, dict(L, bias="all", target_modules=["word_embeddings", "position_embeddings", "q_lin", "lin1"])),
    "head-parts": ("distilbert-labels", 4, dict(L, target_modules=["v_lin", "lin2"])),
    "norms": ("electra", 0, dict(L, target_modules=["query", "embeddings_project"], modules_to_save=["LayerNorm", "token_type_embeddings"])),
    "patterns": ("mpnet", 0, dict(r=2, lora_alpha=4, target_modules=["q", "o", "dense"], rank_pattern={"o": 5}, alpha_pattern={r"layer\.1\..*dense": 9})),
    "saved-layers": ("nomic-bert", 0, dict(L, target_modules=["q_proj", "up_proj"], modules_to_save=["o_proj"])),
    "rotary": ("jina-v3", 0, dict(L, target_modules="all-linear")),
    "windows": ("gemma3", 0, dict(L, use_dora=True, target_modules=["q_proj", "v_proj", "gate_proj"], modules_to_save=["q_norm", "input_layernorm"])),
}


def load(folder, classes):
    kind = T.AutoModelForSequenceClassification if classes else T.AutoModel
    return kind.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager", **({"num_labels": classes} if classes else {})).eval()


def pooling_of(folder):
    file = folder / "1_Pooling" / "config.json"
    config = json.loads(file.read_text()) if file.exists() else {}
    return "cls" if config.get("pooling_mode_cls_token") or config.get("pooling_mode") == "cls" else "mean"


def value_of(adapted, folder, ids, types, classes):
    inputs = {"input_ids": torch.tensor([ids]), "attention_mask": torch.ones(1, len(ids), dtype=torch.long)}
    if any(types):
        inputs["token_type_ids"] = torch.tensor([types])
    with torch.no_grad():
        out = adapted(**inputs)
        if classes:
            return {"logits": [round(x, 6) for x in out.logits[0].tolist()]}
        hidden = out.last_hidden_state[0]
        vector = hidden[0] if pooling_of(folder) == "cls" else hidden.mean(0)
        if (folder / "2_Dense").exists():
            dense = load_file(folder / "2_Dense" / "model.safetensors")
            vector = vector @ dense["linear.weight"].float().T + dense.get("linear.bias", torch.zeros(1)).float()
        return {"vector": [round(x, 6) for x in vector.tolist()]}


def main():
    encoders, out = Path(sys.argv[1]), Path(sys.argv[2])
    by = f"peft {peft.__version__}, transformers {T.__version__}"
    for name, (base, classes, options) in CASES.items():
        try:
            torch.manual_seed(7)  # a head that the base has not
            task = {"task_type": "SEQ_CLS"} if classes else {"task_type": "FEATURE_EXTRACTION"}
            adapted = peft.get_peft_model(load(encoders / base, classes), peft.LoraConfig(**task, **options)).eval()
            randomise(adapted, 3, biases=0.1)
            save(adapted, out / name, base, save_embedding_layers=False)
            texts = [{"ids": t["ids"], "types": t["types"], **value_of(adapted, encoders / base, t["ids"], t["types"], classes)}
                     for t in json.loads((encoders / base / "reference.json").read_text())]
            (out / name / "reference.json").write_text(json.dumps({"base": base, "by": by, "texts": texts}) + "\n")
            print(name, sorted(load_file(out / name / "adapter_model.safetensors"))[:3])
        except Exception as error:  # the others are wanted all the same
            print(name, type(error).__name__, str(error)[:300])


main()

#!/usr/bin/env python3
"""Writes what transformers gives as the vectors of a prompt, in float32 and not normalised.

    python3 make_embeddings.py FOLDERS NAME... > embeddings.json        (needs torch and transformers 5)

Of each model, a folder of FOLDERS: the ids, and of the hidden states after the final norm the last, the mean and the first.
"""
import json
import sys
from pathlib import Path

import torch
import transformers as T


def reference(path):
    model = T.AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32, attn_implementation="eager").eval()
    vocabulary = model.config.vocab_size
    torch.manual_seed(1)
    ids = torch.randint(3, vocabulary, (50,)).tolist()
    with torch.no_grad():
        hidden = model.base_model(torch.tensor([ids]), use_cache=False).last_hidden_state[0].double()
    numbers = lambda vector: [round(x, 6) for x in vector.tolist()]
    return {"ids": ids, "last": numbers(hidden[-1]), "mean": numbers(hidden.mean(0)), "cls": numbers(hidden[0])}


folders = Path(sys.argv[1])
found = {name: reference(folders / name) for name in sys.argv[2:]}
print("{\n" + ",\n".join(json.dumps(name) + ": " + json.dumps(found[name]) for name in found) + "\n}")

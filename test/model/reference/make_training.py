#!/usr/bin/env python3
"""Writes what torch and PEFT make of LoRA beside the last layer of tiny models (make_folders.py) and of a head, in float64.

    python3 make_training.py FOLDERS OUT        (needs torch, transformers 5, peft, safetensors)

<name>.safetensors   chosen, rejected [tokens]: two texts; loss [1]: Bradley and Terry's, of their scores; scores [2];
                     <parameter>: its value, under PEFT's name, score.weight and score.bias being the head's;
                     grad.<parameter>: the loss's derivative
"""
import sys
from pathlib import Path

import peft
import torch
import transformers as T
from safetensors.torch import save_file

ALL = ["q_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
CASES = {"mistral": ALL, "qwen3": ALL, "llama-biased": ["q_proj", "v_proj"]}


def main(folders, out):
    for seed, (name, modules) in enumerate(CASES.items()):
        torch.manual_seed(seed)
        base = T.AutoModelForCausalLM.from_pretrained(folders / name, dtype=torch.float32, attn_implementation="eager").double()
        last = base.config.num_hidden_layers - 1
        adapted = peft.get_peft_model(base, peft.LoraConfig(r=2, lora_alpha=6, target_modules=modules, layers_to_transform=[last]))
        width = base.config.hidden_size
        trained = {n.replace(".default", ""): p for n, p in adapted.named_parameters() if "lora_" in n}
        trained["base_model.model.score.weight"] = torch.nn.Parameter(torch.zeros(1, width))
        trained["base_model.model.score.bias"] = torch.nn.Parameter(torch.zeros(1))
        with torch.no_grad():
            for n, p in trained.items():
                p.data = (0.3 * torch.randn(p.shape)).float().double()
                p.requires_grad_(True)
        texts = [torch.randint(3, 120, (count,)) for count in (23, 17)]
        scores = []
        for ids in texts:
            hidden = adapted.base_model.model.model(input_ids=ids[None], use_cache=False).last_hidden_state[0, -1]
            scores.append(trained["base_model.model.score.weight"][0] @ hidden + trained["base_model.model.score.bias"][0])
        loss = -torch.nn.functional.logsigmoid(scores[0] - scores[1])
        loss.backward()
        tensors = {"chosen": texts[0].int(), "rejected": texts[1].int(), "loss": loss.detach().float()[None],
                   "scores": torch.stack(scores).detach().float()}
        for n, p in trained.items():
            tensors[n] = p.detach().float()
            tensors["grad." + n] = p.grad.float()
        save_file({n: t.contiguous() for n, t in tensors.items()}, out / f"{name}.safetensors")
        print(name, len(trained), loss.item(), [s.item() for s in scores])


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))

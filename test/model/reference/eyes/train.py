#!/usr/bin/env python3
"""Trains the eyes of the demo model: a small image tower with a connector, and an adapter of the language model, which stays as it is.

    python3 train.py models/demo-q8_0.gguf OUT [--minutes 0.7] [--adapter-minutes 7.5] [--texts chats.jsonl.xz]

OUT/mmproj.gguf is what `--mmproj` takes: a CLIP tower (64 patches of 14 pixels) and two products, by llama.cpp's names; OUT is the adapter's
folder as well. Pictures are drawn on the GPU, no two alike, and of the chats about them (chats.py) the answers alone are learned. Besides,
each patch tells by linear heads, which are thrown away, what lies on it: from answers alone the tower would learn far slower. At first the
tower learns alone, then with the adapter, beside chats without pictures (--texts) so that these are answered as before.
Needs torch with a GPU, numpy, tokenizers and safetensors.
"""
import argparse
import json
import lzma
import math
import multiprocessing as mp
import os
import time

from chats import IMAGE, KINDS, MOST, NAMES, PATCH, SHAPES, VECTORS, Batches
from gguf_file import read_gguf, write_gguf

WIDTH, HEADS, LAYERS, INNER = 192, 6, 4, 768


BATCHES = None  # known to the worker processes from the moment that they are forked


def batch(job):
    return BATCHES(job)


def main():
    global BATCHES
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("out")
    parser.add_argument("--minutes", type=float, default=0.7)
    parser.add_argument("--adapter-minutes", type=float, default=7.5)
    parser.add_argument("--texts", help="chats.jsonl.xz: a list of [words, whether they are an answer] a line")
    parser.add_argument("--batch", type=int, default=512)
    parser.add_argument("--rate", type=float, default=1.5e-3)
    parser.add_argument("--workers", type=int, default=13)
    parser.add_argument("--device", default="cuda")
    wish = parser.parse_args()
    os.makedirs(wish.out, exist_ok=True)
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
    keys, own = read_gguf(wish.model)
    vocabulary = {token: i for i, token in enumerate(keys["tokenizer.ggml.tokens"])}
    tokenizer = Tokenizer(models.BPE(vocabulary, [tuple(m.split(" ")) for m in keys["tokenizer.ggml.merges"]]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in keys["tokenizer.ggml.tokens"][:8]])
    assert tokenizer.encode("<|im_end|>\n<|pad|>").ids[-1] == 3
    texts = []
    if wish.texts:
        with lzma.open(wish.texts, "rt", encoding="utf-8") as lines:
            texts = [[(words, len(KINDS) if is_answer else -1) for words, is_answer in json.loads(line)] for line in lines]
    BATCHES = Batches(tokenizer, texts)
    pool = mp.Pool(wish.workers)

    import torch
    import torch.nn as nn
    import torch.nn.functional as F
    torch.manual_seed(5)
    torch.set_float32_matmul_precision("high")
    device = wish.device

    # -------- the language model
    width, heads, kv_heads, layers = (keys["llama." + k] for k in ("embedding_length", "attention.head_count", "attention.head_count_kv", "block_count"))
    head = width // heads
    base = keys.get("llama.rope.freq_base", 10000.0)
    weights = {k: torch.from_numpy(v).to(device) for k, v in own.items()}
    angle = torch.outer(torch.arange(1024).float(), base ** (-torch.arange(0, head, 2).float() / head)).to(device)
    cos, sin = angle.cos().to(torch.bfloat16), angle.sin().to(torch.bfloat16)
    matrices = {k: v.to(torch.bfloat16) for k, v in weights.items() if v.dim() == 2}
    embedding = matrices["token_embd.weight"]

    def turned(x):  # of GGUF's interleaved pairs
        c, s = cos[:x.shape[2], :], sin[:x.shape[2], :]
        even, odd = x[..., 0::2], x[..., 1::2]
        return torch.stack((even * c - odd * s, even * s + odd * c), -1).flatten(-2)

    class Low(nn.Module):
        def __init__(self, outputs, inputs, rank=16):
            super().__init__()
            self.down = nn.Parameter(torch.randn(rank, inputs, device=device) / inputs ** 0.5)
            self.up = nn.Parameter(torch.zeros(outputs, rank, device=device))
    low = None

    def product(x, name):
        y = F.linear(x, matrices[name])
        if low is not None and name.replace(".", "_") in low:
            part = low[name.replace(".", "_")]
            y = y + F.linear(F.linear(x, part.down.to(torch.bfloat16)), part.up.to(torch.bfloat16)) * 2.0
        return y

    def normed(x, name):
        return (F.rms_norm(x.float(), (width,), eps=keys["llama.attention.layer_norm_rms_epsilon"]) * weights[name]).to(torch.bfloat16)

    def speak(x):  # [n, tokens, width] bf16
        n, length, _ = x.shape
        for i in range(layers):
            own_name = f"blk.{i}."
            h = normed(x, own_name + "attn_norm.weight")
            q, k, v = (product(h, own_name + f"attn_{p}.weight").view(n, length, -1, head).transpose(1, 2) for p in "qkv")
            k, v = (t.repeat_interleave(heads // kv_heads, 1) for t in (turned(k), v))
            seen = F.scaled_dot_product_attention(turned(q), k, v, is_causal=True)
            x = x + product(seen.transpose(1, 2).reshape(n, length, width), own_name + "attn_output.weight")
            h = normed(x, own_name + "ffn_norm.weight")
            x = x + product(F.silu(product(h, own_name + "ffn_gate.weight")) * product(h, own_name + "ffn_up.weight"), own_name + "ffn_down.weight")
        return normed(x, "output_norm.weight")

    # -------- the eyes
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.ln1, self.ln2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
            self.attn_q, self.attn_k, self.attn_v, self.attn_out = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
            self.ffn_up, self.ffn_down = nn.Linear(WIDTH, INNER), nn.Linear(INNER, WIDTH)
        def forward(self, x):
            n = x.shape[0]
            h = self.ln1(x)
            q, k, v = (p(h).view(n, VECTORS, HEADS, -1).transpose(1, 2) for p in (self.attn_q, self.attn_k, self.attn_v))
            x = x + self.attn_out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(n, VECTORS, WIDTH))
            return x + self.ffn_down(F.gelu(self.ffn_up(self.ln2(x)), approximate="tanh"))
    class Eyes(nn.Module):
        def __init__(self):
            super().__init__()
            self.patch_embd = nn.Conv2d(3, WIDTH, PATCH, PATCH, bias=False)
            self.position = nn.Parameter(torch.randn(VECTORS, WIDTH) * 0.1)
            self.blk = nn.ModuleList(Block() for _ in range(LAYERS))
            self.post_ln = nn.LayerNorm(WIDTH)
            self.first, self.second = nn.Linear(WIDTH, width), nn.Linear(width, width)
            self.kind, self.colour = nn.Linear(WIDTH, len(SHAPES) + 1), nn.Linear(WIDTH, len(NAMES) + 1)
            nn.init.normal_(self.second.weight, std=float(embedding.float().std()) / width ** 0.5 * 2)
        def forward(self, pixels):
            x = self.patch_embd(pixels).flatten(2).transpose(1, 2) + self.position
            for block in self.blk:
                x = block(x)
            x = self.post_ln(x)
            return x, self.second(F.gelu(self.first(x)))

    grid = torch.stack(torch.meshgrid(torch.arange(IMAGE), torch.arange(IMAGE), indexing="xy"), 0).float().to(device) + 0.5
    palette = None

    @torch.no_grad()
    def paint(numbers, ground):
        """Pixels in -1 to 1, and what lies on each patch: shape and colour, the last class being nothing."""
        field = lambda i: numbers[:, :, i, None, None]
        x, y = grid[0] - field(5), grid[1] - field(6)
        c, s, size = field(8).cos(), field(8).sin(), field(7)
        x, y = x * c + y * s, y * c - x * s
        far, at = torch.hypot(x, y), torch.atan2(x, -y)
        fold = lambda n: torch.remainder(at + math.pi / n, 2 * math.pi / n) - math.pi / n  # from the nearest corner
        circle = far - 0.85 * size
        square = torch.maximum(x.abs(), y.abs()) - 0.8 * size
        u = math.pi / 3 - fold(3).abs()  # from the middle of the nearest side
        triangle = far * u.cos() - 0.5 * size
        u = fold(5).abs()
        inner = 0.45
        nx, ny = inner * math.sin(math.pi / 5), 1 - inner * math.cos(math.pi / 5)
        scale = math.hypot(nx, ny)
        star = ((far * u.cos() - size) * nx + far * u.sin() * ny) / scale
        cross = torch.minimum(torch.maximum(x.abs() - 0.9 * size, y.abs() - 0.3 * size), torch.maximum(y.abs() - 0.9 * size, x.abs() - 0.3 * size))
        which = field(0)
        distance = torch.where(which == 0, circle, torch.where(which == 1, square, torch.where(which == 2, triangle, torch.where(which == 3, star, cross))))
        soft = ground[:, 3, None, None, None]
        cover = torch.sigmoid(-distance / (0.35 * soft)) * (which >= 0)
        image = ground[:, :3, None, None].expand(-1, -1, IMAGE, IMAGE)
        for i in range(MOST):
            m = cover[:, i, None]
            image = image * (1 - m) + numbers[:, i, 2:5, None, None] * m
        image = (image + torch.randn_like(image) * ground[:, 4, None, None, None]).round().clamp(0, 255) / 127.5 - 1
        share, who = F.avg_pool2d(cover, PATCH).flatten(2).max(1)
        there = share > 0.08
        pick = lambda i, none: torch.where(there, torch.gather(numbers[:, :, i], 1, who), torch.full_like(share, none)).long()
        return image, pick(0, len(SHAPES)), pick(1, len(NAMES))

    def moved(made):
        tokens, of, numbers, ground = (torch.from_numpy(x).to(device, non_blocking=True) for x in made)
        return tokens.long(), of.long(), numbers, ground

    def answer(eyes, made):
        tokens, of, numbers, ground = moved(made)
        image, kinds, colours = paint(numbers, ground)
        with torch.autocast(device, torch.bfloat16):
            seen, vectors = eyes(image)
            dense = F.cross_entropy(eyes.kind(seen).float().flatten(0, 1), kinds.flatten()) + F.cross_entropy(eyes.colour(seen).float().flatten(0, 1), colours.flatten())
        x = embedding[tokens].clone()
        if (tokens == 3).any():
            x[tokens == 3] = vectors.reshape(-1, width).to(torch.bfloat16)
        h = speak(x)
        wanted = of[:, 1:] >= 0
        return h[:, :-1][wanted], tokens[:, 1:][wanted], of[:, 1:][wanted], wanted, dense

    @torch.no_grad()
    def evaluate(eyes, seeds, n=256):
        right = {}
        for seed, images in seeds:
            h, targets, of, wanted, _ = answer(eyes, batch((seed, n, images)))
            hit = F.linear(h, embedding).argmax(-1) == targets
            # An answer is right when each of its tokens is the one that greedy decoding would take.
            row = torch.nonzero(wanted)
            starts = torch.ones(len(row), dtype=torch.bool, device=device)
            starts[1:] = (row[1:, 0] != row[:-1, 0]) | (row[1:, 1] != row[:-1, 1] + 1)
            group = starts.long().cumsum(0) - 1
            good = torch.ones(int(group[-1]) + 1, device=device).scatter_reduce(0, group, hit.float(), "amin")
            for kind, ok in zip(of[starts].tolist(), good.tolist()):
                right.setdefault((images, (KINDS + [None])[kind].__name__ if images else "text"), []).append(ok)
        everything = [v for values in right.values() for v in values]
        return {"all": round(sum(everything) / len(everything), 4), **{f"{k[1]}/{k[0]}": round(sum(v) / len(v), 3) for k, v in sorted(right.items())}}

    state = {"seed": 1000, "pending": []}
    def fresh():
        while len(state["pending"]) < 4 * wish.workers:
            state["seed"] += 1
            images = 2 if state["seed"] % 5 == 0 else 0 if texts and state["seed"] % 9 == 0 else 1
            state["pending"].append(pool.apply_async(batch, ((state["seed"], wish.batch if images == 1 else wish.batch // 2, images),)))
        return state["pending"].pop(0).get()

    def train(eyes, groups, minutes, rate, aux, last_aux=0.0):
        parameters = [p for group in groups for p in group]
        matrices_of = [p for p in parameters if p.dim() > 1]
        rest = [p for p in parameters if p.dim() <= 1]
        optimiser = torch.optim.AdamW([{"params": matrices_of, "weight_decay": 0.05}, {"params": rest, "weight_decay": 0.0}], lr=rate, betas=(0.9, 0.98), fused=device == "cuda")
        start, step, shown_at = time.time(), 0, 0.0
        while (now := (time.time() - start) / (60 * minutes)) < 1:
            for group in optimiser.param_groups:
                group["lr"] = rate * min(1, (step + 1) / 200) * (0.5 + 0.5 * math.cos(math.pi * now))
            h, targets, _, _, dense = answer(eyes, fresh())
            loss = F.cross_entropy(F.linear(h, embedding).float(), targets)
            optimiser.zero_grad(set_to_none=True)
            (loss + (aux * (1 - now) + last_aux) * dense).backward()
            norm = nn.utils.clip_grad_norm_(parameters, 1.0)
            optimiser.step()
            step += 1
            if time.time() - shown_at > 10:
                shown_at = time.time()
                print(f"{shown_at - start:5.0f} s step {step} loss {loss.item():.4f} dense {dense.item():.4f} norm {norm.item():.2f}", flush=True)
        print("evaluation", evaluate(eyes, [(-i, 1) for i in range(1, 9)] + [(-i, 2) for i in range(9, 13)] + [(-i, 0) for i in range(13, 15) if texts]), flush=True)

    def write_eyes(eyes, path):
        tensors = {"v.patch_embd.weight": eyes.patch_embd.weight, "v.position_embd.weight": eyes.position, "v.post_ln.weight": eyes.post_ln.weight,
                   "v.post_ln.bias": eyes.post_ln.bias}
        for i, block in enumerate(eyes.blk):
            tensors.update({f"v.blk.{i}.{name}": value for name, value in block.named_parameters()})
        for name, part in (("mm.0", eyes.first), ("mm.2", eyes.second)):
            tensors.update({f"{name}.weight": part.weight, f"{name}.bias": part.bias})
        write_gguf(path, {
            "general.architecture": "clip", "general.name": "Braid Demo Eyes", "general.license": "apache-2.0", "general.file_type": 7,
            "clip.has_vision_encoder": True, "clip.projector_type": "mlp", "clip.use_gelu": True, "clip.vision.image_size": IMAGE,
            "clip.vision.patch_size": PATCH, "clip.vision.embedding_length": WIDTH, "clip.vision.feed_forward_length": INNER,
            "clip.vision.projection_dim": width, "clip.vision.block_count": LAYERS, "clip.vision.attention.head_count": HEADS,
            "clip.vision.attention.layer_norm_epsilon": 1e-5, "clip.vision.image_mean": [0.5] * 3, "clip.vision.image_std": [0.5] * 3,
        }, {k: v.detach().float().cpu().numpy() for k, v in tensors.items()})

    eyes = Eyes().to(device)
    print("parameters", sum(p.numel() for p in eyes.parameters()), flush=True)
    train(eyes, [list(eyes.parameters())], wish.minutes, wish.rate, 1.0)
    if wish.adapter_minutes > 0:
        names = {"attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj",
                 "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj"}
        low = nn.ModuleDict({f"blk.{i}.{part}.weight".replace(".", "_"): Low(*matrices[f"blk.{i}.{part}.weight"].shape) for i in range(layers) for part in names})
        train(eyes, [list(eyes.parameters()), list(low.parameters())], wish.adapter_minutes, wish.rate * 0.8, 0.0, 0.15)
        from safetensors.torch import save_file
        def rows(t, part):  # from GGUF's order of rotary pairs to that of folders
            if part not in ("attn_q", "attn_k"):
                return t
            return t.view(-1, head // 2, 2, t.shape[1]).transpose(1, 2).reshape(t.shape)
        adapter = {}
        for i in range(layers):
            for part, theirs in names.items():
                own_low = low[f"blk_{i}_{part}_weight"]
                name = f"base_model.model.model.layers.{i}.{theirs}"
                adapter[name + ".lora_A.weight"] = own_low.down.detach().to(torch.float16).cpu().contiguous()
                adapter[name + ".lora_B.weight"] = rows(own_low.up.detach(), part).to(torch.float16).cpu().contiguous()
        save_file(adapter, wish.out + "/adapter_model.safetensors")
        json.dump({"peft_type": "LORA", "task_type": "CAUSAL_LM", "r": 16, "lora_alpha": 32, "target_modules": [n.split(".")[1] for n in names.values()], "bias": "none",
                   "base_model_name_or_path": "demo"}, open(wish.out + "/adapter_config.json", "w"))
    write_eyes(eyes, wish.out + "/mmproj.gguf")
    pool.terminate()


if __name__ == "__main__":
    main()

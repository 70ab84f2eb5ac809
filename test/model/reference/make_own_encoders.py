#!/usr/bin/env python3
"""As make_encoders.py, of encoders whose code is their makers' own and not transformers': written here in plain torch from what was
published of them, one text at a time, every step as the papers have it.

    python3 make_own_encoders.py FOLDER [NAME...]       (needs what make_encoders.py needs)

jina-v2, jina-v2-code   Günther et al. 2023: BERT with ALiBi (Press et al. 2022) to both sides and a gated feed-forward; -code has norms of
                        queries and keys, and one more behind attention
jina-v3-tasks           Sturua et al. 2024: rotary XLM-R whose matrices and embeddings have a low-rank part for each task
nomic-moe               Nussbaum and Duderstadt 2025: nomic-bert with experts in every second layer
gte, gte-rank           Zhang et al. 2024 ("new"): rotary BERT with one product for queries, keys and values, a gate, and NTK-scaled positions
"""
import json
import math
import sys
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch.nn.functional import gelu, layer_norm, linear, normalize, softmax

from make_encoders import TEXTS, V, unigram, word_piece, write_modules

WIDTH, HEADS, LAYERS, INNER, EPS = 32, 4, 3, 48, 1e-5


class Weights(dict):
    """Tensors by name, made when they are first asked for."""

    def __init__(self, name):
        super().__init__()
        self.random = torch.Generator().manual_seed(sum(name.encode()))

    def __call__(self, name, *shape):
        if name not in self:
            tensor = torch.randn(*shape, generator=self.random)
            if len(shape) > 1:
                tensor *= 1.6 / shape[-1] ** 0.5
            else:
                tensor = tensor * 0.2 + (1.0 if name.endswith("weight") else 0.0)
            self[name] = tensor.to(torch.bfloat16).float()
        return self[name]


def rotary(x, base, scale=1.0):
    """x: [tokens, heads, dims]; the first half of a head's dimensions with the second."""
    tokens, _, dims = x.shape
    frequencies = base ** (-torch.arange(0, dims, 2).double() / dims) / scale
    angles = torch.arange(tokens).double()[:, None] * frequencies
    cos, sin = angles.cos().float()[:, None], angles.sin().float()[:, None]
    a, b = x[..., :dims // 2], x[..., dims // 2:]
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


def attention(q, k, v, heads, bias=None):
    tokens, width = q.shape
    q, k, v = (x.view(tokens, heads, width // heads).transpose(0, 1) for x in (q, k, v))
    scores = q @ k.transpose(1, 2) / math.sqrt(width // heads)
    if bias is not None:
        scores = scores + bias
    return (softmax(scores, -1) @ v).transpose(0, 1).reshape(tokens, width)


def slopes(heads):
    power = 2 ** int(math.log2(heads))
    first = [2 ** (-8 * (i + 1) / power) for i in range(power)]
    return torch.tensor(first + [2 ** (-4 * (2 * i + 1) / power) for i in range(heads - power)])


class Base:
    prefix, tokenizer, config, gives, pair_types = "", staticmethod(word_piece), {}, "mean", True

    def __init__(self, name):
        self.w = Weights(name)

    def dense(self, name, x, outputs, bias=True):
        w = self.w(self.prefix + name + ".weight", outputs, x.shape[-1])
        return linear(x, w, self.w(self.prefix + name + ".bias", outputs) if bias else None)

    def norm(self, name, x):
        width = x.shape[-1]
        return layer_norm(x, (width,), self.w(self.prefix + name + ".weight", width), self.w(self.prefix + name + ".bias", width), EPS)

    def table(self, name, rows, width, ids):
        return self.w(self.prefix + name + ".weight", rows, width)[torch.tensor(ids)]


class JinaV2(Base):
    heads, width = HEADS, WIDTH
    config = dict(model_type="bert", architectures=["JinaBertForMaskedLM"], position_embedding_type="alibi", feed_forward_type="geglu",
                  vocab_size=V, hidden_size=WIDTH, num_attention_heads=HEADS, num_hidden_layers=LAYERS, intermediate_size=INNER,
                  max_position_embeddings=320, type_vocab_size=2, hidden_act="gelu", layer_norm_eps=EPS)

    def hidden(self, ids, types, task=None):
        x = self.table("embeddings.word_embeddings", V, self.width, ids) + self.table("embeddings.token_type_embeddings", 2, self.width, types)
        x = self.norm("embeddings.LayerNorm", x)
        places = torch.arange(len(ids))
        bias = -slopes(self.heads)[:, None, None] * (places[:, None] - places[None]).abs()
        for i in range(LAYERS):
            x = self.layer(f"encoder.layer.{i}.", x, bias)
        return x

    def layer(self, own, x, bias):
        q, k, v = (self.dense(own + "attention.self." + n, x, self.width) for n in ("query", "key", "value"))
        mixed = self.dense(own + "attention.output.dense", attention(q, k, v, self.heads, bias), self.width)
        x = self.norm(own + "attention.output.LayerNorm", mixed + x)
        gate, up = self.dense(own + "mlp.gated_layers", x, 2 * INNER, bias=False).chunk(2, -1)
        return self.norm(own + "mlp.layernorm", self.dense(own + "mlp.wo", gelu(gate) * up, self.width) + x)


class JinaV2Code(JinaV2):
    heads, width = 6, 48
    config = dict(JinaV2.config, hidden_size=48, num_attention_heads=6)

    def layer(self, own, x, bias):
        before = x
        q, k, v = (self.dense(own + "attention.self." + n, x, self.width) for n in ("query", "key", "value"))
        q, k = self.norm(own + "attention.self.layer_norm_q", q), self.norm(own + "attention.self.layer_norm_k", k)
        mixed = self.dense(own + "attention.output.dense", attention(q, k, v, self.heads, bias), self.width)
        x = self.norm(own + "attention.output.LayerNorm", mixed + x)
        x = self.norm(own + "layer_norm_1", before + x)
        up, gate = self.dense(own + "mlp.up_gated_layer", x, 2 * INNER, bias=False).chunk(2, -1)
        return self.norm(own + "layer_norm_2", x + self.dense(own + "mlp.down_layer", up * gelu(gate), self.width))


class JinaV3Tasks(Base):
    prefix, tokenizer, pair_types = "roberta.", staticmethod(unigram), False
    tasks = ["retrieval.query", "retrieval.passage", "separation", "classification", "text-matching"]
    rank = 4
    config = dict(model_type="xlm-roberta", architectures=["XLMRobertaModel"], position_embedding_type="rotary", rotary_emb_base=20000.0,
                  vocab_size=V, hidden_size=WIDTH, num_attention_heads=HEADS, num_hidden_layers=LAYERS, intermediate_size=INNER,
                  max_position_embeddings=320, type_vocab_size=1, hidden_act="gelu", layer_norm_eps=EPS, pad_token_id=1, lora_rank=4,
                  lora_alpha=1, lora_adaptations=tasks, matryoshka_dimensions=[8, 16, 32], auto_map={"AutoModel": "modeling_lora.XLMRobertaLoRA"},
                  task_instructions={"retrieval.query": "what is ", "retrieval.passage": "paris ", "separation": "", "classification": "",
                                     "text-matching": ""})

    def adapted(self, name, rows, columns, is_table, task):
        own = f"{self.prefix}{name}.parametrizations.weight."
        w = self.w(own + "original", rows, columns)
        a = self.w(own + "0.lora_A", len(self.tasks), *((rows, self.rank) if is_table else (self.rank, columns)))
        b = self.w(own + "0.lora_B", len(self.tasks), *((self.rank, columns) if is_table else (rows, self.rank)))
        if task is None:
            return w
        return w + (a[task] @ b[task] if is_table else b[task] @ a[task]) * (1 / self.rank)

    def hidden(self, ids, types, task=None):
        def dense(name, x, outputs):
            return linear(x, self.adapted(name, outputs, x.shape[-1], False, task), self.w(f"{self.prefix}{name}.bias", outputs))
        x = self.adapted("embeddings.word_embeddings", V, WIDTH, True, task)[torch.tensor(ids)]
        x = x + self.adapted("embeddings.token_type_embeddings", 1, WIDTH, True, task)[0]
        x = self.norm("emb_ln", x)
        for i in range(LAYERS):
            own = f"encoder.layers.{i}."
            q, k, v = (t.reshape(-1, HEADS, WIDTH // HEADS) for t in dense(own + "mixer.Wqkv", x, 3 * WIDTH).chunk(3, -1))
            q, k = rotary(q, 20000.0), rotary(k, 20000.0)
            mixed = attention(*(t.reshape(-1, WIDTH) for t in (q, k, v)), HEADS)
            x = self.norm(own + "norm1", dense(own + "mixer.out_proj", mixed, WIDTH) + x)
            x = self.norm(own + "norm2", dense(own + "mlp.fc2", gelu(dense(own + "mlp.fc1", x, INNER)), WIDTH) + x)
        return x


class NomicMoe(Base):
    tokenizer, pair_types = staticmethod(unigram), False
    experts, used = 8, 2
    config = dict(model_type="nomic_bert", architectures=["NomicBertModel"], vocab_size=V, n_embd=WIDTH, n_head=HEADS, n_layer=4, n_inner=INNER,
                  n_positions=320, activation_function="gelu", layer_norm_epsilon=EPS, rotary_emb_base=10000.0, rotary_emb_fraction=1.0,
                  rotary_emb_interleaved=False, prenorm=False, qkv_proj_bias=True, moe_every_n_layers=2, num_experts=8, moe_top_k=2,
                  type_vocab_size=1)

    def hidden(self, ids, types, task=None):
        x = self.table("embeddings.word_embeddings", V, WIDTH, ids) + self.table("embeddings.token_type_embeddings", 1, WIDTH, [0] * len(ids))
        x = self.norm("emb_ln", x)
        for i in range(4):
            own = f"encoder.layers.{i}."
            q, k, v = (t.reshape(-1, HEADS, WIDTH // HEADS) for t in self.dense(own + "attn.Wqkv", x, 3 * WIDTH).chunk(3, -1))
            q, k = rotary(q, 10000.0), rotary(k, 10000.0)
            mixed = attention(*(t.reshape(-1, WIDTH) for t in (q, k, v)), HEADS)
            x = self.norm(own + "norm1", self.dense(own + "attn.out_proj", mixed, WIDTH) + x)
            if i % 2 == 1:
                fed = self.mixture(own, x)
            else:
                fed = self.dense(own + "mlp.fc2", gelu(self.dense(own + "mlp.fc1", x, INNER)), WIDTH)
            x = self.norm(own + "norm2", fed + x)
        return x

    def mixture(self, own, x):
        chances, chosen = softmax(self.dense(own + "mlp.router.layer", x, self.experts, bias=False), -1).topk(self.used, -1)
        w1 = self.w(own + "mlp.experts.mlp.w1", self.experts * INNER, WIDTH).view(self.experts, INNER, WIDTH)
        w2 = self.w(own + "mlp.experts.mlp.w2", self.experts * INNER, WIDTH).view(self.experts, INNER, WIDTH)
        rows = [sum(c * (gelu(w1[e] @ row) @ w2[e]) for c, e in zip(chances[i], chosen[i])) for i, row in enumerate(x)]
        return torch.stack(rows) + self.w(own + "mlp.experts.bias", WIDTH)


class Gte(Base):
    factor = 2.0
    config = dict(model_type="new", architectures=["NewModel"], position_embedding_type="rope", rope_theta=10000.0,
                  rope_scaling={"type": "ntk", "factor": 2.0}, vocab_size=V, hidden_size=WIDTH, num_attention_heads=HEADS,
                  num_hidden_layers=LAYERS, intermediate_size=INNER, max_position_embeddings=320, type_vocab_size=2, hidden_act="gelu",
                  layer_norm_eps=EPS, layer_norm_type="layer_norm", pack_qkv=True)

    def hidden(self, ids, types, task=None):
        x = self.table("embeddings.word_embeddings", V, WIDTH, ids) + self.table("embeddings.token_type_embeddings", 2, WIDTH, types)
        x = self.norm("embeddings.LayerNorm", x)
        dims = WIDTH // HEADS
        stretch = self.factor ** (2 / dims)
        for i in range(LAYERS):
            own = f"encoder.layer.{i}."
            q, k, v = (t.reshape(-1, HEADS, dims) for t in self.dense(own + "attention.qkv_proj", x, 3 * WIDTH).chunk(3, -1))
            q, k = rotary(q, 10000.0 * self.factor, stretch), rotary(k, 10000.0 * self.factor, stretch)
            mixed = attention(*(t.reshape(-1, WIDTH) for t in (q, k, v)), HEADS)
            x = self.norm(own + "attn_ln", x + self.dense(own + "attention.o_proj", mixed, WIDTH))
            up, gate = self.dense(own + "mlp.up_gate_proj", x, 2 * INNER, bias=False).chunk(2, -1)
            x = self.norm(own + "mlp_ln", x + self.dense(own + "mlp.down_proj", gelu(gate) * up, WIDTH))
        return x


class GteRank(Gte):
    prefix, gives = "new.", "logits"
    config = dict(Gte.config, architectures=["NewForSequenceClassification"], id2label={"0": "LABEL_0"}, label2id={"LABEL_0": 0})

    def logits(self, hidden):
        pooled = torch.tanh(self.dense("pooler.dense", hidden[0], WIDTH))
        return linear(pooled, self.w("classifier.weight", 1, WIDTH), self.w("classifier.bias", 1))


CASES = {"jina-v2": JinaV2, "jina-v2-code": JinaV2Code, "jina-v3-tasks": JinaV3Tasks, "nomic-moe": NomicMoe, "gte": Gte, "gte-rank": GteRank}


def make(root, name):
    model = CASES[name](name)
    folder = root / name
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer, names = model.tokenizer()
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps(names))
    (folder / "config.json").write_text(json.dumps(model.config, indent=1))
    entries = []
    for text, pair in TEXTS:
        if pair is not None and model.gives != "logits":
            continue
        for task in [None, *range(len(getattr(model, "tasks", [])))]:
            encoded = tokenizer.encode(text) if pair is None else tokenizer.encode(text, pair)
            types = encoded.type_ids if model.pair_types else [0] * len(encoded.ids)
            hidden = model.hidden(encoded.ids, types, task)
            values = model.logits(hidden) if model.gives == "logits" else normalize(hidden.mean(0), dim=0)
            entry = {"text": text, "pair": pair, "ids": encoded.ids, "types": types,
                     "logits" if model.gives == "logits" else "vector": [float(x) for x in values]}
            entries.append(entry if task is None else {**entry, "task": model.tasks[task]})
    if model.gives != "logits":
        write_modules(folder, name, model.gives, len(entries[0]["vector"]))
    save_file({k: v.to(torch.bfloat16).contiguous() for k, v in model.w.items()}, str(folder / "model.safetensors"))
    (folder / "reference.json").write_text(json.dumps(entries))
    print(name, len(entries), sum(f.stat().st_size for f in folder.rglob("*") if f.is_file()))


if __name__ == "__main__":
    with torch.no_grad():
        for case in sys.argv[2:] or list(CASES):
            make(Path(sys.argv[1]), case)

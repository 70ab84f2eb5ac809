#!/usr/bin/env python3
"""Makes the reference networks of `networks/`: torch's answers in float32 for small random networks. Needs torch and safetensors.

    make_networks.py OUT_DIR
"""
import base64
import json
import pathlib
import sys

import torch
from safetensors.torch import save_file
from torch import nn

torch.manual_seed(20261127)
OUT = pathlib.Path(sys.argv[1])


def packed(tensor):
    dtype = "int64" if tensor.dtype == torch.int64 else "float32"
    data = base64.b64encode(tensor.detach().contiguous().numpy().tobytes()).decode()
    return {"shape": list(tensor.shape), "dtype": dtype, "data": data}


def write(name, config, module, cases, dtype=None):
    folder = OUT / name
    folder.mkdir(parents=True, exist_ok=True)
    tensors = {key: value.detach().to(dtype or value.dtype).contiguous() for key, value in module.state_dict().items()}
    save_file(tensors, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps({"model_type": "braid-net", **config}, indent=1) + "\n")
    lines = [json.dumps({"inputs": {k: packed(v) for k, v in inputs.items()}, "outputs": {k: packed(v) for k, v in outputs.items()}})
             for inputs, outputs in cases]
    (folder / "cases.jsonl").write_text("\n".join(lines) + "\n")


def random_weights(module, scale=0.5):
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=scale)
    return module


class Heads(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(7, 20)
        self.policy = nn.Linear(20, 4)
        self.value = nn.Linear(20, 1, bias=False)


def mlp():
    net = random_weights(Heads())
    cases = []
    for batch in (1, 5, 33):
        x = torch.randn(batch, 7)
        h = torch.tanh(net.hidden(x))
        logits = net.policy(h)
        cases.append(({"x": x}, {"logits": logits, "probabilities": torch.softmax(logits, -1), "log_probabilities": torch.log_softmax(logits, -1),
                                 "value": net.value(torch.relu(h))}))
    write("mlp", {
        "inputs": {"x": {"shape": ["batch", 7], "dtype": "float32"}},
        "layers": [{"name": "hidden", "type": "linear", "weights": "hidden."}, {"name": "h", "type": "tanh"},
                   {"name": "logits", "type": "linear", "input": "h", "weights": "policy."},
                   {"name": "probabilities", "type": "softmax"}, {"name": "log", "type": "log_softmax", "input": "logits"},
                   {"name": "r", "type": "relu", "input": "h"}, {"name": "value", "type": "linear", "weights": "value."}],
        "outputs": {"logits": "logits", "probabilities": "probabilities", "log_probabilities": "log", "value": "value"},
        "policy": {"distribution": "categorical", "logits": "logits", "value": "value"}}, net, cases)


class Recurrent(nn.Module):
    def __init__(self, kind, layers, bidirectional):
        super().__init__()
        self.rnn = kind(5, 12, layers, batch_first=True, bidirectional=bidirectional)
        self.policy = nn.Linear(12 * (2 if bidirectional else 1), 3)


def gru():
    net = random_weights(Recurrent(nn.GRU, 2, False))
    cases = []
    for batch, time, state in ((1, 1, False), (2, 6, True), (3, 9, False)):
        x, h0 = torch.randn(batch, time, 5), torch.randn(2, batch, 12)
        out, hn = net.rnn(x, h0 if state else None)
        cases.append(({"x": x, **({"h0": h0} if state else {})}, {"logits": net.policy(out), "hn": hn}))
    write("gru", {
        "inputs": {"x": {"shape": ["batch", "time", 5], "dtype": "float32"},
                   "h0": {"shape": [2, "batch", 12], "dtype": "float32", "optional": True}},
        "layers": [{"name": "gru", "type": "gru", "input": "x", "state": "h0", "weights": "rnn.", "layers": 2},
                   {"name": "policy", "type": "linear", "input": "gru", "weights": "policy."}],
        "outputs": {"logits": "policy", "hn": "gru.state"},
        "policy": {"distribution": "categorical", "logits": "logits", "states": {"h0": "hn"}}}, net, cases)


def lstm():
    net = random_weights(Recurrent(nn.LSTM, 2, True))
    cases = []
    for batch, time, state in ((1, 4, True), (3, 7, False)):
        x, h, c = torch.randn(batch, time, 5), torch.randn(4, batch, 12), torch.randn(4, batch, 12)
        out, (hn, cn) = net.rnn(x, (h, c) if state else None)
        cases.append(({"x": x, **({"h": h, "c": c} if state else {})}, {"logits": net.policy(out[:, -1]), "hn": hn, "cn": cn}))
    write("lstm", {
        "inputs": {"x": {"shape": ["batch", "time", 5]}, "h": {"shape": [4, "batch", 12], "optional": True},
                   "c": {"shape": [4, "batch", 12], "optional": True}},
        "layers": [{"name": "lstm", "type": "lstm", "input": "x", "state": {"h": "h", "c": "c"}, "weights": "rnn.", "layers": 2,
                    "bidirectional": True},
                   {"name": "last", "type": "last"}, {"name": "policy", "type": "linear", "weights": "policy."}],
        "outputs": {"logits": "policy", "hn": "lstm.state.h", "cn": "lstm.state.c"}}, net, cases)


class Convolutions(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Conv1d(6, 8, 3, stride=2, padding=2, dilation=2, groups=2)
        self.b = nn.Conv1d(8, 8, 1, bias=False)
        self.c = nn.Conv1d(8, 4, 2)


def convolutions():
    net = random_weights(Convolutions())
    cases = []
    for batch, time in ((1, 5), (4, 17)):
        x = torch.randn(batch, 6, time)
        a = nn.functional.silu(net.a(x))
        b = torch.sigmoid(net.b(a))
        c = nn.functional.gelu(net.c(torch.cat([a + b, a], dim=2)))
        cases.append(({"x": x}, {"c": c, "channels": torch.softmax(c, 1), "positive": nn.functional.softplus(10 * c),
                                 "by_tanh": nn.functional.gelu(c, approximate="tanh")}))
    write("convolutions", {
        "inputs": {"x": {"shape": ["batch", 6, "time"]}},
        "layers": [{"name": "a0", "type": "conv1d", "weights": "a.", "stride": 2, "padding": 2, "dilation": 2, "groups": 2},
                   {"name": "a", "type": "silu"}, {"name": "b0", "type": "conv1d", "weights": "b."}, {"name": "b", "type": "sigmoid"},
                   {"name": "sum", "type": "add", "input": ["a", "b"]}, {"name": "both", "type": "concat", "input": ["sum", "a"], "axis": 2},
                   {"name": "c0", "type": "conv1d", "weights": "c."}, {"name": "c", "type": "gelu"},
                   {"name": "channels", "type": "softmax", "axis": 1},
                   *[{"name": f"sum{i}", "type": "add", "input": ["c", "c"] if i == 1 else [f"sum{i // 2}"] * 2} for i in (1, 2, 4)],
                   {"name": "ten", "type": "add", "input": ["sum4", "sum1"]},
                   {"name": "positive", "type": "softplus"}, {"name": "by_tanh", "type": "gelu", "input": "c", "approximate": "tanh"}],
        "outputs": {"c": "c", "channels": "channels", "positive": "positive", "by_tanh": "by_tanh"}}, net, cases)


class Tokens(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(11, 16)
        self.norm = nn.LayerNorm(16, eps=1e-3)
        self.head = nn.Linear(16, 5)


def tokens(name, dtype):
    net = random_weights(Tokens())
    if dtype:
        net.load_state_dict({key: value.to(dtype).float() for key, value in net.state_dict().items()})
    cases = []
    for batch, time in ((1, 3), (2, 8)):
        ids = torch.randint(0, 11, (batch, time))
        x = net.norm(net.embedding(ids))
        cases.append(({"ids": ids}, {"scores": net.head(x), "plain": nn.functional.layer_norm(x, (16,))}))
    write(name, {
        "inputs": {"ids": {"shape": ["batch", "time"], "dtype": "int64"}},
        "layers": [{"name": "embedding", "type": "embedding"}, {"name": "norm", "type": "layer_norm", "epsilon": 1e-3},
                   {"name": "scores", "type": "linear", "weights": "head."},
                   {"name": "plain", "type": "layer_norm", "input": "norm", "weights": "none."}],
        "outputs": {"scores": "scores", "plain": "plain"}}, net, cases, dtype)


mlp()
gru()
lstm()
convolutions()
tokens("tokens", None)
tokens("tokens_bf16", torch.bfloat16)
tokens("tokens_f16", torch.float16)

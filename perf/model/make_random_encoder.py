#!/usr/bin/env python3
"""Writes a BERT of random weights for benchmarks, as GGUF for braid and llama-server and as ONNX for ONNX Runtime; or a small network.

    make_random_encoder.py SHAPE OUT [--tokenizer VOCAB.gguf] [--onnx]     SHAPE: minilm-l6, bert-base, or LAYERSxWIDTHxHEADSxINNER
    make_random_encoder.py mlp-64x256x256x8 OUT                            a folder for braid: an MLP of these widths

OUT.gguf has the tokenizer of VOCAB.gguf (a BERT's, as llama.cpp's ggml-vocab-bert-bge.gguf), and is written only with that.
OUT.onnx gives the mean of the last hidden states of token ids [batch, tokens], with the exact GELU.
Needs nothing but Python: the numbers, the same million of normal ones again and again, make no sense and are only multiplied.
"""
import argparse
import array
import json
import os
import random
import struct

SHAPES = {"minilm-l6": (6, 384, 12, 1536), "bert-base": (12, 768, 12, 3072)}
CONTEXT, EPSILON, VOCABULARY = 512, 1e-12, 30522


class Numbers:
    """Floats of a spread, without end."""

    def __init__(self):
        generator = random.Random(1)
        self.some = [generator.gauss(0.0, 1.0) for _ in range(1 << 17)]
        self.cache, self.at = {}, 0

    def take(self, count, spread, base=0.0):
        key = (spread, base)
        if key not in self.cache:
            self.cache[key] = array.array("f", (base + spread * x for x in self.some)).tobytes()
        block, out = self.cache[key], bytearray()
        while len(out) < 4 * count:
            begin = 4 * (self.at % len(self.some))
            out += block[begin:begin + 4 * count - len(out)]
            self.at += 7919
        return bytes(out)


def tensors(layers, width, inner, numbers):
    """(name of llama.cpp, name of transformers, shape, bytes)"""
    matrix = lambda rows, columns: numbers.take(rows * columns, 1.0 / columns ** 0.5)
    def linear(own, theirs, rows, columns):
        yield own + ".weight", theirs + ".weight", (rows, columns), matrix(rows, columns)
        yield own + ".bias", theirs + ".bias", (rows,), numbers.take(rows, 0.02)
    def norm(own, theirs):
        yield own + ".weight", theirs + ".weight", (width,), numbers.take(width, 0.02, 1.0)
        yield own + ".bias", theirs + ".bias", (width,), numbers.take(width, 0.02)
    yield "token_embd.weight", "embeddings.word_embeddings.weight", (VOCABULARY, width), numbers.take(VOCABULARY * width, 0.05)
    yield "position_embd.weight", "embeddings.position_embeddings.weight", (CONTEXT, width), numbers.take(CONTEXT * width, 0.05)
    yield "token_types.weight", "embeddings.token_type_embeddings.weight", (2, width), numbers.take(2 * width, 0.05)
    yield from norm("token_embd_norm", "embeddings.LayerNorm")
    for i in range(layers):
        own, theirs = f"blk.{i}.", f"encoder.layer.{i}."
        for a, b in (("attn_q", "query"), ("attn_k", "key"), ("attn_v", "value")):
            yield from linear(own + a, theirs + "attention.self." + b, width, width)
        yield from linear(own + "attn_output", theirs + "attention.output.dense", width, width)
        yield from norm(own + "attn_output_norm", theirs + "attention.output.LayerNorm")
        yield from linear(own + "ffn_up", theirs + "intermediate.dense", inner, width)
        yield from linear(own + "ffn_down", theirs + "output.dense", width, inner)
        yield from norm(own + "layer_output_norm", theirs + "output.LayerNorm")


SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}


def skip_value(data, at, kind):
    if kind == 8:
        return at + 8 + struct.unpack_from("<Q", data, at)[0]
    if kind != 9:
        return at + SIZES[kind]
    kind, count = struct.unpack_from("<IQ", data, at)
    at += 12
    if kind != 8:
        return at + SIZES[kind] * count
    for _ in range(count):
        at += 8 + struct.unpack_from("<Q", data, at)[0]
    return at


def tokenizer_of(path):
    """The metadata of a file that are about its tokenizer, as they are: [bytes of a key and its value]."""
    data = open(path, "rb").read()
    count, at, kept = struct.unpack_from("<Q", data, 16)[0], 24, []
    for _ in range(count):
        begin = at
        size = struct.unpack_from("<Q", data, at)[0]
        key = data[at + 8:at + 8 + size]
        kind = struct.unpack_from("<I", data, at + 8 + size)[0]
        at = skip_value(data, at + 12 + size, kind)
        if key.startswith(b"tokenizer."):
            kept.append(data[begin:at])
    return kept


def write_gguf(path, shape, vocabulary):
    layers, width, heads, inner = shape
    text = lambda s: struct.pack("<Q", len(s)) + s.encode()
    entry = lambda key, kind, value: text(key) + struct.pack("<I", kind) + value
    number = lambda key, value: entry("bert." + key, 4, struct.pack("<I", value))
    metadata = [entry("general.architecture", 8, text("bert")), entry("general.name", 8, text("random")),
                number("context_length", CONTEXT), number("embedding_length", width), number("feed_forward_length", inner),
                number("block_count", layers), number("attention.head_count", heads), number("pooling_type", 1),
                entry("bert.attention.layer_norm_epsilon", 6, struct.pack("<f", EPSILON)), entry("bert.attention.causal", 7, b"\0")]
    kept = tokenizer_of(vocabulary)
    if not any(b"token_type_count" in item for item in kept):
        metadata.append(entry("tokenizer.ggml.token_type_count", 4, struct.pack("<I", 2)))
    metadata += kept
    head, body, offset = b"", [], 0
    all_tensors = list(tensors(layers, width, inner, Numbers()))
    for name, _, extents, data in all_tensors:
        head += text(name) + struct.pack("<I", len(extents)) + b"".join(struct.pack("<Q", e) for e in reversed(extents))
        head += struct.pack("<IQ", 0, offset)
        padded = (len(data) + 31) // 32 * 32
        body.append(data + bytes(padded - len(data)))
        offset += padded
    start = b"GGUF" + struct.pack("<IQQ", 3, len(all_tensors), len(metadata)) + b"".join(metadata) + head
    with open(path, "wb") as file:
        file.write(start + bytes(-len(start) % 32))
        file.writelines(body)


# ONNX is protobuf: fields as (number, value), where a value is an integer, bytes, or text.
def varint(value):
    out = bytearray()
    while True:
        out.append(value & 127 | (128 if value > 127 else 0))
        value >>= 7
        if not value:
            return bytes(out)


def message(*fields):
    out = b""
    for number, value in fields:
        if isinstance(value, int):
            out += varint(number << 3) + varint(value & (1 << 64) - 1)
        elif isinstance(value, float):
            out += varint(number << 3 | 5) + struct.pack("<f", value)
        else:
            value = value.encode() if isinstance(value, str) else value
            out += varint(number << 3 | 2) + varint(len(value)) + value
    return out


class Graph:
    FLOAT, INT64 = 1, 7

    def __init__(self):
        self.nodes, self.tensors, self.count = [], [], 0

    def tensor(self, name, shape, data, kind=FLOAT):
        self.tensors.append((5, message(*((1, extent) for extent in shape), (2, kind), (8, name), (9, data))))
        return name

    def integers(self, *values):
        self.count += 1
        return self.tensor(f"i{self.count}", (len(values),), struct.pack(f"<{len(values)}q", *values), self.INT64)

    def number(self, value):
        self.count += 1
        return self.tensor(f"f{self.count}", (), struct.pack("<f", value))

    def op(self, kind, *inputs, outputs=1, **attributes):
        self.count += 1
        names = [f"v{self.count}_{i}" for i in range(outputs)]
        fields = [(1, name) for name in inputs] + [(2, name) for name in names] + [(4, kind)]
        for name, value in attributes.items():
            if isinstance(value, float):
                fields.append((5, message((1, name), (2, value), (20, 1))))
            elif isinstance(value, int):
                fields.append((5, message((1, name), (3, value), (20, 2))))
            else:
                fields.append((5, message((1, name), *((8, item) for item in value), (20, 7))))
        self.nodes.append((1, message(*fields)))
        return names[0] if outputs == 1 else names

    def write(self, path, result):
        value = lambda name, kind, *extents: message((1, name), (2, message((1, message((1, kind), (2, message(*(
            (1, message((2, e)) if isinstance(e, str) else message((1, e))) for e in extents))))))))
        graph = message(*self.nodes, (2, "encoder"), *self.tensors, (11, value("ids", self.INT64, "batch", "tokens")),
                        (12, value(result, self.FLOAT, "batch", "width")))
        with open(path, "wb") as file:
            file.write(message((1, 8), (7, graph), (8, message((1, ""), (2, 17)))))


def transposed(data, rows, columns):
    values = array.array("f", data)
    out = array.array("f", bytes(len(data)))
    for row in range(rows):
        out[row::rows] = values[row * columns:(row + 1) * columns]
    return out.tobytes()


def write_onnx(path, shape):
    layers, width, heads, inner = shape
    g, held = Graph(), {}
    for _, name, extents, data in tensors(layers, width, inner, Numbers()):
        held[name] = (extents, data)
    def constant(name):
        return g.tensor(name, *held[name])
    def linear(name, x):
        (rows, columns), data = held[name + ".weight"]
        return g.op("Add", g.op("MatMul", x, g.tensor(name, (columns, rows), transposed(data, rows, columns))), constant(name + ".bias"))
    def norm(name, x):
        return g.op("LayerNormalization", x, constant(name + ".weight"), constant(name + ".bias"), axis=-1, epsilon=EPSILON)
    words = g.op("Gather", constant("embeddings.word_embeddings.weight"), "ids")
    tokens = g.op("Slice", g.op("Shape", "ids"), g.integers(1), g.integers(2))
    places = g.op("Slice", constant("embeddings.position_embeddings.weight"), g.integers(0), tokens, g.integers(0))
    kind = g.op("Slice", constant("embeddings.token_type_embeddings.weight"), g.integers(0), g.integers(1), g.integers(0))
    x = norm("embeddings.LayerNorm", g.op("Add", g.op("Add", words, places), kind))
    split = g.integers(0, 0, heads, width // heads)
    joined = g.integers(0, 0, width)
    scale, root, one, half = g.number((width // heads) ** -0.5), g.number(2.0 ** 0.5), g.number(1.0), g.number(0.5)
    for i in range(layers):
        own = f"encoder.layer.{i}."
        q, k, v = (g.op("Reshape", linear(own + "attention.self." + n, x), split) for n in ("query", "key", "value"))
        q, v = (g.op("Transpose", t, perm=(0, 2, 1, 3)) for t in (q, v))
        scores = g.op("Mul", g.op("MatMul", q, g.op("Transpose", k, perm=(0, 2, 3, 1))), scale)
        mixed = g.op("Transpose", g.op("MatMul", g.op("Softmax", scores, axis=-1), v), perm=(0, 2, 1, 3))
        mixed = linear(own + "attention.output.dense", g.op("Reshape", mixed, joined))
        x = norm(own + "attention.output.LayerNorm", g.op("Add", mixed, x))
        up = linear(own + "intermediate.dense", x)
        gelu = g.op("Mul", g.op("Mul", up, g.op("Add", g.op("Erf", g.op("Div", up, root)), one)), half)
        x = norm(own + "output.LayerNorm", g.op("Add", linear(own + "output.dense", gelu), x))
    g.write(path, g.op("ReduceMean", x, axes=(1,), keepdims=0))


def write_mlp(path, widths):
    numbers, layers, header, data = Numbers(), [], {}, b""
    for i, (inputs, outputs) in enumerate(zip(widths, widths[1:])):
        layers.append({"name": f"l{i}", "type": "linear", "weights": f"l{i}."})
        if i + 2 < len(widths):
            layers.append({"name": f"a{i}", "type": "relu"})
        for name, shape, spread in ((f"l{i}.weight", [outputs, inputs], 1.0 / inputs ** 0.5), (f"l{i}.bias", [outputs], 0.02)):
            values = numbers.take(shape[0] * (shape[1] if len(shape) > 1 else 1), spread)
            header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(values)]}
            data += values
    os.makedirs(path, exist_ok=True)
    head = json.dumps(header).encode()
    with open(path + "/model.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(head)) + head + data)
    with open(path + "/config.json", "w") as file:
        json.dump({"model_type": "braid-net", "inputs": {"x": {"shape": ["batch", widths[0]]}}, "layers": layers,
                   "outputs": {"y": layers[-1]["name"]}}, file, indent=1)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shape")
    parser.add_argument("out")
    parser.add_argument("--tokenizer")
    parser.add_argument("--onnx", action="store_true", help="write OUT.onnx")
    options = parser.parse_args()
    if options.shape.startswith("mlp-"):
        return write_mlp(options.out, [int(x) for x in options.shape[4:].split("x")])
    shape = SHAPES.get(options.shape) or tuple(int(x) for x in options.shape.split("x"))
    if options.tokenizer:
        write_gguf(options.out + ".gguf", shape, options.tokenizer)
    if options.onnx:
        write_onnx(options.out + ".onnx", shape)


if __name__ == "__main__":
    main()

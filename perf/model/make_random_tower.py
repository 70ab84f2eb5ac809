#!/usr/bin/env python3
"""Writes an image tower of CLIP-L's size (336 x 336 pixels, patches of 14) with random weights, as llama.cpp has such files.

    python3 make_random_tower.py OUT.gguf [--type f16|q8_0] [--vectors 512]        # --vectors: the width of the language model

Any program that reads LLaVA's mmproj files may be measured with it. Values repeat within a matrix, which changes no time.
"""
import argparse
import random
import struct

WIDTH, INNER, LAYERS, HEADS, PATCH, IMAGE = 1024, 4096, 23, 16, 14, 336
KINDS = {"f32": 0, "f16": 1, "q8_0": 8}


def repeated(unit, size):
    return (unit * (size // len(unit) + 1))[:size]


def values(r, kind, count, spread):
    """So many numbers of a type. Q8_0: blocks of 32, a scale each."""
    if kind == "q8_0":
        block = lambda: struct.pack("<e32b", spread / 64, *(r.randrange(-127, 128) for _ in range(32)))
        return repeated(b"".join(block() for _ in range(509)), count // 32 * 34)
    form, size = ("<e", 2) if kind == "f16" else ("<f", 4)
    return repeated(b"".join(struct.pack(form, r.gauss(0, spread)) for _ in range(4093)), count * size)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out")
    parser.add_argument("--type", choices=["f16", "q8_0"], default="f16")
    parser.add_argument("--vectors", type=int, default=512)
    wish = parser.parse_args()
    r = random.Random(1)
    tensors = []

    def add(name, shape, kind=None, spread=0.02):
        kind = kind or (wish.type if len(shape) == 2 else "f32")
        count = 1
        for size in shape:
            count *= size
        tensors.append((name, shape, KINDS[kind], values(r, kind, count, spread)))

    def add_norm(name):
        tensors.append((f"{name}.weight", [WIDTH], 0, struct.pack("<f", 1.0) * WIDTH))
        add(f"{name}.bias", [WIDTH])

    def add_linear(name, outputs, inputs):
        add(f"{name}.weight", [outputs, inputs])
        add(f"{name}.bias", [outputs])

    add("v.class_embd", [WIDTH])
    add("v.patch_embd.weight", [WIDTH, 3, PATCH, PATCH], "f16")
    add("v.position_embd.weight", [(IMAGE // PATCH) ** 2 + 1, WIDTH], "f16")
    add_norm("v.pre_ln")
    for i in range(LAYERS):
        own = f"v.blk.{i}."
        add_norm(own + "ln1")
        add_norm(own + "ln2")
        for name in ("attn_q", "attn_k", "attn_v", "attn_out"):
            add_linear(own + name, WIDTH, WIDTH)
        add_linear(own + "ffn_up", INNER, WIDTH)
        add_linear(own + "ffn_down", WIDTH, INNER)
    add_linear("mm.0", wish.vectors, WIDTH)
    add_linear("mm.2", wish.vectors, wish.vectors)

    text = lambda value: struct.pack("<Q", len(value)) + value.encode()
    whole = lambda name, value: text(name) + struct.pack("<II", 4, value)
    words = lambda name, value: text(name) + struct.pack("<I", 8) + text(value)
    yes = lambda name: text(name) + struct.pack("<I?", 7, True)
    floats = lambda name, list_: text(name) + struct.pack("<IIQ", 9, 6, len(list_)) + struct.pack(f"<{len(list_)}f", *list_)
    keys = [words("general.architecture", "clip"), words("general.name", "random CLIP-L"), words("clip.projector_type", "mlp"),
            yes("clip.has_vision_encoder"), whole("clip.vision.image_size", IMAGE), whole("clip.vision.patch_size", PATCH),
            whole("clip.vision.embedding_length", WIDTH), whole("clip.vision.feed_forward_length", INNER),
            whole("clip.vision.projection_dim", wish.vectors), whole("clip.vision.block_count", LAYERS),
            whole("clip.vision.attention.head_count", HEADS), text("clip.vision.attention.layer_norm_epsilon") + struct.pack("<If", 6, 1e-5),
            floats("clip.vision.image_mean", [0.48, 0.46, 0.41]), floats("clip.vision.image_std", [0.27, 0.26, 0.28])]
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(keys)) + b"".join(keys)
    offset = 0
    for name, shape, kind, data in tensors:
        head += text(name) + struct.pack(f"<I{len(shape)}Q", len(shape), *reversed(shape)) + struct.pack("<IQ", kind, offset)
        offset += (len(data) + 31) // 32 * 32
    with open(wish.out, "wb") as out:
        out.write(head + bytes(-len(head) % 32))
        for _, _, _, data in tensors:
            out.write(data + bytes(-len(data) % 32))


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Of a random Q8_0 model a target and its draft, which agree as often as is wanted: the draft is the model's first layers, the target all of
them, what the further ones add scaled down. make_draft_pair.py MODEL.gguf TARGET.gguf DRAFT.gguf [--layers 1] [--by 0.1]
"""
import argparse, re, struct

SIZES = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
Q8_0 = 8


class Reader:
    def __init__(self, data): self.data, self.at = data, 0

    def take(self, code):
        value = struct.unpack_from("<" + code, self.data, self.at)[0]
        self.at += struct.calcsize("<" + code)
        return value

    def text(self):
        size = self.take("Q")
        self.at += size
        return bytes(self.data[self.at - size:self.at])

    def skip(self, kind):
        if kind == 8: self.text()
        elif kind == 9:
            kind, count = self.take("I"), self.take("Q")
            for _ in range(count): self.skip(kind)
        else: self.at += struct.calcsize("<" + SIZES[kind])


def read(data):
    reader = Reader(data)
    magic, version, tensors, pairs = reader.take("I"), reader.take("I"), reader.take("Q"), reader.take("Q")
    metadata = []
    for _ in range(pairs):
        begin, key = reader.at, reader.text()
        kind = reader.take("I")
        value = reader.at
        reader.skip(kind)
        metadata.append((key, bytes(data[begin:value]), bytes(data[value:reader.at])))
    infos = []
    for _ in range(tensors):
        name = reader.text()
        shape = [reader.take("Q") for _ in range(reader.take("I"))]
        infos.append((name, shape, reader.take("I"), reader.take("Q")))
    base = (reader.at + 31) // 32 * 32
    ends = sorted(info[3] for info in infos) + [len(data) - base]
    return metadata, [(n, s, t, data[base + o:base + ends[ends.index(o) + 1]]) for n, s, t, o in infos]


def write(path, metadata, tensors):
    out = bytearray(struct.pack("<IIQQ", 0x46554747, 3, len(tensors), len(metadata)))
    for _, head, value in metadata: out += head + value
    offset = 0
    for name, shape, kind, data in tensors:
        out += struct.pack("<Q", len(name)) + name + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, kind, offset)
        offset += (len(data) + 31) // 32 * 32
    with open(path, "wb") as file:
        file.write(out + bytes(-len(out) % 32))
        for *_, data in tensors: file.write(bytes(data) + bytes(-len(data) % 32))


def scaled(data, by):
    out = bytearray(data)
    for place, (scale,) in enumerate(struct.iter_unpack("<e32x", data)): struct.pack_into("<e", out, place * 34, scale * by)
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model"), parser.add_argument("target"), parser.add_argument("draft")
    parser.add_argument("--layers", type=int, default=1)
    parser.add_argument("--by", type=float, default=0.1)
    args = parser.parse_args()
    with open(args.model, "rb") as file: metadata, tensors = read(memoryview(file.read()))
    layer_of = lambda name: int(found[1]) if (found := re.match(rb"blk\.(\d+)\.", name)) else -1
    adds = re.compile(rb"blk\.\d+\.(attn_output|ffn_down)\.weight$")
    target = [(n, s, t, scaled(d, args.by) if adds.match(n) and layer_of(n) >= args.layers and t == Q8_0 else d) for n, s, t, d in tensors]
    write(args.target, metadata, target)
    fewer = [(k, h, struct.pack("<I", args.layers) if k.endswith(b".block_count") else v) for k, h, v in metadata]
    write(args.draft, fewer, [tensor for tensor in tensors if layer_of(tensor[0]) < args.layers])


main()

"""GGUF files: reading F32 and Q8_0, writing matrices as Q8_0."""
import math
import os
import struct

import numpy as np


def read_gguf(path):
    data = np.memmap(path, np.uint8, "r")
    at = 24
    def take(form):
        nonlocal at
        value = struct.unpack_from("<" + form, data, at)[0]
        at += struct.calcsize(form)
        return value
    def text():
        nonlocal at
        size = take("Q")
        at += size
        return bytes(data[at - size:at]).decode("utf-8", "surrogateescape")
    forms = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "B", 10: "Q", 11: "q", 12: "d"}
    def value(kind):
        if kind == 8:
            return text()
        if kind == 9:
            of, size = take("I"), take("Q")
            return [value(of) for _ in range(size)]
        return take(forms[kind])
    tensor_count, key_count = struct.unpack_from("<QQ", data, 8)
    keys = {}
    for _ in range(key_count):
        name = text()
        keys[name] = value(take("I"))
    places = []
    for _ in range(tensor_count):
        name = text()
        shape = [take("Q") for _ in range(take("I"))][::-1]
        places.append((name, shape, take("I"), take("Q")))
    base = (at + 31) // 32 * 32
    tensors = {}
    for name, shape, kind, offset in places:
        size = math.prod(shape)
        if kind == 8:
            raw = np.frombuffer(data[base + offset:base + offset + size // 32 * 34], np.dtype([("d", "<f2"), ("q", "i1", 32)]))
            values = raw["q"].astype(np.float32) * raw["d"].astype(np.float32)[:, None]
        else:
            values = np.frombuffer(data[base + offset:base + offset + size * 4], "<f4")
        tensors[name] = values.reshape(shape).copy()
    return keys, tensors


def q8_0(values):
    blocks = values.astype(np.float32).reshape(-1, 32)
    scale = (np.abs(blocks).max(1) / 127).astype("<f2")
    codes = np.where(scale[:, None] > 0, blocks / np.maximum(scale[:, None].astype(np.float32), 1e-12), 0)
    out = np.zeros(len(blocks), np.dtype([("d", "<f2"), ("q", "i1", 32)]))
    out["d"], out["q"] = scale, np.clip(np.rint(codes), -127, 127)
    return out.tobytes()


def write_gguf(path, keys, tensors):
    def text(value):
        raw = value.encode()
        return struct.pack("<Q", len(raw)) + raw
    def value(v):
        if isinstance(v, bool):
            return struct.pack("<I?", 7, v)
        if isinstance(v, int):
            return struct.pack("<II", 4, v)
        if isinstance(v, float):
            return struct.pack("<If", 6, v)
        if isinstance(v, str):
            return struct.pack("<I", 8) + text(v)
        return struct.pack("<IIQ", 9, 6, len(v)) + struct.pack(f"<{len(v)}f", *v)
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(keys)) + b"".join(text(k) + value(v) for k, v in keys.items())
    body = b""
    for name, values in tensors.items():
        is_matrix = values.ndim == 2 and values.shape[-1] % 32 == 0 and "position" not in name
        kind, raw = (8, q8_0(values)) if is_matrix else (1, values.astype("<f2").tobytes()) if values.ndim > 1 else (0, values.astype("<f4").tobytes())
        head += text(name) + struct.pack(f"<I{values.ndim}Q", values.ndim, *values.shape[::-1]) + struct.pack("<IQ", kind, len(body))
        body += raw + bytes(-len(raw) % 32)
    with open(path, "wb") as out:
        out.write(head + bytes(-len(head) % 32) + body)
    print(path, os.path.getsize(path), flush=True)



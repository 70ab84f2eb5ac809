"""Which types llama.cpp gives the tensors of small models, for every mix that braid writes:

    python3 make_mixes.py LIBLLAMA.SO OUT.json

Calls llama_model_quantize of the library on files whose matrices have two rows, and notes the types that differ from the mix's own.
"""

import ctypes
import json
import os
import struct
import sys
import tempfile

NAMES = {0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 6: "Q5_0", 7: "Q5_1", 8: "Q8_0", 10: "Q2_K", 11: "Q3_K", 12: "Q4_K", 13: "Q5_K",
         14: "Q6_K", 20: "IQ4_NL", 23: "IQ4_XS", 30: "BF16"}
MIXES = {"q8_0": 7, "q6_k": 18, "q5_k_m": 17, "q5_k_s": 16, "q5_1": 9, "q5_0": 8, "q4_k_m": 15, "q4_k_s": 14, "iq4_nl": 25, "iq4_xs": 30,
         "q4_1": 3, "q4_0": 2, "q3_k_l": 13, "q3_k_m": 12, "q3_k_s": 11, "q2_k": 10}
# architecture, layers, heads, heads of keys, whether there is an output matrix, columns of ffn_down
MODELS = {
    "llama": ("llama", 16, 8, 8, True, 256),
    "llama-shared": ("llama", 12, 8, 2, False, 256),
    "llama-odd": ("llama", 8, 8, 2, True, 96),
    "falcon": ("falcon", 32, 8, 1, True, 256),
}


def tensors_of(model):
    architecture, layers, heads, kv_heads, has_output, down = MODELS[model]
    names = {"token_embd.weight": 256, **({"output.weight": 256} if has_output else {})}
    for layer in range(layers):
        parts = ["attn_qkv", "attn_output", "ffn_up"] if architecture == "falcon" else ["attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up"]
        names.update({f"blk.{layer}.{part}.weight": 256 for part in parts})
        names[f"blk.{layer}.ffn_down.weight"] = down
    return names


def write(path, model):
    architecture, layers, heads, kv_heads, has_output, down = MODELS[model]
    text = lambda s: struct.pack("<Q", len(s)) + s.encode()
    u32 = lambda key, value: text(f"{architecture}.{key}") + struct.pack("<II", 4, value)
    f32 = lambda key, value: text(f"{architecture}.{key}") + struct.pack("<If", 6, value)
    pairs = [text("general.architecture") + struct.pack("<I", 8) + text(architecture), u32("block_count", layers), u32("context_length", 64),
             u32("embedding_length", 256), u32("feed_forward_length", down), u32("attention.head_count", heads),
             u32("attention.head_count_kv", kv_heads), f32("attention.layer_norm_rms_epsilon", 1e-5), f32("attention.layer_norm_epsilon", 1e-5),
             u32("vocab_size", 2)]
    heads_of_tensors, offset = b"", 0
    for name, columns in tensors_of(model).items():
        heads_of_tensors += text(name) + struct.pack("<IQQIQ", 2, columns, 2, 0, offset)
        offset += columns * 8
    head = struct.pack("<4sIQQ", b"GGUF", 3, len(tensors_of(model)), len(pairs)) + b"".join(pairs) + heads_of_tensors
    with open(path, "wb") as out:
        out.write(head + b"\0" * (-len(head) % 32))
        for name, columns in tensors_of(model).items():
            out.write(struct.pack(f"<{columns * 2}f", *[((i * 7919) % 101 - 50) / 64 for i in range(columns * 2)]))


def types_of(path, names):
    with open(path, "rb") as file:
        data = file.read()
    found = {}
    for name in names:
        at = data.index(struct.pack("<Q", len(name)) + name.encode()) + 8 + len(name)
        found[name] = struct.unpack_from("<I", data, at + 4 + 16)[0]
    return found


class Parameters(ctypes.Structure):
    _fields_ = [("nthread", ctypes.c_int32), ("ftype", ctypes.c_int), ("output_tensor_type", ctypes.c_int), ("token_embedding_type", ctypes.c_int),
                ("flags", ctypes.c_bool * 6), ("imatrix", ctypes.c_void_p), ("rest", ctypes.c_void_p * 4)]


class Importance(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("data", ctypes.POINTER(ctypes.c_float)), ("size", ctypes.c_size_t)]


def main():
    library = ctypes.CDLL(sys.argv[1])
    library.llama_model_quantize_default_params.restype = Parameters
    library.llama_backend_init()
    out = {}
    with tempfile.TemporaryDirectory() as folder:
        for model in MODELS:
            source, target = os.path.join(folder, "in.gguf").encode(), os.path.join(folder, "out.gguf").encode()
            write(source, model)
            values = (ctypes.c_float * 256)(*[1.0] * 256)
            matrix = (Importance * 2)(Importance(b"blk.0.attn_output.weight", values, 256), Importance(None, None, 0))
            for mix, number in MIXES.items():
                for importance in (False, True):
                    parameters = library.llama_model_quantize_default_params()
                    parameters.ftype, parameters.nthread = number, 1
                    parameters.imatrix = ctypes.cast(matrix, ctypes.c_void_p) if importance else None
                    assert library.llama_model_quantize(source, target, ctypes.byref(parameters)) == 0
                    types = types_of(target, tensors_of(model))
                    usual = max(set(types.values()), key=list(types.values()).count)
                    out[f"{model} {mix}{' importance' if importance else ''}"] = {
                        "": NAMES[usual], **{name: NAMES[kind] for name, kind in types.items() if kind != usual}}
    # Importance changes few of them.
    out = {key: types for key, types in out.items() if out.get(key.removesuffix(" importance") if key.endswith(" importance") else "") != types}
    with open(sys.argv[2], "w") as file:
        json.dump(out, file, sort_keys=True, separators=(",", ":"))
        file.write("\n")


main()

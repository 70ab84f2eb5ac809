"""Small models, most of them llamas, whose matrices are quantised as others write them, packed here as their documentation says, in plain
Python:

    python3 make_prequantized.py FOLDER

Each folder gets config.json, model.safetensors, and expected.json: of every quantised matrix the CRC-32 of what its codes mean, as float32
in order of rows, and its first values.
"""

import json
import os
import random
import struct
import sys
import zlib

HIDDEN, HEADS, KV_HEADS, FEED, VOCAB = 64, 4, 2, 64, 16
LINEAR = {
    "self_attn.q_proj": (HIDDEN, HIDDEN),
    "self_attn.k_proj": (HIDDEN // HEADS * KV_HEADS, HIDDEN),
    "self_attn.v_proj": (HIDDEN // HEADS * KV_HEADS, HIDDEN),
    "self_attn.o_proj": (HIDDEN, HIDDEN),
    "mlp.gate_proj": (FEED, HIDDEN),
    "mlp.up_proj": (FEED, HIDDEN),
    "mlp.down_proj": (HIDDEN, FEED),
}
E2M1 = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0]


def f32(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


def f16(x):
    return struct.unpack("<e", struct.pack("<e", x))[0]


def bf16_bits(x):
    bits = struct.unpack("<I", struct.pack("<f", x))[0]
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16


def bf16(x):
    return struct.unpack("<f", struct.pack("<I", bf16_bits(x) << 16))[0]


def e4m3(code):
    sign = -1.0 if code & 128 else 1.0
    exponent, mantissa = code >> 3 & 15, code & 7
    return sign * (mantissa * 2.0**-9 if exponent == 0 else (8 + mantissa) * 2.0 ** (exponent - 10))


def floats(dtype, values):
    pack = {"F32": lambda x: struct.pack("<f", x), "F16": lambda x: struct.pack("<e", x), "BF16": lambda x: struct.pack("<H", bf16_bits(x))}
    return b"".join(pack[dtype](x) for x in values)


def stream(codes, bits):
    """A row of codes as 32-bit words, lowest bits first."""
    total = 0
    for i, code in enumerate(codes):
        total |= code << (i * bits)
    words = (len(codes) * bits + 31) // 32
    return [total >> (32 * i) & 0xFFFFFFFF for i in range(words)]


def words(rows):
    return b"".join(struct.pack("<I", word) for row in rows for word in row)


def transposed(rows):
    return [list(column) for column in zip(*rows)]


class Folder:
    def __init__(self, path, seed):
        self.path, self.random, self.tensors, self.expected = path, random.Random(seed), {}, {}

    def add(self, name, dtype, shape, data):
        self.tensors[name] = (dtype, shape, data)

    def expect(self, stem, values):
        data = b"".join(struct.pack("<f", x) for row in values for x in row)
        self.expected[stem + ".weight"] = {"crc32": zlib.crc32(data), "first": [x for x in values[0][:4]]}

    def codes(self, rows, columns, bits):
        return [[self.random.randrange(1 << bits) for _ in range(columns)] for _ in range(rows)]

    def scales(self, rows, groups, rounded, size=0.01):
        return [[rounded(size * (0.5 + self.random.random())) for _ in range(groups)] for _ in range(rows)]

    def write_llama(self, quantization, key="quantization_config"):
        config = {"model_type": "llama", "hidden_size": HIDDEN, "intermediate_size": FEED, "num_hidden_layers": 1,
                  "num_attention_heads": HEADS, "num_key_value_heads": KV_HEADS, "vocab_size": VOCAB, "rms_norm_eps": 1e-5,
                  "max_position_embeddings": 64, "tie_word_embeddings": False, "hidden_act": "silu", key: quantization}
        for name in ("model.layers.0.input_layernorm", "model.layers.0.post_attention_layernorm", "model.norm"):
            self.add(name + ".weight", "F32", [HIDDEN], floats("F32", [1.0] * HIDDEN))
        for name in ("model.embed_tokens", "lm_head"):
            if name + ".weight" not in self.tensors:
                values = [self.random.gauss(0, 0.5) for _ in range(VOCAB * HIDDEN)]
                self.add(name + ".weight", "BF16", [VOCAB, HIDDEN], floats("BF16", values))
        self.write(config)

    def write(self, config):
        os.makedirs(self.path, exist_ok=True)
        header, offset, body = {}, 0, b""
        for name in sorted(self.tensors):
            dtype, shape, data = self.tensors[name]
            header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [offset, offset + len(data)]}
            offset += len(data)
            body += data
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 8)
        with open(os.path.join(self.path, "model.safetensors"), "wb") as out:
            out.write(struct.pack("<Q", len(text)) + text + body)
        for name, what in (("config.json", config), ("expected.json", self.expected)):
            with open(os.path.join(self.path, name), "w") as out:
                json.dump(what, out, indent=1)
                out.write("\n")


def linear():
    for name, shape in LINEAR.items():
        yield "model.layers.0." + name, *shape


def mlx(folder, bits, group, config=None):
    """https://ml-explore.github.io/mlx/build/html/python/_autosummary/mlx.core.quantize.html"""
    for stem, rows, columns in [*linear(), ("model.embed_tokens", VOCAB, HIDDEN), ("lm_head", VOCAB, HIDDEN)]:
        own = (config or {}).get(stem, {"bits": bits, "group_size": group})
        own_bits, own_group = own["bits"], own["group_size"]
        codes = folder.codes(rows, columns, own_bits)
        scales = folder.scales(rows, columns // own_group, bf16, 0.16 / 2**own_bits)
        biases = [[bf16(-scale * 2 ** (own_bits - 1)) for scale in row] for row in scales]
        folder.add(stem + ".weight", "U32", [rows, columns * own_bits // 32], words(stream(row, own_bits) for row in codes))
        for part, values in (("scales", scales), ("biases", biases)):
            folder.add(f"{stem}.{part}", "BF16", [rows, columns // own_group], floats("BF16", [x for row in values for x in row]))
        folder.expect(stem, [[f32(f32(code * scales[r][c // own_group]) + biases[r][c // own_group]) for c, code in enumerate(row)]
                             for r, row in enumerate(codes)])
    folder.write_llama({"bits": bits, "group_size": group, **(config or {})}, "quantization")


def mlx_floats(folder, mode):
    bits, group = {"mxfp4": (4, 32), "nvfp4": (4, 16), "mxfp8": (8, 32)}[mode]
    for stem, rows, columns in linear():
        codes = [[c if c & 127 != 127 else 0 for c in row] for row in folder.codes(rows, columns, bits)]
        scales = [[folder.random.randrange(117, 123) if mode != "nvfp4" else folder.random.randrange(8, 40) for _ in range(columns // group)]
                  for _ in range(rows)]
        folder.add(stem + ".weight", "U32", [rows, columns * bits // 32], words(stream(row, bits) for row in codes))
        folder.add(stem + ".scales", "U8", [rows, columns // group], bytes(x for row in scales for x in row))
        scale = (lambda x: e4m3(x)) if mode == "nvfp4" else (lambda x: 2.0 ** (x - 127))
        number = e4m3 if mode == "mxfp8" else E2M1.__getitem__
        folder.expect(stem, [[f32(number(code) * scale(scales[r][c // group])) for c, code in enumerate(row)] for r, row in enumerate(codes)])
    folder.write_llama({"bits": bits, "group_size": group, "mode": mode}, "quantization")


def gptq(folder, bits, group, symmetric=True, act_order=False, version="gptq"):
    """AutoGPTQ's QuantLinear.pack: everything is [inputs, outputs], and a zero is stored less one ("gptq_v2": as it is)."""
    less = 1 if version == "gptq" else 0
    for stem, rows, columns in linear():
        own_group = columns if group < 0 else group
        groups = columns // own_group
        codes = folder.codes(rows, columns, bits)
        scales = folder.scales(rows, groups, f16, 0.16 / 2**bits)
        zeros = [[1 << (bits - 1) if symmetric else folder.random.randrange(1, 1 << bits) for _ in range(groups)] for _ in range(rows)]
        group_of = [c // own_group for c in range(columns)]
        if act_order:
            folder.random.shuffle(group_of)
        folder.add(stem + ".qweight", "I32", [columns * bits // 32, rows], words(transposed([stream(row, bits) for row in codes])))
        folder.add(stem + ".qzeros", "I32", [groups, rows * bits // 32],
                   words(stream([z - less for z in column], bits) for column in transposed(zeros)))
        folder.add(stem + ".scales", "F16", [groups, rows], floats("F16", [x for column in transposed(scales) for x in column]))
        folder.add(stem + ".g_idx", "I32", [columns], struct.pack(f"<{columns}i", *group_of))
        folder.add(stem + ".bias", "F16", [rows], floats("F16", [0.0] * rows))
        folder.expect(stem, [[f32((code - zeros[r][group_of[c]]) * scales[r][group_of[c]]) for c, code in enumerate(row)]
                             for r, row in enumerate(codes)])
    folder.write_llama({"quant_method": "gptq", "bits": bits, "group_size": group, "desc_act": act_order, "sym": symmetric,
                  "checkpoint_format": version})


def awq(folder):
    """AutoAWQ's WQLinear_GEMM: words along the outputs, of 8 codes in the order 0, 2, 4, 6, 1, 3, 5, 7."""
    order = [0, 2, 4, 6, 1, 3, 5, 7]
    shuffled = lambda row: [row[i // 8 * 8 + order[i % 8]] for i in range(len(row))]
    group = 32
    for stem, rows, columns in linear():
        codes = folder.codes(rows, columns, 4)
        scales = folder.scales(rows, columns // group, f16)
        zeros = folder.codes(rows, columns // group, 4)
        folder.add(stem + ".qweight", "I32", [columns, rows // 8], words(stream(shuffled(column), 4) for column in transposed(codes)))
        folder.add(stem + ".qzeros", "I32", [columns // group, rows // 8], words(stream(shuffled(column), 4) for column in transposed(zeros)))
        folder.add(stem + ".scales", "F16", [columns // group, rows], floats("F16", [x for column in transposed(scales) for x in column]))
        folder.expect(stem, [[f32((code - zeros[r][c // group]) * scales[r][c // group]) for c, code in enumerate(row)]
                             for r, row in enumerate(codes)])
    folder.write_llama({"quant_method": "awq", "bits": 4, "group_size": group, "version": "gemm", "zero_point": True})


def pack_int4(folder, stem, rows, columns, with_zeros=False):
    """Returns what the codes mean."""
    group, half = 32, 8
    codes = folder.codes(rows, columns, 4)
    scales = folder.scales(rows, columns // group, bf16)
    zeros = folder.codes(rows, columns // group, 4) if with_zeros else [[half] * (columns // group)] * rows
    folder.add(stem + ".weight_packed", "I32", [rows, columns // 8], words(stream(row, 4) for row in codes))
    folder.add(stem + ".weight_shape", "I64", [2], struct.pack("<qq", rows, columns))
    folder.add(stem + ".weight_scale", "BF16", [rows, columns // group], floats("BF16", [x for row in scales for x in row]))
    if with_zeros:
        packed = transposed([stream(column, 4) for column in transposed(zeros)])
        folder.add(stem + ".weight_zero_point", "I32", [rows // 8, columns // group], words(packed))
    return [[f32((code - zeros[r][c // group]) * scales[r][c // group]) for c, code in enumerate(row)] for r, row in enumerate(codes)]


def compressed(folder, kind):
    """compressed-tensors' pack_to_int32, int-quantized, float-quantized and nvfp4-pack-quantized."""
    weights = {"num_bits": 4, "type": "int"}
    for stem, rows, columns in linear():
        if kind.startswith("int4"):
            values = pack_int4(folder, stem, rows, columns, kind == "int4-zeros")
        elif kind == "int8":
            codes = folder.codes(rows, columns, 8)
            scales = folder.scales(rows, 1, bf16, 0.001)
            signed = [[c - 256 if c > 127 else c for c in row] for row in codes]
            folder.add(stem + ".weight", "I8", [rows, columns], bytes(c for row in codes for c in row))
            folder.add(stem + ".weight_scale", "BF16", [rows, 1], floats("BF16", [row[0] for row in scales]))
            values = [[f32(code * scales[r][0]) for code in row] for r, row in enumerate(signed)]
        elif kind == "fp8":
            codes = [[c if c & 127 != 127 else 0 for c in row] for row in folder.codes(rows, columns, 8)]
            scales = folder.scales(rows, 1, bf16, 0.001)
            folder.add(stem + ".weight", "F8_E4M3", [rows, columns], bytes(c for row in codes for c in row))
            folder.add(stem + ".weight_scale", "BF16", [rows, 1], floats("BF16", [row[0] for row in scales]))
            folder.add(stem + ".input_scale", "BF16", [1], floats("BF16", [1.0]))
            values = [[f32(e4m3(code) * scales[r][0]) for code in row] for r, row in enumerate(codes)]
        else:
            group, total = 16, 64.0
            codes = folder.codes(rows, columns, 4)
            scales = [[folder.random.randrange(8, 60) for _ in range(columns // group)] for _ in range(rows)]
            folder.add(stem + ".weight_packed", "U8", [rows, columns // 2], words(stream(row, 4) for row in codes))
            folder.add(stem + ".weight_scale", "F8_E4M3", [rows, columns // group], bytes(x for row in scales for x in row))
            folder.add(stem + ".weight_global_scale", "F32", [1], floats("F32", [total]))
            values = [[f32(E2M1[code] * (e4m3(scales[r][c // group]) / total)) for c, code in enumerate(row)] for r, row in enumerate(codes)]
        folder.expect(stem, values)
    folder.write_llama({"quant_method": "compressed-tensors", "format": "pack-quantized", "config_groups": {"group_0": {"weights": weights}}})


def fp8(folder, block):
    for stem, rows, columns in linear():
        codes = [[c if c & 127 != 127 else 0 for c in row] for row in folder.codes(rows, columns, 8)]
        down, across = ((rows + block - 1) // block, (columns + block - 1) // block) if block else (1, 1)
        scales = folder.scales(down, across, f32, 0.0007)
        folder.add(stem + ".weight", "F8_E4M3", [rows, columns], bytes(c for row in codes for c in row))
        folder.add(stem + (".weight_scale_inv" if block else ".weight_scale"), "F32", [down, across] if block else [],
                   floats("F32", [x for row in scales for x in row]))
        height, width = (block, block) if block else (rows, columns)
        folder.expect(stem, [[f32(e4m3(code) * scales[r // height][c // width]) for c, code in enumerate(row)] for r, row in enumerate(codes)])
    folder.write_llama({"quant_method": "fp8", **({"weight_block_size": [block, block]} if block else {})})


def kimi(folder):
    """Kimi K2.5: DeepSeek V3 in a wrapper, its routed experts int4, with a tower for images."""
    heads, rank, query_rank, plain, rotated, value, experts, width, dense = 4, 32, 32, 16, 16, 16, 6, 32, 64
    prefix = "language_model."

    def plain_tensor(name, *shape, deviation=0.15):
        count = shape[0] * (shape[1] if len(shape) > 1 else 1)
        values = [1.0] * count if "norm" in name else [folder.random.gauss(0, deviation) for _ in range(count)]
        folder.add(prefix + name, "BF16", list(shape), floats("BF16", values))

    for layer in range(2):
        at = f"model.layers.{layer}."
        for norm, size in (("input_layernorm", HIDDEN), ("post_attention_layernorm", HIDDEN), ("self_attn.q_a_layernorm", query_rank),
                           ("self_attn.kv_a_layernorm", rank)):
            plain_tensor(f"{at}{norm}.weight", size)
        for name, *shape in (("q_a_proj", query_rank, HIDDEN), ("q_b_proj", heads * (plain + rotated), query_rank),
                             ("kv_a_proj_with_mqa", rank + rotated, HIDDEN), ("kv_b_proj", heads * (plain + value), rank),
                             ("o_proj", HIDDEN, heads * value)):
            plain_tensor(f"{at}self_attn.{name}.weight", *shape)
        network = "mlp" if layer == 0 else "mlp.shared_experts"
        size = dense if layer == 0 else width
        for name, *shape in (("gate_proj", size, HIDDEN), ("up_proj", size, HIDDEN), ("down_proj", HIDDEN, size)):
            plain_tensor(f"{at}{network}.{name}.weight", *shape)
        if layer == 0:
            continue
        plain_tensor(f"{at}mlp.gate.weight", experts, HIDDEN)
        plain_tensor(f"{at}mlp.gate.e_score_correction_bias", experts, deviation=0.01)
        for expert in range(experts):
            for name, *shape in (("gate_proj", width, HIDDEN), ("up_proj", width, HIDDEN), ("down_proj", HIDDEN, width)):
                stem = f"{prefix}{at}mlp.experts.{expert}.{name}"
                folder.expect(stem, pack_int4(folder, stem, *shape))
    plain_tensor("model.norm.weight", HIDDEN)
    for name in ("model.embed_tokens", "lm_head"):
        plain_tensor(name + ".weight", VOCAB, HIDDEN)
    for name in ("vision_tower.patch_embed.proj.weight", "mm_projector.linear_1.weight"):
        folder.add(name, "BF16", [2, 2], floats("BF16", [1.0] * 4))
    weights = {"num_bits": 4, "type": "int", "group_size": 32, "strategy": "group", "symmetric": True}
    text = {"model_type": "kimi_k2", "architectures": ["DeepseekV3ForCausalLM"], "hidden_size": HIDDEN, "intermediate_size": dense,
            "num_hidden_layers": 2, "num_attention_heads": heads, "num_key_value_heads": heads, "vocab_size": VOCAB,
            "max_position_embeddings": 64, "rms_norm_eps": 1e-5, "hidden_act": "silu", "kv_lora_rank": rank, "q_lora_rank": query_rank,
            "qk_nope_head_dim": plain, "qk_rope_head_dim": rotated, "v_head_dim": value, "n_routed_experts": experts,
            "num_experts_per_tok": 2, "n_shared_experts": 1, "moe_intermediate_size": width, "first_k_dense_replace": 1, "n_group": 1,
            "topk_group": 1, "norm_topk_prob": True, "scoring_func": "sigmoid", "topk_method": "noaux_tc", "routed_scaling_factor": 2.827,
            "num_nextn_predict_layers": 0, "rope_theta": 50000.0, "tie_word_embeddings": False,
            "rope_scaling": {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16, "beta_fast": 32.0, "beta_slow": 1.0,
                             "mscale": 1.0, "mscale_all_dim": 1.0},
            "quantization_config": {"quant_method": "compressed-tensors", "format": "pack-quantized",
                                    "ignore": ["lm_head", "re:.*self_attn.*", "re:.*shared_experts.*"],
                                    "config_groups": {"group_0": {"targets": ["Linear"], "weights": weights}}}}
    folder.write({"model_type": "kimi_k25", "architectures": ["KimiK25ForConditionalGeneration"], "text_config": text,
                  "vision_config": {"model_type": "kimi_k25_vision", "hidden_size": 8}})


MODELS = {
    "mlx4": lambda f: mlx(f, 4, 64),
    "mlx3": lambda f: mlx(f, 3, 32),
    "mlx5": lambda f: mlx(f, 5, 32),
    "mlx8-mixed": lambda f: mlx(f, 8, 64, {"model.layers.0.mlp.down_proj": {"bits": 4, "group_size": 32}}),
    "mlx-mxfp4": lambda f: mlx_floats(f, "mxfp4"),
    "mlx-nvfp4": lambda f: mlx_floats(f, "nvfp4"),
    "mlx-mxfp8": lambda f: mlx_floats(f, "mxfp8"),
    "gptq4": lambda f: gptq(f, 4, 32),
    "gptq4-zeros": lambda f: gptq(f, 4, 32, symmetric=False),
    "gptq4-act-order": lambda f: gptq(f, 4, 32, act_order=True),
    "gptq4-whole": lambda f: gptq(f, 4, -1, version="gptq_v2"),
    "gptq3": lambda f: gptq(f, 3, 32, symmetric=False),
    "gptq8": lambda f: gptq(f, 8, 32),
    "awq": awq,
    "int4": lambda f: compressed(f, "int4"),
    "int4-zeros": lambda f: compressed(f, "int4-zeros"),
    "int8": lambda f: compressed(f, "int8"),
    "float8": lambda f: compressed(f, "fp8"),
    "nvfp4": lambda f: compressed(f, "nvfp4"),
    "fp8-blocks": lambda f: fp8(f, 48),
    "fp8-whole": lambda f: fp8(f, 0),
    "kimi-k2.5": kimi,
}

if __name__ == "__main__":
    wanted = sys.argv[2:] or MODELS
    for seed, (name, make) in enumerate(MODELS.items()):
        if name in wanted:
            make(Folder(os.path.join(sys.argv[1], name), seed))

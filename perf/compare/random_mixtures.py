"""GGUF files with random weights in the shapes of mixtures of experts, cut to a few layers, for rates beside other programs:

    python3 random_mixtures.py FOLDER

olmoe.gguf (OLMoE-1B-7B, mix of Q4_K_M, 4 of 16 layers), gptoss.gguf (gpt-oss-20b, experts MXFP4, 3 of 24 layers, a fourth of the vocabulary)
and v2lite.gguf (DeepSeek-V2-Lite, 3 of 27 layers; queries are narrowed to 1,536 values, because llama.cpp tells the Lite by its 27 layers).
"""

import os
import random
import struct
import sys

# Number, values and bytes of a block.
TYPES = {"F32": (0, 1, 4), "Q5_0": (6, 32, 22), "Q8_0": (8, 32, 34), "Q4_K": (12, 256, 144), "Q6_K": (14, 256, 210), "MXFP4": (39, 32, 17)}


def half(x):
    return struct.pack("<e", x)


# Scales such that weights deviate by about 0.02, and random codes.
BLOCKS = {
    "Q4_K": lambda: half(1.6e-4) + half(1.2e-3) + os.urandom(140),
    "Q6_K": lambda: os.urandom(208) + half(1.9e-5),
    "Q5_0": lambda: half(2.4e-3) + os.urandom(20),
    "Q8_0": lambda: half(3e-4) + os.urandom(32),
    "MXFP4": lambda: bytes([121]) + os.urandom(16),
}
POOLS = {name: b"".join(block() for _ in range(5003)) for name, block in BLOCKS.items()}


class File:
    def __init__(self, architecture, layers, width, feed_forward, heads, kv_heads, vocab, rope_base=1e4, matrix="Q4_K", better="Q6_K"):
        self.architecture, self.pairs, self.tensors = architecture, [], []
        self.pair("general.architecture", architecture)
        self.pair("tokenizer.ggml.model", "no_vocab")
        self.keys({"vocab_size": vocab, "context_length": 8192, "block_count": layers, "embedding_length": width,
                   "feed_forward_length": feed_forward, "attention.head_count": heads, "attention.head_count_kv": kv_heads,
                   "attention.layer_norm_rms_epsilon": 1e-5, "rope.freq_base": rope_base})
        self.tensor("token_embd.weight", matrix, width, vocab)
        self.ones("output_norm.weight", width)
        self.tensor("output.weight", better, width, vocab)

    def pair(self, key, value):
        pair = struct.pack("<Q", len(key)) + key.encode()
        if isinstance(value, str):
            pair += struct.pack("<IQ", 8, len(value)) + value.encode()
        else:
            pair += struct.pack("<If", 6, value) if isinstance(value, float) else struct.pack("<II", 4, value)
        self.pairs.append(pair)

    def keys(self, values):
        for key, value in values.items():
            self.pair(f"{self.architecture}.{key}", value)

    def tensor(self, name, kind, *shape):
        self.tensors.append((name, kind, shape, False))

    def ones(self, name, width):
        self.tensors.append((name, "F32", (width,), True))

    def write(self, path):
        with open(path, "wb") as out:
            out.write(b"GGUF" + struct.pack("<IQQ", 3, len(self.tensors), len(self.pairs)) + b"".join(self.pairs))
            offset = 0
            for name, kind, shape, _ in self.tensors:
                number, _, _ = TYPES[kind]
                out.write(struct.pack("<Q", len(name)) + name.encode() + struct.pack(f"<I{len(shape)}Q", len(shape), *shape))
                out.write(struct.pack("<IQ", number, offset))
                offset += (self.bytes_of(kind, shape) + 31) // 32 * 32
            for _, kind, shape, ones in self.tensors:
                out.write(b"\0" * (-out.tell() % 32))
                left = self.bytes_of(kind, shape)
                if kind == "F32":
                    out.write(struct.pack(f"<{left // 4}f", *(1.0 if ones else random.gauss(0, 0.03) for _ in range(left // 4))))
                    continue
                while left > 0:
                    left -= out.write(POOLS[kind][:left])

    @staticmethod
    def bytes_of(kind, shape):
        _, values, size = TYPES[kind]
        count = 1
        for extent in shape:
            count *= extent
        return count // values * size


def olmoe(layers=4):
    width, experts, expert = 2048, 64, 1024
    file = File("olmoe", layers, width, expert, 16, 16, 50304)
    file.keys({"expert_count": experts, "expert_used_count": 8, "rope.dimension_count": 128})
    for layer in range(layers):
        at = f"blk.{layer}."
        important = "Q6_K" if layer >= 2 else "Q4_K"  # as the mix has it for four layers
        for norm in ("attn_norm", "attn_q_norm", "attn_k_norm", "ffn_norm"):
            file.ones(f"{at}{norm}.weight", width)
        for name, kind in (("attn_q", "Q4_K"), ("attn_k", "Q4_K"), ("attn_v", important), ("attn_output", "Q4_K")):
            file.tensor(f"{at}{name}.weight", kind, width, width)
        file.tensor(at + "ffn_gate_inp.weight", "F32", width, experts)
        file.tensor(at + "ffn_gate_exps.weight", "Q4_K", width, expert, experts)
        file.tensor(at + "ffn_up_exps.weight", "Q4_K", width, expert, experts)
        file.tensor(at + "ffn_down_exps.weight", important, expert, width, experts)
    return file


def v2lite(layers=3):
    width, experts, expert, heads, rank, narrow = 2048, 64, 1408, 16, 512, 1536
    file = File("deepseek2", layers, width, 10944, heads, 1, 102400)
    file.keys({"attention.kv_lora_rank": rank, "attention.q_lora_rank": narrow, "attention.key_length": 576, "attention.value_length": rank,
               "attention.key_length_mla": 192, "attention.value_length_mla": 128, "rope.dimension_count": 64, "expert_count": experts,
               "expert_used_count": 6, "expert_feed_forward_length": expert, "expert_shared_count": 2, "leading_dense_block_count": 1,
               "expert_weights_scale": 1.0, "expert_gating_func": 1})
    for layer in range(layers):
        at = f"blk.{layer}."
        for norm, size in (("attn_norm", width), ("ffn_norm", width), ("attn_kv_a_norm", rank), ("attn_q_a_norm", narrow)):
            file.ones(f"{at}{norm}.weight", size)
        for name, kind, *shape in (("attn_q_a", "Q4_K", width, narrow), ("attn_q_b", "Q4_K", narrow, heads * 192),
                                   ("attn_kv_a_mqa", "Q4_K", width, rank + 64), ("attn_k_b", "Q8_0", 128, rank, heads),
                                   ("attn_v_b", "Q8_0", rank, 128, heads), ("attn_output", "Q4_K", heads * 128, width)):
            file.tensor(f"{at}{name}.weight", kind, *shape)
        networks = [("", "Q5_0", 10944)] if layer == 0 else [("_shexp", "Q4_K", 2 * expert), ("_exps", "Q5_0", expert, experts)]
        for ending, down, size, *count in networks:
            file.tensor(f"{at}ffn_gate{ending}.weight", "Q4_K", width, size, *count)
            file.tensor(f"{at}ffn_up{ending}.weight", "Q4_K", width, size, *count)
            file.tensor(f"{at}ffn_down{ending}.weight", down, size, width, *count)
        if layer > 0:
            file.tensor(at + "ffn_gate_inp.weight", "F32", width, experts)
    return file


def gptoss(layers=3):
    width, experts, heads = 2880, 32, 64
    file = File("gpt-oss", layers, width, width, heads, 8, 51200, 150000.0, "Q8_0", "Q8_0")
    file.keys({"attention.key_length": 64, "attention.value_length": 64, "attention.sliding_window": 128, "rope.dimension_count": 64,
               "expert_count": experts, "expert_used_count": 4, "expert_feed_forward_length": width, "rope.scaling.type": "yarn",
               "rope.scaling.factor": 32.0, "rope.scaling.original_context_length": 4096})
    for layer in range(layers):
        at = f"blk.{layer}."
        for norm in ("attn_norm", "post_attention_norm"):
            file.ones(f"{at}{norm}.weight", width)
        file.tensor(at + "attn_sinks.weight", "F32", heads)
        for name, inputs, outputs in (("attn_q", width, 4096), ("attn_k", width, 512), ("attn_v", width, 512), ("attn_output", 4096, width)):
            file.tensor(f"{at}{name}.weight", "Q8_0", inputs, outputs)
            file.tensor(f"{at}{name}.bias", "F32", outputs)
        file.tensor(at + "ffn_gate_inp.weight", "F32", width, experts)
        file.tensor(at + "ffn_gate_inp.bias", "F32", experts)
        for part in ("gate", "up", "down"):
            file.tensor(f"{at}ffn_{part}_exps.weight", "MXFP4", width, width, experts)
            file.tensor(f"{at}ffn_{part}_exps.bias", "F32", width, experts)
    return file


if __name__ == "__main__":
    for make in (olmoe, v2lite, gptoss):
        make().write(os.path.join(sys.argv[1], make.__name__ + ".gguf"))

// A GGUF file of an image tower, as llama.cpp's converter would write it beside a language model.
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";

const types = { u32: 4, f32: 6, bool: 7, string: 8, array: 9 };

class Writer {
  parts = [];
  number(method, value, bytes) {
    const part = Buffer.alloc(bytes);
    part[method](value);
    this.parts.push(part);
  }
  u32(value) { this.number("writeUInt32LE", value, 4); }
  u64(value) { this.number("writeBigUInt64LE", BigInt(value), 8); }
  string(value) {
    this.u64(Buffer.byteLength(value));
    this.parts.push(Buffer.from(value));
  }
  value(value) {
    if (Array.isArray(value)) {
      this.u32(types.array);
      this.u32(types.f32);
      this.u64(value.length);
      for (const each of value) this.number("writeFloatLE", each, 4);
    } else if (typeof value === "string") {
      this.u32(types.string);
      this.string(value);
    } else if (Number.isInteger(value)) {
      this.u32(types.u32);
      this.u32(value);
    } else {
      this.u32(types.f32);
      this.number("writeFloatLE", value, 4);
    }
  }
  bytes() { return Buffer.concat(this.parts); }
}

const alignment = 32;
const kBf16 = 30;

// tensors: { name: { shape, bytes } }, the contiguous dimension last, in bf16.
function write_gguf(file, metadata, tensors) {
  const out = new Writer();
  out.parts.push(Buffer.from("GGUF"));
  out.u32(3);
  out.u64(Object.keys(tensors).length);
  out.u64(Object.keys(metadata).length);
  for (const [key, value] of Object.entries(metadata)) {
    out.string(key);
    out.value(value);
  }
  let offset = 0;
  const data = [];
  for (const [name, { shape, bytes }] of Object.entries(tensors)) {
    out.string(name);
    out.u32(shape.length);
    for (const size of shape.toReversed()) out.u64(size);
    out.u32(kBf16);
    out.u64(offset);
    const padded = Buffer.alloc(Math.ceil(bytes.length / alignment) * alignment);
    bytes.copy(padded);
    data.push(padded);
    offset += padded.length;
  }
  const head = out.bytes();
  const gap = Buffer.alloc((alignment - head.length % alignment) % alignment);
  writeFileSync(file, Buffer.concat([head, gap, ...data]));
}

function read_safetensors(file) {
  const all = readFileSync(file);
  const size = Number(all.readBigUInt64LE(0));
  const { __metadata__, ...tensors } = JSON.parse(all.subarray(8, 8 + size).toString());
  return Object.fromEntries(Object.entries(tensors).map(([name, { shape, data_offsets: [begin, end] }]) =>
    [name, { shape, bytes: all.subarray(8 + size + begin, 8 + size + end) }]));
}

const words = [["vision_tower.encoder.layers.", "v.blk."], ["vision_tower.embeddings.patch_embedding", "v.patch_embd"],
  ["vision_tower.embeddings.class_embedding", "v.class_embd"], ["vision_tower.embeddings.position_embedding", "v.position_embd"],
  ["vision_tower.pre_layrnorm", "v.pre_ln"], ["multi_modal_projector.linear_1", "mm.0"], ["multi_modal_projector.linear_2", "mm.2"],
  ["self_attn.q_proj", "attn_q"], ["self_attn.k_proj", "attn_k"], ["self_attn.v_proj", "attn_v"], ["self_attn.out_proj", "attn_out"],
  ["layer_norm1", "ln1"], ["layer_norm2", "ln2"], ["mlp.fc1", "ffn_up"], ["mlp.fc2", "ffn_down"]];

// Of a LLaVA 1.5's folder. The last layer, which nobody reads, stays in the folder.
export function write_llava_tower(folder, file) {
  const { vision_config: vision } = JSON.parse(readFileSync(path.join(folder, "config.json"), "utf8"));
  const pictures = JSON.parse(readFileSync(path.join(folder, "preprocessor_config.json"), "utf8"));
  const layers = vision.num_hidden_layers - 1;
  const tensors = {};
  for (const [name, tensor] of Object.entries(read_safetensors(path.join(folder, "model.safetensors")))) {
    const own = words.reduce((all, [from, to]) => all.replace(from, to), name);
    if (/^(v|mm)\./.test(own) && !own.startsWith(`v.blk.${layers}.`)) tensors[own] = tensor;
  }
  write_gguf(file, {
    "general.architecture": "clip", "clip.projector_type": "mlp", "clip.vision.image_size": vision.image_size,
    "clip.vision.patch_size": vision.patch_size, "clip.vision.embedding_length": vision.hidden_size,
    "clip.vision.feed_forward_length": vision.intermediate_size, "clip.vision.block_count": layers,
    "clip.vision.attention.head_count": vision.num_attention_heads, "clip.vision.attention.layer_norm_epsilon": vision.layer_norm_eps,
    "clip.vision.image_mean": pictures.image_mean, "clip.vision.image_std": pictures.image_std,
  }, tensors);
}

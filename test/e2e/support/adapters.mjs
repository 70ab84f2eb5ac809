// Adapters of random numbers for the embedded model, as PEFT writes them.
import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { read_safetensors } from "./gguf.mjs";

const layers = 8, width = 512, rank = 4;

// Numbers of [-1, 1] that a seed decides.
function* numbers(seed) {
  let state = seed >>> 0;
  while (true) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    yield state / 2 ** 31 - 1;
  }
}

// A file of tensors of F32: { name: { shape, values } }.
export function safetensors(tensors, metadata = { format: "pt" }) {
  const header = { __metadata__: metadata };
  const parts = [];
  let offset = 0;
  for (const [name, { shape, values }] of Object.entries(tensors)) {
    const bytes = Buffer.from(Float32Array.from(values).buffer);
    header[name] = { dtype: "F32", shape, data_offsets: [offset, offset += bytes.length] };
    parts.push(bytes);
  }
  const text = Buffer.from(JSON.stringify(header));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(text.length));
  return Buffer.concat([length, text, ...parts]);
}

// What such a file has.
export function tensors_in(file) {
  return Object.fromEntries(Object.entries(read_safetensors(file)).map(([name, { shape, bytes }]) =>
    [name, { shape, values: Array.from(new Float32Array(Uint8Array.from(bytes).buffer)) }]));
}

export function tensors_of(seed, size = 0.12) {
  const draw = numbers(seed);
  const matrix = (rows, columns, scale) => ({ shape: [rows, columns], values: Array.from({ length: rows * columns }, () => scale * draw.next().value) });
  const tensors = {};
  for (let layer = 0; layer < layers; ++layer) {
    const module = `base_model.model.model.layers.${layer}.self_attn.q_proj`;
    tensors[`${module}.lora_A.weight`] = matrix(rank, width, 0.08);
    tensors[`${module}.lora_B.weight`] = matrix(width, rank, size);
    const down = `base_model.model.model.layers.${layer}.mlp.down_proj`;
    tensors[`${down}.lora_A.weight`] = matrix(rank, 1536, 0.05);
    tensors[`${down}.lora_B.weight`] = matrix(width, rank, size / 2);
  }
  return tensors;
}

export const config = { peft_type: "LORA", r: rank, lora_alpha: 2 * rank, target_modules: ["q_proj", "down_proj"] };

export function write_adapter(folder, seed, size) {
  mkdirSync(folder, { recursive: true });
  writeFileSync(path.join(folder, "adapter_config.json"), JSON.stringify(config));
  writeFileSync(path.join(folder, "adapter_model.safetensors"), safetensors(tensors_of(seed, size)));
  return folder;
}

// A norm's weights, or a matrix.
export function whole(shape, seed) {
  const draw = numbers(seed);
  const count = shape.reduce((all, size) => all * size, 1);
  return { shape, values: Array.from({ length: count }, () => shape.length > 1 ? 0.1 * draw.next().value : 1 + draw.next().value) };
}

// An adapter of such alone.
export function write_whole(folder, tensors) {
  mkdirSync(folder, { recursive: true });
  writeFileSync(path.join(folder, "adapter_config.json"), JSON.stringify({ ...config, modules_to_save: ["norm", "k_proj"] }));
  writeFileSync(path.join(folder, "adapter_model.safetensors"), safetensors(tensors));
}

// Rows of the first 300 tokens, in the embedding, which is the head as well.
export function write_rows(folder, seed) {
  const tokens = Array.from({ length: 300 }, (_, token) => token);
  mkdirSync(folder, { recursive: true });
  writeFileSync(path.join(folder, "adapter_config.json"), JSON.stringify({ ...config, target_modules: [], trainable_token_indices: tokens }));
  writeFileSync(path.join(folder, "adapter_model.safetensors"),
    safetensors({ "base_model.model.model.embed_tokens.token_adapter.trainable_tokens_delta": whole([tokens.length, width], seed) }));
}

// The same with magnitudes.
export function write_dora(folder, seed = 1) {
  const tensors = tensors_of(seed);
  for (let layer = 0; layer < layers; ++layer)
    for (const module of ["self_attn.q_proj", "mlp.down_proj"]) {
      const draw = numbers(layer);
      tensors[`base_model.model.model.layers.${layer}.${module}.lora_magnitude_vector`] = { shape: [width], values: Array.from({ length: width }, () => 1 + draw.next().value / 2) };
    }
  mkdirSync(folder, { recursive: true });
  writeFileSync(path.join(folder, "adapter_config.json"), JSON.stringify({ ...config, use_dora: true }));
  writeFileSync(path.join(folder, "adapter_model.safetensors"), safetensors(tensors));
}

// A GGUF adapter of the matrices of F32 that have a pair "<name>.lora_a" and "<name>.lora_b", as llama.cpp's converter writes it.
export function gguf_adapter(tensors, alpha) {
  const u32 = (value) => { const bytes = Buffer.alloc(4); bytes.writeUInt32LE(value); return bytes; };
  const u64 = (value) => { const bytes = Buffer.alloc(8); bytes.writeBigUInt64LE(BigInt(value)); return bytes; };
  const text = (value) => Buffer.concat([u64(Buffer.byteLength(value)), Buffer.from(value)]);
  const keys = Object.entries({ "general.type": "adapter", "general.architecture": "llama", "adapter.type": "lora" })
    .flatMap(([key, value]) => [text(key), u32(8), text(value)]);
  const number = Buffer.alloc(4);
  number.writeFloatLE(alpha);
  const infos = [], parts = [];
  let offset = 0;
  for (const [name, { shape, values }] of Object.entries(tensors)) {
    const bytes = Buffer.from(Float32Array.from(values).buffer);
    infos.push(text(name), u32(shape.length), ...[...shape].reverse().map(u64), u32(0), u64(offset));
    const padded = Buffer.concat([bytes, Buffer.alloc((32 - bytes.length % 32) % 32)]);
    parts.push(padded);
    offset += padded.length;
  }
  const head = Buffer.concat([Buffer.from("GGUF"), u32(3), u64(Object.keys(tensors).length), u64(4), ...keys,
    text("adapter.lora.alpha"), u32(6), number, ...infos]);
  return Buffer.concat([head, Buffer.alloc((32 - head.length % 32) % 32), ...parts]);
}

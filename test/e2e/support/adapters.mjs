// Adapters of random numbers for the embedded model, as PEFT writes them.
import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";

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

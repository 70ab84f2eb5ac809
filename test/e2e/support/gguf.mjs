// Writes GGUF files, of what safetensors files hold.
import { readFileSync, writeFileSync } from "node:fs";

const types = { u32: 4, i32: 5, f32: 6, bool: 7, string: 8, array: 9 };

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
  items(type, list, write) {
    this.u32(types.array);
    this.u32(type);
    this.u64(list.length);
    list.forEach(write);
  }
  value(value) {
    if (value instanceof Int32Array) {
      this.items(types.i32, value, (each) => this.number("writeInt32LE", each, 4));
    } else if (Array.isArray(value) && typeof value[0] === "string") {
      this.items(types.string, value, (each) => this.string(each));
    } else if (Array.isArray(value)) {
      this.items(types.f32, value, (each) => this.number("writeFloatLE", each, 4));
    } else if (typeof value === "boolean") {
      this.u32(types.bool);
      this.number("writeUInt8", value ? 1 : 0, 1);
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

// Numbers of arrays are float32, but for an Int32Array's. tensors: { name: { shape, bytes } }, the contiguous dimension last, in bf16.
export function write_gguf(file, metadata, tensors) {
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

export function read_safetensors(file) {
  const all = readFileSync(file);
  const size = Number(all.readBigUInt64LE(0));
  const { __metadata__, ...tensors } = JSON.parse(all.subarray(8, 8 + size).toString());
  return Object.fromEntries(Object.entries(tensors).map(([name, { shape, data_offsets: [begin, end] }]) =>
    [name, { shape, bytes: all.subarray(8 + size + begin, 8 + size + end) }]));
}

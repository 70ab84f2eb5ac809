// A tiny random model, with recurrent layers unless another is named, as a folder that a server can load: what the tests of models have, and a tokenizer of letters.
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { sourceFolder, temporaryFolder } from "./processes.mjs";

const words = 120;

// The weights with a head for tokens further on, as Qwen's are named: a copy of the last layer that attends, and random parts of its own.
function withHead(weights) {
  const length = Number(weights.readBigUInt64LE());
  const header = JSON.parse(weights.subarray(8, 8 + length).toString());
  const whole = weights.subarray(8 + length);
  const parts = [whole];
  let end = whole.length;
  const add = (name, dtype, shape, bytes) => {
    header[name] = { dtype, shape, data_offsets: [end, end + bytes.length] };
    parts.push(bytes);
    end += bytes.length;
  };
  const copied = Object.keys(header).filter((name) => name.endsWith("self_attn.o_proj.weight")).sort().at(-1).replace(/self_attn.*/, "");
  for (const [name, { dtype, shape, data_offsets }] of Object.entries(header))
    if (name.startsWith(copied)) add(name.replace(copied, "mtp.layers.0."), dtype, shape, whole.subarray(...data_offsets));
  let state = 7;
  const random = (count) => Buffer.from(Float32Array.from({ length: count }, () => {
    state = (state * 48271) % 2147483647;
    return state / 2147483647 - 0.5;
  }).buffer);
  const [width] = header["model.norm.weight"].shape;
  add("mtp.fc.weight", "F32", [width, 2 * width], random(2 * width * width));
  for (const norm of ["mtp.pre_fc_norm_embedding", "mtp.pre_fc_norm_hidden", "mtp.norm"]) add(`${norm}.weight`, "F32", [width], random(width));
  let text = JSON.stringify(header);
  text = text.padEnd(Math.ceil(text.length / 8) * 8);
  const size = Buffer.alloc(8);
  size.writeBigUInt64LE(BigInt(text.length));
  return Buffer.concat([size, Buffer.from(text), ...parts]);
}

// head: of Qwen's. template: of its chats; none otherwise.
export function recurrentModel(t, name = "lfm2", { head = false, template } = {}) {
  const folder = path.join(temporaryFolder(t), name);
  mkdirSync(folder);
  const source = path.join(sourceFolder, "test/model/reference/folders", name);
  for (const file of ["config.json", "model.safetensors"]) copyFileSync(path.join(source, file), path.join(folder, file));
  if (head) writeFileSync(path.join(folder, "model.safetensors"), withHead(readFileSync(path.join(source, "model.safetensors"))));
  if (template !== undefined) writeFileSync(path.join(folder, "chat_template.jinja"), template);
  const tokens = ["<s>", "</s>", "<pad>", "Ġ", "Ċ"];
  for (let code = 0x21; code < 0x7f; ++code) tokens.push(String.fromCharCode(code));
  while (tokens.length < words) tokens.push(`<unused${tokens.length}>`);
  const special = ["<s>", "</s>", "<pad>"].map((content, id) => ({
    id, content, single_word: false, lstrip: false, rstrip: false, normalized: false, special: true }));
  const level = { type: "ByteLevel", add_prefix_space: false, trim_offsets: true, use_regex: true };
  writeFileSync(path.join(folder, "tokenizer.json"), JSON.stringify({
    version: "1.0", truncation: null, padding: null, added_tokens: special, normalizer: null, pre_tokenizer: level, post_processor: null, decoder: level,
    model: { type: "BPE", dropout: null, unk_token: null, fuse_unk: false, byte_fallback: false, ignore_merges: false,
      vocab: Object.fromEntries(tokens.map((token, id) => [token, id])), merges: [] } }));
  writeFileSync(path.join(folder, "tokenizer_config.json"), JSON.stringify({ bos_token: "<s>", eos_token: "</s>", pad_token: "<pad>" }));
  return folder;
}

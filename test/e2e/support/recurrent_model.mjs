// A tiny random model with recurrent layers, as a folder that a server can load: what the tests of models have, and a tokenizer of letters.
import { copyFileSync, mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { sourceFolder, temporaryFolder } from "./processes.mjs";

const words = 120;

export function recurrentModel(t, name = "lfm2") {
  const folder = path.join(temporaryFolder(t), name);
  mkdirSync(folder);
  const source = path.join(sourceFolder, "test/model/reference/folders", name);
  for (const file of ["config.json", "model.safetensors"]) copyFileSync(path.join(source, file), path.join(folder, file));
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

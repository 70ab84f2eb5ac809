#!/usr/bin/env node
// Writes the folders here as GGUF files by `braid convert`, and holds the greedy tokens that llama.cpp gives with them against the references.
//
//     npm install --prefix PLACE --ignore-scripts node-llama-cpp@3.22.1
//     node in_llama_cpp.mjs BRAID PLACE/node_modules/node-llama-cpp [FOLDER...]        (names of folders/, or paths; without any, all)
//
// Weights, keys and values are float32 in both. What llama.cpp leaves out of a family is told in `leavesOut`: where a configuration says the
// same without it, the tokens are those of `braid serve` on that one. Ends with 1 where tokens differ, and where they agree although a
// difference is named.
import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const self = fileURLToPath(import.meta.url);
const folders = path.join(path.dirname(self), "folders");

// `instead`: of the configuration; `why` alone: no file can say it to llama.cpp.
const windows = { why: "has no windows for this architecture", instead: { sliding_window: null } };
const leavesOut = {
  "baichuan": { why: "takes what a Baichuan is from having 32 or 40 layers" },
  "bamba": { why: "norms the values of a state by groups" },
  "cohere": { why: "reads norms of queries and keys of models of 64 layers and more only" },
  "cohere-untied": { why: "has the embedding as output" },
  "cohere2": { why: "has heads of the width over their number only" },
  "deepseek-v2": {
    why: "chooses groups of experts by their best two, as V3 does, and stretches scores unless mscale_all_dim is there",
    instead: {
      n_group: 1, topk_group: 1, topk_method: "greedy",
      rope_parameters: {
        rope_type: "yarn", rope_theta: 10000.0, factor: 4.0, original_max_position_embeddings: 64, beta_fast: 32.0, beta_slow: 1.0,
        mscale: 0.707, mscale_all_dim: 0.707,
      },
    },
  },
  "deepseek-v2-lite": { why: "takes queries that are not narrowed from having 27 layers" },
  "deepseek-v3-biased": { why: "has no biases here" },
  "dots1": { why: "has as many key heads as heads here" },
  "exaone4": { why: "has windows in models of 64 layers only", instead: { sliding_window: null } },
  "flex-olmo": { why: "does not know the family" },
  "gemma3": { why: "scales scores by the size of a head", instead: { query_pre_attn_scalar: 16 } },
  "gemma3-wrapped": { why: "scales scores by the size of a head", instead: { text_config: { query_pre_attn_scalar: 16 } } },
  "gemma3n": { why: "has the published sizes only" },
  "glm": { why: "has heads of the width over their number only" },
  "gpt-oss": { why: "rounds the ends of YaRN's ramp", instead: { rope_parameters: { truncate: true } } },
  "gpt-oss-mxfp4": { why: "rounds the ends of YaRN's ramp", instead: { rope_parameters: { truncate: true } } },
  "gptj": { why: "does not know the family" },
  "hunyuan-moe-lists": { why: "has one number of experts for all layers" },
  "lfm2-biased": { why: "has no biases here" },
  "lfm2-moe": { why: "does not scale what experts give", instead: { routed_scaling_factor: 1.0 } },
  "mamba2": { why: "norms the values of a state by groups" },
  "minicpm3": { why: "has keys and values of latents in one matrix, of which braid writes two" },
  "ministral": windows,
  "mistral": windows,
  "mixtral": windows,
  "olmo2-biased": { why: "has no biases here" },
  "olmoe": { why: "has as many key heads as heads here" },
  "phimoe": { why: "chooses experts by their scores alone" },
  "qwen2-moe": { why: "has experts in all layers" },
  "phi3": windows,
  "phi3-longrope-crossed": { why: "chooses factors by the context's size, not by a sequence's length" },
  "qwen2-window": windows,
  "qwen3-moe": { why: "has experts in all layers" },
  "qwen3-next": { why: "has values of the width of keys only" },
  "qwen3.5": { why: "has values of the width of keys only" },
  "smollm3": { why: "leaves the rotation out of each fourth layer", instead: { no_rope_layers: [1, 1, 1] } },
  "starcoder2": windows,
};

// Of 120 tokens. llama.cpp looks for some by name in a Phi-3; elsewhere none has a name by which it would end an answer.
function tokenizer(name) {
  const bytes = [...Array(94).keys()].map((i) => 33 + i).concat([...Array(12).keys()].map((i) => 161 + i));
  const special = name.startsWith("phi3") ? ["<s>", "</s>", "<unk>", "<|endoftext|>"] : ["<0>", "<1>", "<2>", "<3>"];
  const tokens = [...special, "Ġ", "Ċ", ...bytes.map((byte) => String.fromCharCode(byte))];
  while (tokens.length < 120) tokens.push(String.fromCharCode(174 + tokens.length));
  return {
    version: "1.0", truncation: null, padding: null, normalizer: null, post_processor: null,
    added_tokens: special.map((content, id) => ({ id, content, single_word: false, lstrip: false, rstrip: false, normalized: false, special: true })),
    pre_tokenizer: { type: "ByteLevel", add_prefix_space: false, trim_offsets: true, use_regex: true },
    decoder: { type: "ByteLevel", add_prefix_space: true, trim_offsets: true, use_regex: true },
    model: {
      type: "BPE", dropout: null, unk_token: null, continuing_subword_prefix: "", end_of_word_suffix: "", fuse_unk: false,
      byte_fallback: false, vocab: Object.fromEntries(tokens.map((token, id) => [token, id])), merges: [],
    },
  };
}

function merged(config, changes) {
  const out = { ...config };
  for (const [key, value] of Object.entries(changes)) {
    const isPart = value !== null && typeof value === "object" && !Array.isArray(value);
    out[key] = isPart ? merged(config[key] ?? {}, value) : value;
  }
  return out;
}

// The folder with another configuration, and a tokenizer where it has none.
function lay(source, place, instead) {
  mkdirSync(place);
  for (const name of readdirSync(source)) if (name !== "config.json") symlinkSync(path.join(source, name), path.join(place, name));
  const config = JSON.parse(readFileSync(path.join(source, "config.json"), "utf8"));
  // No token ends an answer, as none ends a reference.
  writeFileSync(path.join(place, "config.json"), JSON.stringify(merged(config, { eos_token_id: null, ...instead })));
  if (!existsSync(path.join(place, "tokenizer.json"))) writeFileSync(path.join(place, "tokenizer.json"), JSON.stringify(tokenizer(path.basename(place))));
}

async function tokensHere(braid, folder, prompt, count) {
  const server = spawn(braid, ["serve", folder, "--port", "0", "--dtype", "f32", "--kv-dtype", "f32", "--threads", "1"],
    { stdio: ["ignore", "pipe", "pipe"] });
  let errors = "";
  server.stderr.on("data", (data) => { errors += data; });
  try {
    const address = await new Promise((resolve, reject) => {
      let listening;
      createInterface({ input: server.stdout }).on("line", (line) => {
        listening ??= /listening on (\S+)/.exec(line)?.[1];
        if (line.startsWith("ready")) resolve(listening);
      });
      server.on("exit", () => reject(new Error(errors.trim())));
    });
    const answer = await fetch(new URL("/completion", address), {
      method: "POST",
      body: JSON.stringify({ prompt, n_predict: count, temperature: 0, return_tokens: true }),
      headers: { "content-type": "application/json" },
    });
    const body = await answer.json();
    if (!answer.ok) throw new Error(JSON.stringify(body));
    return body.tokens;
  } finally {
    server.kill("SIGKILL");
  }
}

// In a process of its own, which an assertion of llama.cpp ends.
function tokensThere(file, reference, library) {
  const run = spawnSync(process.execPath, [self, "--tokens", file, reference, library], { encoding: "utf8", timeout: 120_000 });
  const answer = run.stdout.trim().split("\n").at(-1) ?? "";
  if (run.status === 0) return JSON.parse(answer);
  const said = (answer || run.stderr).trim().split("\n").filter((line) => /error|assert|fatal|expected|unknown|unsupported/i.test(line));
  throw new Error(said[0] ?? `ended with ${run.status ?? run.signal}`);
}

async function printTokens(file, referenceFile, library) {
  const { getLlama, LlamaLogLevel } = await import(path.join(path.resolve(library), "dist/index.js"));
  const { input_ids: prompt, greedy } = JSON.parse(readFileSync(referenceFile, "utf8"));
  const messages = [];
  try {
    const llama = await getLlama({ gpu: false, build: "never", logLevel: LlamaLogLevel.warn, logger: (level, text) => messages.push(text) });
    const model = await llama.loadModel({ modelPath: file, gpuLayers: 0 });
    const context = await model.createContext({
      contextSize: 256, batchSize: 256, threads: 1, flashAttention: false, ignoreMemorySafetyChecks: true,
      experimentalKvCacheKeyType: "F32", experimentalKvCacheValueType: "F32",
    });
    const tokens = [];
    for await (const token of context.getSequence().evaluate(prompt, { temperature: 0, yieldEogToken: true })) {
      tokens.push(token);
      if (tokens.length === greedy.length) break;
    }
    console.log(JSON.stringify(tokens));
    process.exit(0);
  } catch (error) {
    console.log(messages.find((text) => text.includes("error loading model")) ?? error.message);
    process.exit(1);
  }
}

// What is to be said of a folder, and whether it is a fault.
async function compare(source, place, braid, library) {
  const name = path.basename(source);
  const { why, instead } = leavesOut[name] ?? {};
  const referenceFile = path.join(source, "reference.json");
  const reference = JSON.parse(readFileSync(referenceFile, "utf8"));
  const folder = path.join(place, name);
  lay(source, folder, instead ?? {});
  try {
    const converted = spawnSync(braid, ["convert", "--type", "f32", folder, `${folder}.gguf`], { encoding: "utf8" });
    if (converted.status !== 0) throw new Error(converted.stderr.trim());
    const here = instead === undefined ? reference.greedy : await tokensHere(braid, folder, reference.input_ids, reference.greedy.length);
    const there = tokensThere(`${folder}.gguf`, referenceFile, library);
    const same = here.findIndex((token, i) => token !== there[i]);
    if (same === -1 && instead === undefined && why !== undefined) return { fault: true, said: `all ${here.length} equal, although it ${why}` };
    if (same === -1) return { fault: false, said: `all ${here.length} equal${instead === undefined ? "" : `, without what it leaves out: it ${why}`}` };
    const said = `${same} of ${here.length} equal`;
    return why !== undefined && instead === undefined ? { fault: false, said: `${said}: it ${why}` } : { fault: true, said };
  } catch (error) {
    const known = why !== undefined && instead === undefined;
    return { fault: !known, said: known ? `not read: it ${why}` : error.message };
  }
}

async function main(braid, library, names) {
  if (library === undefined) throw new Error("usage: in_llama_cpp.mjs BRAID NODE_LLAMA_CPP [FOLDER...]");
  const place = mkdtempSync(path.join(tmpdir(), "braid-converted-"));
  let faults = 0;
  try {
    for (const name of names.length > 0 ? names : readdirSync(folders)) {
      const source = name.includes("/") ? path.resolve(name) : path.join(folders, name);
      const { fault, said } = await compare(source, place, braid, library);
      faults += fault ? 1 : 0;
      console.log(`${fault ? "FAULT " : "      "}${path.basename(source).padEnd(24)} ${said}`);
    }
  } finally {
    rmSync(place, { recursive: true, force: true });
  }
  console.log(`${faults} faults`);
  return faults === 0 ? 0 : 1;
}

const [first, ...others] = process.argv.slice(2);
if (first === "--tokens") await printTokens(...others);
else process.exit(await main(first, others[0], others.slice(1)));

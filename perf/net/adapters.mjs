// What adapters and rollouts cost, with the demo model: the processor time of 32 plain answers by that of as many over 8 adapters of rank 16 in
// all matrices, with one of them, and as rollouts. Rounds take turns in who begins; medians of the rounds' ratios.
//
//     BRAID_BINARY=build/release/braid node perf/net/adapters.mjs [ROUNDS [options of braid serve]]
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { post } from "../../test/e2e/support/client.mjs";
import { serve, temporaryFolder } from "../../test/e2e/support/processes.mjs";

const cleanups = [];
const suite = { after: (cleanup) => cleanups.push(cleanup) };
const [rounds = "9", ...options] = process.argv.slice(2);
const kAdapters = 8, kAnswers = 32, kTokens = 96, kRank = 16;
const kModules = { q_proj: [512, 512], k_proj: [512, 256], v_proj: [512, 256], o_proj: [512, 512], gate_proj: [512, 1536], up_proj: [512, 1536], down_proj: [1536, 512] };

// A file of tensors of floats, of which BF16 keeps the first half.
function safetensors(tensors, dtype) {
  const header = {}, parts = [];
  let offset = 0;
  for (const [name, { shape, values }] of Object.entries(tensors)) {
    const halves = new Uint16Array(Float32Array.from(values).buffer);
    const bytes = Buffer.from((dtype === "BF16" ? halves.filter((_, i) => i % 2) : halves).buffer);
    header[name] = { dtype, shape, data_offsets: [offset, offset += bytes.length] };
    parts.push(bytes);
  }
  const text = Buffer.from(JSON.stringify(header)), length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(text.length));
  return Buffer.concat([length, text, ...parts]);
}

const folder = temporaryFolder(suite);
function write_adapter(name, seed, dtype) {
  let state = seed;
  const matrix = (rows, columns) => ({ shape: [rows, columns], values: Array.from({ length: rows * columns }, () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return 0.02 * (state / 2 ** 31 - 1);
  }) });
  const tensors = {};
  for (let layer = 0; layer < 8; ++layer)
    for (const [module, [inputs, outputs]] of Object.entries(kModules)) {
      const prefix = `base_model.model.model.layers.${layer}.${/gate|up|down/.test(module) ? "mlp" : "self_attn"}.${module}`;
      tensors[`${prefix}.lora_A.weight`] = matrix(kRank, inputs);
      tensors[`${prefix}.lora_B.weight`] = matrix(outputs, kRank);
    }
  const place = path.join(folder, name);
  mkdirSync(place);
  writeFileSync(path.join(place, "adapter_config.json"), JSON.stringify({ peft_type: "LORA", r: kRank, lora_alpha: kRank, target_modules: Object.keys(kModules) }));
  writeFileSync(path.join(place, "adapter_model.safetensors"), safetensors(tensors, dtype));
  return ["--lora", `${name}=${place}`];
}
const names_of = (dtype) => [...Array(kAdapters).keys()].map((i) => `${dtype}-${i}`);
const loras = ["F32", "BF16"].flatMap((dtype) => names_of(dtype).flatMap((name, i) => write_adapter(name, i + 1, dtype)));
const server = await serve(suite, [...loras, "--threads", "1", "--max-batch", String(kAnswers), "--kv-memory", "256M", "--speculate", "off", "--prefix-cache", "off", ...options]);

const processor_seconds = () => {
  const fields = readFileSync(`/proc/${server.child.pid}/stat`, "utf8").split(") ")[1].split(" ");
  return (Number(fields[11]) + Number(fields[12])) / 100;
};
const median = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];

async function answers(requests) {
  const begin = processor_seconds();
  await Promise.all(requests.map(async ([route, body]) => {
    const response = await post(server.url + route, body);
    const text = await response.text();
    if (response.status !== 200) throw new Error(text);
  }));
  return processor_seconds() - begin;
}
const wish = (i, more) => ({ prompt: `Story ${i}: once upon a time`, max_tokens: kTokens, temperature: 0.8, seed: i, ignore_eos: true, ...more });
const each = (make) => [...Array(kAnswers).keys()].map(make);
const plain = () => answers(each((i) => ["/v1/completions", wish(i, {})]));
const adapted = (model_of) => () => answers(each((i) => ["/v1/completions", wish(i, { model: model_of(i) })]));
const kinds = {
  "8 adapters in F32": adapted((i) => names_of("F32")[i % kAdapters]),
  "8 adapters in BF16": adapted((i) => names_of("BF16")[i % kAdapters]),
  "one adapter in F32": adapted(() => "F32-0"),
  "rollouts": () => answers(each((i) => ["/v1/rl/rollout", wish(i, {})])),
};
await plain();
for (const [what, run] of Object.entries(kinds)) {
  await run();
  const ratios = [];
  for (let round = 0; round < Number(rounds); ++round) {
    const order = round % 2 ? [plain, run] : [run, plain];
    const seconds = new Map();
    for (const one of order) seconds.set(one, await one());
    ratios.push(seconds.get(plain) / seconds.get(run));
  }
  console.log(`${what}: ${median(ratios).toFixed(3)} of the plain rate (${ratios.map((ratio) => ratio.toFixed(2)).join(" ")})`);
}
server.child.kill("SIGKILL");
for (const cleanup of cleanups) await cleanup();

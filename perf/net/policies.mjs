// What newer weights and small networks cost beside a language model's streams: the longest gaps between a stream's tokens while the model gets
// newer weights, beside those of as long a time without; and how long `/v1/rl/act` takes for 32 observations of a 2x256 MLP.
//
//     BRAID_BINARY=build/release/braid node perf/net/policies.mjs MODEL.gguf [STREAMS [UPDATES [STEPS [options of braid serve]]]]
import { closeSync, mkdirSync, openSync, writeFileSync, writeSync } from "node:fs";
import path from "node:path";
import { post } from "../../test/e2e/support/client.mjs";
import { serve, temporaryFolder } from "../../test/e2e/support/processes.mjs";
import { keep_streams } from "./kept_streams.mjs";

const cleanups = [];
const suite = { after: (cleanup) => cleanups.push(cleanup) };
const [model, streams = "8", updates = "4", steps = "1000", ...options] = process.argv.slice(2);
const folder = temporaryFolder(suite);
const sorted = (values) => values.toSorted((a, b) => a - b);
const at = (values, share) => sorted(values)[Math.min(values.length - 1, Math.floor(values.length * share))];
const told = (values) => `p50 ${at(values, 0.5).toFixed(2)}, p99 ${at(values, 0.99).toFixed(2)}, most ${Math.max(...values).toFixed(2)} ms`;

// A file of tensors of BF16 within 0.03, as large as may be: parts of the same random megabyte.
const noise = new Uint16Array(1 << 19).map((_, i) => (Math.imul(i + 1, 2654435761) >>> 16 & 0x807f) | 0x3c80);
function write_tensors(file, tensors) {
  const header = { __metadata__: { format: "pt" } };
  let offset = 0;
  for (const { name, shape } of tensors) header[name] = { dtype: "BF16", shape, data_offsets: [offset, offset += 2 * shape.reduce((a, b) => a * b)] };
  const text = Buffer.from(JSON.stringify(header)), length = Buffer.alloc(8), bytes = Buffer.from(noise.buffer);
  length.writeBigUInt64LE(BigInt(text.length));
  const out = openSync(file, "w");
  writeSync(out, Buffer.concat([length, text]));
  for (let left = offset; left > 0; left -= bytes.length) writeSync(out, bytes.subarray(0, Math.min(left, bytes.length)));
  closeSync(out);
  return offset;
}
const network = path.join(folder, "mlp");
mkdirSync(network);
const sizes = [64, 256, 256], heads = { logits: 8, value: 1 };
const linear = (name, input) => ({ name, type: "linear", input, weights: `${name}.` });
writeFileSync(path.join(network, "config.json"), JSON.stringify({
  model_type: "braid-net", inputs: { x: { shape: ["batch", sizes[0]] } },
  layers: [linear("in", "x"), { name: "a", type: "tanh" }, linear("hidden", "a"), { name: "b", type: "tanh" }, ...Object.keys(heads).map((name) => linear(name, "b"))],
  outputs: Object.fromEntries(Object.keys(heads).map((name) => [name, name])),
  policy: { distribution: "categorical", logits: "logits", value: "value" },
}));
write_tensors(path.join(network, "model.safetensors"), [["in", sizes[1], sizes[0]], ["hidden", sizes[2], sizes[1]], ...Object.entries(heads).map(([name, outputs]) => [name, outputs, sizes[2]])]
  .flatMap(([name, outputs, inputs]) => [{ name: `${name}.weight`, shape: [outputs, inputs] }, { name: `${name}.bias`, shape: [outputs] }]));

const server = await serve(suite, [model, network, "--weights-dir", folder, "--max-batch", "32", "--kv-memory", "1G", "--speculate", "off", "--prefix-cache", "off", ...options]);
const { data: [{ id }] } = await (await fetch(`${server.url}/v1/models`)).json();
const { tensors } = await (await post(`${server.url}/weight_checker`, { model: id })).json();
const files = { "one layer": tensors.filter(({ name }) => name.startsWith("blk.3.")), "all of it": tensors };
const bytes = Object.fromEntries(Object.entries(files).map(([what, of]) => [what, write_tensors(path.join(folder, `${what}.safetensors`), of)]));
const { gaps, end_streams } = keep_streams(server.url, { model: id, max_tokens: 64 }, Number(streams));
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const since = (begin, end = performance.now()) => gaps.filter(([when, gap]) => when >= begin && when - gap <= end).map(([, gap]) => gap);
await sleep(3000);

for (const [what, mode, count] of [["one layer", "finish", Number(updates)], ["all of it", "finish", Math.ceil(Number(updates) / 2)]]) {
  const with_update = [], without = [], took = [];
  for (let i = 0; i < count; ++i) {
    for (const update of i % 2 ? [true, false] : [false, true]) {
      const begin = performance.now();
      if (update) {
        const answer = await (await post(`${server.url}/update_weights`, { model: id, path: `${what}.safetensors`, partial: true, mode })).json();
        if (answer.error) throw new Error(JSON.stringify(answer));
        took.push(performance.now() - begin);
        await sleep(500);
      } else await sleep((took.at(-1) ?? 1000) + 500);
      const found = since(begin);
      (update ? with_update : without).push(Math.max(...found));
    }
  }
  console.log(`${what}, ${mode} (${(bytes[what] / 2 ** 20).toFixed(0)} MiB), ${streams} streams: the longest gap, without an update ${told(without)}; with one ${told(with_update)}; updates took ${told(took)}`);
}

const observations = Array.from({ length: 32 }, (_, row) => Array.from({ length: sizes[0] }, (_, i) => Math.cos(row * 64 + i)));
for (const beside of [true, false]) {
  if (!beside) await end_streams();
  const took = [], from = performance.now();
  for (let i = 0; i < Number(steps); ++i) {
    const begin = performance.now();
    const response = await post(`${server.url}/v1/rl/act`, { model_id: "mlp", observations, seed: i });
    const text = await response.text();
    if (response.status !== 200) throw new Error(text);
    took.push(performance.now() - begin);
  }
  console.log(`/v1/rl/act, ${beside ? `beside ${streams} streams (gaps: ${told(since(from))})` : "nothing beside it"}: ${told(took)}`);
}
server.child.kill("SIGKILL");
for (const cleanup of cleanups) await cleanup();

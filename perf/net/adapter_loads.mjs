// What loading adapters costs others: the gaps of streams of the base while adapters of 20 MB are loaded and unloaded again and again, beside those
// of as long a time without; how long a load takes; and what of it, and of an unload, the thread of the connections does.
//
//     BRAID_BINARY=build/release/braid node perf/net/adapter_loads.mjs MODEL.gguf [ROUNDS [STREAMS [MB [options of braid serve]]]]
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { gguf_adapter, safetensors } from "../../test/e2e/support/adapters.mjs";
import { post } from "../../test/e2e/support/client.mjs";
import { serve, temporaryFolder } from "../../test/e2e/support/processes.mjs";
import { keep_streams } from "./kept_streams.mjs";

const cleanups = [];
const suite = { after: (cleanup) => cleanups.push(cleanup) };
const [model, rounds = "3", streams = "8", megabytes = "20", ...options] = process.argv.slice(2);
const folder = temporaryFolder(suite);
const server = await serve(suite, [model, "--adapter-dir", folder, "--max-batch", "32", "--kv-memory", "256M", "--speculate", "off", "--prefix-cache", "off", ...options]);
const { data: [{ id }] } = await (await fetch(`${server.url}/v1/models`)).json();
const { tensors } = await (await post(`${server.url}/weight_checker`, { model: id })).json();

const kModules = { attn_q: "self_attn.q_proj", attn_k: "self_attn.k_proj", attn_v: "self_attn.v_proj", attn_output: "self_attn.o_proj",
  ffn_gate: "mlp.gate_proj", ffn_up: "mlp.up_proj", ffn_down: "mlp.down_proj" };
const matrices = tensors.flatMap(({ name, shape }) => {
  const [, layer, part] = /^blk\.(\d+)\.(\w+)\.weight$/.exec(name) ?? [];
  return kModules[part] ? [{ name, module: `base_model.model.model.layers.${layer}.${kModules[part]}`, outputs: shape[0], inputs: shape[1] }] : [];
});
const rank = Math.round(Number(megabytes) * 1e6 / 4 / matrices.reduce((all, { inputs, outputs }) => all + inputs + outputs, 0));
const numbers = Float32Array.from({ length: 1 << 16 }, (_, i) => 0.02 * ((Math.imul(i + 1, 2654435761) >>> 0) / 2 ** 31 - 1));
const values = (shape, most = 1) => ({ shape, values: Float32Array.from({ length: shape.reduce((a, b) => a * b) }, (_, i) => most * numbers[i % numbers.length]) });
function write_folder(name, config, contents) {
  mkdirSync(path.join(folder, name));
  writeFileSync(path.join(folder, name, "adapter_config.json"), JSON.stringify({ peft_type: "LORA", r: rank, lora_alpha: rank, target_modules: "all-linear", ...config }));
  writeFileSync(path.join(folder, name, "adapter_model.safetensors"), safetensors(contents));
}
const pairs = (down, up, of) => Object.fromEntries(matrices.flatMap((each) => [[`${of(each)}${down}`, values([rank, each.inputs])], [`${of(each)}${up}`, values([each.outputs, rank])]]));
const factors = pairs(".lora_A.weight", ".lora_B.weight", ({ module }) => module);
write_folder("LoRA", {}, factors);
write_folder("DoRA", { use_dora: true }, { ...factors, ...Object.fromEntries(matrices.map(({ module, outputs }) => [`${module}.lora_magnitude_vector`, values([outputs], 50)])) });
const whole = {};
let left = Number(megabytes) * 1e6;
for (const { module, inputs, outputs } of matrices)
  if (left >= 4 * inputs * outputs) left -= 4 * (whole[`${module}.weight`] = values([outputs, inputs])).values.length;
write_folder("modules_to_save", { target_modules: ["q_proj"], layers_to_transform: [0], modules_to_save: ["any"] }, whole);
writeFileSync(path.join(folder, "GGUF"), gguf_adapter(pairs(".lora_a", ".lora_b", ({ name }) => name), rank));

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const at = (sorted, share) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))].toFixed(1);
const told = (all) => { const sorted = all.toSorted((a, b) => a - b); return `p50 ${at(sorted, 0.5)}, p99 ${at(sorted, 0.99)}, p99.9 ${at(sorted, 0.999)}, most ${at(sorted, 1)} ms (${sorted.length})`; };
async function ask(route, body) {
  const begin = performance.now(), response = await post(server.url + route, body), text = await response.text();
  if (response.status !== 200) throw new Error(text);
  return performance.now() - begin;
}
const load = (kind) => ask("/v1/load_lora_adapter", { lora_name: kind, lora_path: kind });
const unload = (kind) => ask("/v1/unload_lora_adapter", { lora_name: kind });
// Milliseconds for which the thread of the connections has run: the process's first.
const loop_time = () => Number(readFileSync(`/proc/${server.child.pid}/task/${server.child.pid}/schedstat`, "utf8").split(" ")[0]) / 1e6;
const kinds = ["LoRA", "DoRA", "modules_to_save", "GGUF"];
for (const kind of kinds) {
  const loads = [], in_load = [], in_unload = [];
  for (let i = 0; i < 8; ++i) {
    const before = loop_time();
    loads.push(await load(kind));
    const between = loop_time();
    await unload(kind);
    in_load.push(between - before);
    in_unload.push(loop_time() - between);
  }
  console.log(`${kind}, ${megabytes} MB, no streams: loads ${told(loads)}; on the connections' thread: a load ${told(in_load)}, an unload ${told(in_unload)}`);
}

const { gaps, end_streams } = keep_streams(server.url, { model: id, max_tokens: 400 }, Number(streams));
await sleep(2000);
const kWindow = 4000;
for (const kind of kinds) {
  const found = { with: [], without: [] }, longest = { with: [], without: [] }, loads = [];
  for (let round = 0; round < Number(rounds); ++round) {
    for (const what of round % 2 ? ["with", "without"] : ["without", "with"]) {
      const begin = performance.now();
      while (what === "with" && performance.now() - begin < kWindow) {
        loads.push(await load(kind));
        await unload(kind);
      }
      await sleep(Math.max(0, kWindow - (performance.now() - begin)));
      const own = gaps.filter(([when]) => when >= begin).map(([, gap]) => gap);
      found[what].push(...own);
      longest[what].push(Math.max(...own));
    }
  }
  const step = Number(at(found.without.toSorted((a, b) => a - b), 0.5));
  const above = (all) => `${(100 * all.filter((gap) => gap > step + 10).length / all.length).toFixed(3)}% above a step and 10 ms`;
  for (const what of ["without", "with"]) console.log(`${kind}, ${streams} streams, ${what}: gaps ${told(found[what])}, ${above(found[what])}; longest ${longest[what].map((gap) => gap.toFixed(0)).join(" ")}`);
  console.log(`  loads ${told(loads)}`);
}
await end_streams();
server.child.kill("SIGKILL");
for (const cleanup of cleanups) await cleanup();

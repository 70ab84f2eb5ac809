// braid beside llama-server and ONNX Runtime on models that read whole texts, and a small network's latency; prints Markdown.
//
//     node perf/compare/vectors.mjs --braid build/release/braid --minilm MINILM.gguf --peer LLAMA_CPP/bin/llama-server
//     node perf/compare/vectors.mjs --braid build/release/braid --bert BERT.gguf --onnx BERT.onnx --runtime FOLDER/node_modules/onnxruntime-node
//     node perf/compare/vectors.mjs --braid build/release/braid --mlp FOLDER
//     node perf/compare/vectors.mjs --braid build/release/braid --int8 yes --minilm MINILM.gguf --bert BERT.gguf --mlp FOLDER
//
// The models are those of perf/model/make_random_encoder.py: minilm-l6, bert-base, mlp-64x256x256x8. All servers run on --threads 2, one asks
// after the other within a round (--rounds 5), and rounds take turns in who begins. Besides the time on the clock stands the processor time of
// the process, which other work on the machine does not change much; of both, medians, and the median of the rounds' ratios.
import { spawn, spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { createServer } from "node:net";
import { performance } from "node:perf_hooks";
import { parseArgs } from "node:util";

const { values: options } = parseArgs({ options: Object.fromEntries(
  ["braid", "peer", "minilm", "bert", "onnx", "runtime", "mlp", "threads", "rounds", "dtype", "int8", "worker"].map((name) => [name, { type: "string" }])) });
const threads = options.threads ?? "2";
const rounds = Number(options.rounds ?? 5);
const median = (list) => list.toSorted((a, b) => a - b)[list.length >> 1];
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// Seconds of processor time of a process so far.
function processor_time(pid) {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ").at(-1).split(" ");
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

const free_port = () => new Promise((resolve) => {
  const server = createServer().listen(0, "127.0.0.1", () => { const { port } = server.address(); server.close(() => resolve(port)); });
});

async function start(command, args, ready) {
  const port = await free_port();
  const child = spawn(command, [...args, "--port", String(port)], { stdio: "ignore" });
  for (let tries = 0; tries < 600; ++tries) {
    if (child.exitCode !== null) throw new Error(`${command} ended while starting`);
    const response = await fetch(`http://127.0.0.1:${port}${ready}`).catch(() => null);
    if (response?.ok) return { url: `http://127.0.0.1:${port}`, pid: child.pid, end: () => child.kill() };
    await sleep(200);
  }
  throw new Error(`${command} is not ready`);
}

const serve_braid = (models, more = []) =>
  start(options.braid, ["serve", ...models, "--threads", threads, ...(options.dtype ? ["--dtype", options.dtype] : []), ...more], "/readyz");

// A text of so many tokens, as a BERT's tokenizer frames it.
const text_of = (tokens, seed) => [101, ...Array.from({ length: tokens - 2 }, (_, i) => 1000 + ((i + 1) * 7919 + seed * 104729) % 20000), 102];

async function embed(server, input) {
  const response = await fetch(`${server.url}/v1/embeddings`, {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ model: "default", input, encoding_format: "float" }) });
  const answer = await response.json();
  if (answer.data?.length !== input.length) throw new Error(JSON.stringify(answer).slice(0, 300));
  return answer.data.map(({ embedding }) => embedding);
}

async function measured(pid, work) {
  const before = processor_time(pid);
  const begin = performance.now();
  await work();
  return { seconds: (performance.now() - begin) / 1000, processor: processor_time(pid) - before };
}

// Rounds of `contestants`: [name, pid, work]. Rows of medians and the ratios of the first to the others.
async function compare(title, contestants) {
  const results = contestants.map(() => []);
  for (const [, , work] of contestants) await work();  // warm
  for (let round = 0; round < rounds; ++round) {
    const order = contestants.map((_, i) => i);
    if (round % 2 === 1) order.reverse();
    for (const i of order) {
      results[i].push(await measured(contestants[i][1], contestants[i][2]));
      console.error(`${contestants[i][0]}: ${JSON.stringify(results[i].at(-1))}`);
    }
  }
  console.log(`\n${title}\n\n| | s | processor s | of braid's time | of braid's processor time |\n|---|---|---|---|---|`);
  contestants.forEach(([name], i) => {
    const ratio = (key) => median(results[i].map((result, round) => result[key] / results[0][round][key])).toFixed(2);
    const figure = (key) => median(results[i].map((result) => result[key])).toFixed(3);
    console.log(`| ${name} | ${figure("seconds")} | ${figure("processor")} | ${ratio("seconds")} | ${ratio("processor")} |`);
  });
}

function cosine(a, b) {
  const dot = (x, y) => x.reduce((sum, value, i) => sum + value * y[i], 0);
  return dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b));
}

// The same 512 texts of 64 tokens, by one request, from the same file.
async function many_texts() {
  const input = Array.from({ length: 512 }, (_, i) => text_of(64, i));
  const braid = await serve_braid([options.minilm]);
  const peer = await start(options.peer, ["-m", options.minilm, "--embeddings", "--pooling", "mean", "-t", threads, "-tb", threads,
    "-c", "8192", "-b", "8192", "-ub", "8192", "-np", "64"], "/health");
  const [ours, theirs] = [await embed(braid, input), await embed(peer, input)];
  console.log(`cosine of the vectors, the least: ${Math.min(...ours.map((vector, i) => cosine(vector, theirs[i]))).toFixed(6)}`);
  await compare("512 texts of 64 tokens, MiniLM-L6's shape", [["braid", braid.pid, () => embed(braid, input)], ["llama-server", peer.pid, () => embed(peer, input)]]);
  braid.end();
  peer.end();
}

// In a process of its own, so that its processor time is known: reads how often, says when that is done.
async function run_worker() {
  const { createRequire } = await import("node:module");
  const runtime = createRequire(import.meta.url)(options.runtime);
  const session = await runtime.InferenceSession.create(options.onnx, { intraOpNumThreads: Number(threads), interOpNumThreads: 1 });
  process.on("message", async ({ ids, times }) => {
    let vector;
    for (let i = 0; i < times; ++i) {
      const tensor = new runtime.Tensor("int64", BigInt64Array.from(ids.map(BigInt)), [1, ids.length]);
      vector = Object.values(await session.run({ ids: tensor }))[0].data;
    }
    process.send([...vector]);
  });
  process.send("ready");
}

async function one_text() {
  const { fork } = await import("node:child_process");
  const worker = fork(new URL(import.meta.url), ["--worker", "1", "--onnx", options.onnx, "--runtime", options.runtime, "--threads", threads]);
  const answer = () => new Promise((resolve) => worker.once("message", resolve));
  await answer();
  const ids = text_of(128, 0), times = 10;
  const theirs = async () => { worker.send({ ids, times }); return answer(); };
  const braid = await serve_braid([options.bert]);
  const ours = async () => { let vector; for (let i = 0; i < times; ++i) [vector] = await embed(braid, [ids]); return vector; };
  console.log(`cosine of the vectors: ${cosine(await ours(), await theirs()).toFixed(6)}`);
  await compare(`${times} times one text of 128 tokens, BERT-base's shape`, [["braid", braid.pid, ours], ["ONNX Runtime", worker.pid, theirs]]);
  braid.end();
  worker.kill();
}

// 32 observations a request, 1,000 requests a second, beside an idle decoder, the embedded one's file.
async function small_network() {
  const demo = new URL("../../models/demo-q8_0.gguf", import.meta.url).pathname;
  const braid = await serve_braid([options.mlp, demo, "--kv-memory", "64M"]);
  console.log("\nMLP of 2 x 256, 32 observations a request, 1,000 requests a second\n\n| p50 ms | p99 ms | processors | failed |\n|---|---|---|---|");
  for (let round = 0; round < rounds; ++round) {
    const report = `/tmp/braid_vectors_${process.pid}.json`;
    spawnSync(options.braid, ["bench", "serve", "--base-url", braid.url, "--endpoint", "predict", "--tensor", "x=32x64", "--request-rate", "1000",
      "--num-prompts", "5000", "--warmup", "200", "--quiet", "--json", report]);
    const figures = JSON.parse(readFileSync(report, "utf8"));
    console.log(`| ${figures.p50_e2el_ms.toFixed(3)} | ${figures.p99_e2el_ms.toFixed(3)} | ${figures.server_processors?.toFixed(3)} | ${figures.failed} |`);
  }
  braid.end();
}

const length_of = (vector) => Math.sqrt(vector.reduce((sum, value) => sum + value * value, 0));
const difference = (a, b) => length_of(a.map((value, i) => value - b[i])) / length_of(a);

async function predict(server, batch) {
  const x = Array.from({ length: batch }, (_, row) => Array.from({ length: 64 }, (_, i) => Math.sin(row * 64 + i)));
  const response = await fetch(`${server.url}/v1/predict`, { method: "POST", body: JSON.stringify({ inputs: { x } }) });
  return Object.values((await response.json()).outputs)[0].flat();
}

// --dtype int8 beside float32: by how much vectors differ, relative to their length, and both times.
async function rounded_weights() {
  const works = [["MiniLM-L6's shape, 64 texts of 64 tokens", options.minilm, (server) => embed(server, Array.from({ length: 64 }, (_, i) => text_of(64, i)))],
    ["BERT-base's shape, 4 texts of 128 tokens", options.bert, (server) => embed(server, Array.from({ length: 4 }, (_, i) => text_of(128, i)))],
    ["MLP of 2 x 256, 64 times 32 observations", options.mlp, async (server) => { let last; for (let i = 0; i < 64; ++i) last = [await predict(server, 32)]; return last; }]];
  for (const [title, model, work] of works.filter(([, model]) => model)) {
    const exact = await serve_braid([model]);
    const rounded = await serve_braid([model], ["--dtype", "int8"]);
    const [ours, theirs] = [await work(exact), await work(rounded)];
    console.log(`\nerror: mean ${(ours.reduce((sum, vector, i) => sum + difference(vector, theirs[i]), 0) / ours.length).toFixed(5)}, ` +
      `most ${Math.max(...ours.map((vector, i) => difference(vector, theirs[i]))).toFixed(5)}`);
    await compare(title, [["float32", exact.pid, () => work(exact)], ["int8", rounded.pid, () => work(rounded)]]);
    exact.end();
    rounded.end();
  }
}

if (options.worker) await run_worker();
else if (options.int8) await rounded_weights();
else {
  if (options.minilm && options.peer) await many_texts();
  if (options.bert && options.onnx) await one_text();
  if (options.mlp) await small_network();
}

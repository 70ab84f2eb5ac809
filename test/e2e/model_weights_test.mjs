// Newer weights of a language model that answers: requests end on the revision that they began with, new ones get the new one, nothing cached
// is mixed up, and what fails leaves the old one live.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { serve, temporaryFolder } from "./support/processes.mjs";
import { collect, events, eventually, frees_everything, metric, metrics, post, story } from "./support/client.mjs";
import { safetensors, write_adapter, write_dora } from "./support/adapters.mjs";

const width = 512;
const wish = { prompt: story, max_tokens: 24, temperature: 0, ignore_eos: true };

// Numbers of [low, low + 1] that a seed decides.
function numbers(seed, count, low) {
  let state = seed >>> 0;
  return Array.from({ length: count }, () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return low + state / 2 ** 32;
  });
}
const norm = (seed) => ({ "output_norm.weight": { shape: [width], values: numbers(seed, width, 0.5) } });

async function json(response, status = 200) {
  const answer = await response.json();
  assert.equal(response.status, status, JSON.stringify(answer));
  return answer;
}
async function ask(server, fields = {}) {
  const answer = await json(await post(`${server.url}/v1/completions`, { ...wish, ...fields }));
  return { text: answer.choices[0].text, model: answer.model, fingerprint: answer.system_fingerprint,
    cached: answer.usage.prompt_tokens_details?.cached_tokens ?? 0 };
}
const send = (server, tensors, metadata = {}) => fetch(`${server.url}/update_weights`, { method: "POST",
  headers: { "Content-Type": "application/octet-stream" }, body: safetensors(tensors, { partial: "true", ...metadata }) });
const update = async (server, tensors, metadata) => json(await send(server, tensors, metadata));

// A stream of which the first token has come, and what becomes of it.
async function open(server, fields = {}) {
  const reading = events(await post(`${server.url}/v1/completions`, { ...wish, max_tokens: 250, stream: true, ...fields }));
  const first = (await reading.next()).value;
  return async () => {
    const answer = { text: first.choices[0].text, error: null };
    for await (const event of reading) {
      if (event.error) answer.error = event.error;
      else if (event !== "[DONE]") answer.text += event.choices[0]?.text ?? "";
    }
    return answer;
  };
}

test("requests end on the weights that they began with, and nothing cached of others is found", async (t) => {
  const server = await serve(t, ["--kv-memory", "128M"]);
  const [{ revision: loaded }] = (await json(await fetch(`${server.url}/weight_info`))).data;
  const first = await ask(server);
  const alone = (await collect(await post(`${server.url}/v1/completions`, { ...wish, max_tokens: 250, stream: true }))).text;

  const stream = await open(server);
  const one = await update(server, norm(1));
  assert.notEqual(one.revision, loaded);
  const second = await ask(server);
  assert.notEqual(second.text, first.text);
  assert.equal(second.cached, 0, "what is cached is the older revision's");
  assert.equal(second.model, first.model);
  assert.equal(second.fingerprint, `${first.fingerprint}-${one.revision}`);
  assert.ok((await ask(server)).cached > 0);
  assert.equal((await stream()).text, alone, "a stream goes on beside the newer revision");

  const two = await update(server, norm(2));
  const third = await ask(server);
  assert.notEqual(third.text, second.text);
  assert.equal(third.cached, 0);
  const again = await update(server, norm(1));
  assert.equal(again.revision, one.revision, "the same tensors are the same revision");
  assert.equal((await ask(server)).text, second.text);
  assert.notEqual(two.revision, one.revision);

  const figures = await metrics(server.url);
  assert.equal(figures.get(`braid_weights_info{model="braid-demo",revision="${one.revision}"}`), 1);
  assert.equal(figures.get(`braid_weight_updates_total{model="braid-demo"}`), 3);
  await frees_everything(server.url);
});

test("a third revision waits until nobody uses the first, and an update may end who runs", async (t) => {
  const server = await serve(t, ["--kv-memory", "128M"]);
  const order = [];
  const oldest = await open(server, { max_tokens: 400 });
  await update(server, norm(1));
  const waiting = update(server, norm(2)).then((facts) => { order.push("update"); return facts; });
  const ended = oldest().then((answer) => { order.push("stream"); return answer; });
  assert.equal((await ended).error, null);
  assert.equal((await waiting).updates, 2);
  assert.deepEqual(order, ["stream", "update"]);

  const running = [await open(server, { max_tokens: 900 }), await open(server, { max_tokens: 900, seed: 2 })];
  const three = await update(server, norm(3), { mode: "abort", version: "third" });
  assert.equal(three.version, "third");
  for (const answer of await Promise.all(running.map((read) => read()))) assert.match(answer.error.message, /weights of the model were replaced/);
  assert.ok((await ask(server)).fingerprint.endsWith(three.revision));
  await frees_everything(server.url);
});

// What it has said so far is computed again, and what follows is the newer weights' own.
test("running answers may go on with newer weights, which they tell", async (t) => {
  const server = await serve(t, ["--kv-memory", "128M", "--speculate", "off"]);
  const long = { ...wish, max_tokens: 700, return_token_ids: true };
  const ask_ids = async (fields) => json(await post(`${server.url}/v1/completions`, { ...long, ...fields }));
  const first = await ask_ids({ max_tokens: 1 });
  const prompt = first.choices[0].prompt_token_ids ?? first.prompt_token_ids;
  const alone = await collect(await post(`${server.url}/v1/completions`, { ...long, stream: true }));

  const streams = [];
  for (let i = 0; i < 3; ++i) {
    const reading = events(await post(`${server.url}/v1/completions`, { ...long, stream: true, stream_options: { include_usage: true } }));
    streams.push({ reading, tokens: [...(await reading.next()).value.choices[0].token_ids] });
  }
  // Twice, one right after the other: nobody who runs is waited for.
  await update(server, norm(1), { mode: "keep" });
  const { revision } = await update(server, norm(2), { mode: "keep" });
  for (const stream of streams) {
    for await (const event of stream.reading) {
      if (event === "[DONE]") continue;
      assert.ok(!event.error, JSON.stringify(event));
      stream.tokens.push(...(event.choices[0]?.token_ids ?? []));
      stream.changes = event.usage?.weight_changes ?? stream.changes;
    }
  }
  for (const { tokens, changes } of streams) {
    assert.equal(tokens.length, 700);
    assert.equal(changes, 2);
    const same = tokens.findIndex((token, i) => token !== alone.tokens[i]);
    assert.ok(same > 0, "it began with the older weights, and changed");
  }
  // The end is what the newest weights say of all before it.
  const [{ tokens }] = streams;
  const rest = await ask_ids({ prompt: [...prompt, ...tokens.slice(0, 660)], max_tokens: 40 });
  assert.ok(rest.system_fingerprint.endsWith(revision));
  assert.deepEqual(rest.choices[0].token_ids, tokens.slice(660));
  await frees_everything(server.url);
});

const generated = (server) => metric(server.url, "braid_generation_tokens_total");

test("a rollout tells which revision made which tokens, and is reviewed by the newest", async (t) => {
  const server = await serve(t, ["--kv-memory", "128M", "--speculate", "off"]);
  const { fingerprint } = await ask(server);
  const before = await generated(server);
  const body = { prompt: story, max_tokens: 700, temperature: 0, ignore_eos: true, reference: "braid-demo" };
  const rolling = post(`${server.url}/v1/rl/rollout`, body).then((response) => json(response));
  await eventually("it has begun", async () => (await generated(server)) > before + 20);
  const one = await update(server, norm(1), { mode: "keep" });
  const { revision, groups: [{ completions: [{ token_ids, logprobs, reference_logprobs, revisions }] }] } = await rolling;
  assert.equal(token_ids.length, 700);
  assert.equal(revision, one.revision);
  assert.deepEqual(revisions.map((range) => range.revision), [fingerprint, one.revision]);
  const [{ begin, end: changed }, { begin: from, end }] = revisions;
  assert.ok(begin === 0 && changed === from && from > 20 && end === 700, JSON.stringify(revisions));
  assert.deepEqual(reference_logprobs.slice(from), logprobs.slice(from), "scoring gives the same bits within a revision");
  assert.notDeepEqual(reference_logprobs.slice(0, from), logprobs.slice(0, from));
  await frees_everything(server.url);
});

// Completions that use what an update has retired meanwhile.
test("rollouts with reviews while the weights are replaced in all modes", async (t) => {
  const folder = temporaryFolder(t);
  for (const seed of [1, 2]) write_adapter(path.join(folder, `a${seed}`), seed);
  const server = await serve(t, ["--kv-memory", "128M", ...[1, 2].flatMap((seed) => ["--lora", `a${seed}=${path.join(folder, `a${seed}`)}`])]);
  let running = true;
  let whole = 0;
  const rolling = ["a1", "a2", "braid-demo", "a1"].map(async (model, i) => {
    while (running) {
      const body = { model, prompt: story, max_tokens: 10 + i, n: 2, ignore_eos: true, reference: "a2", return_hidden: [-1] };
      const response = await post(`${server.url}/v1/rl/rollout`, body);
      const answer = await response.json();
      if (response.status !== 200) {
        assert.match(answer.error.message, /weights of the model were replaced/);
        continue;
      }
      ++whole;
      for (const { reference_logprobs, hidden } of answer.groups[0].completions) {
        assert.equal(reference_logprobs.length, 10 + i);
        assert.equal(hidden[0].vector.length, width);
      }
    }
  });
  const modes = ["abort", "keep", "finish"];
  for (let i = 0; i < 24; ++i) await update(server, norm(1 + i % 3), { mode: modes[i % 3] });
  running = false;
  await Promise.all(rolling);
  assert.ok(whole > 0);
  assert.equal(await metric(server.url, "braid_engine_step_retries_total"), 0, "no step named weights that had gone");
  await frees_everything(server.url);
});

// A matrix that they are the lengths of the rows of.
const projection = (seed) => ({ "blk.3.attn_q.weight": { shape: [width, width], values: numbers(seed, width * width, -0.5).map((value) => value / 8) } });

test("magnitudes are made anew for newer weights, also for those who run, and come back with the file's", async (t) => {
  const folder = temporaryFolder(t);
  write_dora(path.join(folder, "dora"));
  const server = await serve(t, ["--kv-memory", "128M", "--adapter-dir", folder, "--speculate", "off"]);
  const load = async () => json(await post(`${server.url}/v1/adapters`, { name: "dora", path: "dora" }));
  const drop = async () => json(await fetch(`${server.url}/v1/adapters/dora`, { method: "DELETE" }));
  const unload_model = async () => json(await post(`${server.url}/v1/models/unload`, { model: "braid-demo" }));
  const dora = (fields) => ask(server, { model: "dora", ...fields });
  await load();
  const first = await dora();
  const older = await open(server, { model: "dora" });
  const alone = (await collect(await post(`${server.url}/v1/completions`, { ...wish, model: "dora", max_tokens: 250, stream: true }))).text;
  await update(server, projection(1));
  const newer = await dora();
  assert.notEqual(newer.text, first.text);
  assert.equal((await older()).text, alone);
  await drop();
  await load();
  assert.deepEqual(await dora({ cache_salt: "again" }), { ...newer, cached: 0 }, "as if it had been loaded now");

  // What runs goes on with magnitudes of the newest weights.
  const body = { model: "dora", prompt: story, max_tokens: 400, temperature: 0, ignore_eos: true, reference: "dora" };
  const before = await generated(server);
  const rolling = post(`${server.url}/v1/rl/rollout`, body).then((response) => json(response));
  await eventually("it has begun", async () => (await generated(server)) > before + 10);
  await json(await post(`${server.url}/pause`, {}));  // so that it has not ended before the update
  await update(server, projection(2), { mode: "keep" });
  await json(await post(`${server.url}/resume`, {}));
  const { groups: [{ completions: [{ logprobs, reference_logprobs, revisions }] }] } = await rolling;
  assert.equal(revisions.length, 2);
  assert.deepEqual(reference_logprobs.slice(revisions[1].begin), logprobs.slice(revisions[1].begin));

  await unload_model();
  await ask(server);
  assert.equal((await post(`${server.url}/v1/completions`, { ...wish, model: "dora" })).status, 404, "it was made for weights that have gone");
  await load();
  assert.equal((await dora()).text, first.text);
  await update(server, projection(1));
  assert.equal((await dora()).text, newer.text);
  await unload_model();
  assert.equal((await dora()).text, first.text, "it was loaded for the file's");
  await frees_everything(server.url);
});

test("an update that does not fit says which tensor, and the old weights stay live", async (t) => {
  const folder = temporaryFolder(t);
  const server = await serve(t, ["--kv-memory", "64M", "--weights-dir", folder]);
  const first = await ask(server);
  const refused = async (response, status, pattern) => {
    assert.match((await json(response, status)).error.message, pattern);
    assert.deepEqual({ ...(await ask(server)), cached: 0 }, { ...first, cached: 0 });
  };
  await refused(await send(server, norm(1), { partial: "false" }), 400, /is missing: send all of them, or say that the update is partial/);
  await refused(await send(server, { "blk.99.attn_norm.weight": norm(1)["output_norm.weight"] }), 400, /'blk\.99\.attn_norm\.weight' is none of the model/);
  await refused(await send(server, { "output_norm.weight": { shape: [2, 256], values: numbers(1, width, 0) } }), 400,
    /'output_norm\.weight' has the shape \[2, 256\]; the loaded one has \[512\]/);
  await refused(await send(server, norm(1), { mode: "later" }), 400, /'mode' is 'later'/);
  writeFileSync(path.join(folder, "short.safetensors"), safetensors(norm(1)).subarray(0, 300));
  const by_path = (fields) => post(`${server.url}/update_weights`, { partial: true, ...fields });
  await refused(await by_path({ path: "short.safetensors" }), 400, /short\.safetensors/);
  await refused(await by_path({ path: "short.safetensors", checksum: "1234" }), 400, /SHA-256/);
  await refused(await by_path({ path: "none.safetensors" }), 404, /none\.safetensors/);
  assert.equal((await json(await fetch(`${server.url}/weight_info`))).data[0].updates, 0);
});

test("matrices are rounded to the model's type, and digests tell what is computed with", async (t) => {
  const server = await serve(t, ["--kv-memory", "64M"]);
  const before = await ask(server);
  const digests = async () => new Map((await json(await post(`${server.url}/weight_checker`, {}))).tensors.map(({ name, sha256 }) => [name, sha256]));
  const first = await digests();
  assert.ok(first.size > 60);
  // Codes of Q8_0 with a scale of 2^-10, one of which is the largest in each block.
  const name = "blk.0.attn_output.weight";
  const values = numbers(7, width * width, 0).map((value, i) => (i % 32 === 0 ? 127 : Math.floor(value * 255) - 127) / 1024);
  const memory = `braid-model-test-${process.pid}`;
  writeFileSync(`/dev/shm/${memory}`, safetensors({ [name]: { shape: [width, width], values }, ...norm(5) }));
  t.after(() => rmSync(`/dev/shm/${memory}`, { force: true }));
  const facts = await json(await post(`${server.url}/update_weights`, { shared_memory: memory, partial: true }));
  const second = await digests();
  const sha = (list) => createHash("sha256").update(Buffer.from(Float32Array.from(list).buffer)).digest("hex");
  assert.equal(second.get(name), sha(values));
  assert.equal(second.get("output_norm.weight"), sha(norm(5)["output_norm.weight"].values));
  for (const [tensor, digest] of first) assert.equal(second.get(tensor) === digest, tensor !== name && tensor !== "output_norm.weight", tensor);
  const after = await ask(server);
  assert.notEqual(after.text, before.text);
  assert.ok(after.fingerprint.endsWith(facts.revision));
});

test("adapters go on with newer weights, but for those that follow from them", async (t) => {
  const folder = temporaryFolder(t);
  write_adapter(path.join(folder, "one"), 1);
  const server = await serve(t, ["--kv-memory", "128M", "--lora", `one=${path.join(folder, "one")}`]);
  const before = await ask(server, { model: "one" });
  const stream = await open(server, { model: "one" });
  const alone = (await collect(await post(`${server.url}/v1/completions`, { ...wish, model: "one", max_tokens: 250, stream: true }))).text;
  const facts = await update(server, norm(1));
  const after = await ask(server, { model: "one" });
  assert.equal(after.model, "braid-demo:one");
  assert.notEqual(after.text, before.text);
  assert.notEqual(after.text, (await ask(server)).text);
  assert.equal(after.cached, 0);
  assert.ok(after.fingerprint.includes(`-${facts.revision}+`));
  assert.equal((await stream()).text, alone);
  await frees_everything(server.url);
});

// All have been read when the first one goes on; what loads adapters waits for them at most.
test("updates, and a load of an adapter, that are asked for at once follow one another", async (t) => {
  const folder = temporaryFolder(t);
  for (const seed of [1, 2]) write_adapter(path.join(folder, `a${seed}`), seed);
  const server = await serve(t, ["--kv-memory", "128M", "--adapter-dir", folder]);
  const load = async (name) => json(await post(`${server.url}/v1/adapters`, { name, path: name }));
  const older = await open(server);
  const [facts] = await Promise.all([Promise.all([1, 2, 3].map((seed) => update(server, norm(seed)))), load("a1"), older()]);
  assert.deepEqual(facts.map(({ updates }) => updates).sort(), [1, 2, 3]);
  const newest = facts.find(({ updates }) => updates === 3);
  assert.equal((await load("a2")).base, "braid-demo");
  for (const model of ["a1", "a2"]) assert.ok((await ask(server, { model })).fingerprint.includes(`-${newest.revision}+`));
  assert.ok((await ask(server)).fingerprint.endsWith(newest.revision));
  await frees_everything(server.url);
});

// However fast it goes: it began before them.
test("a head is fitted beside updates to the weights that its job began with", async (t) => {
  const server = await serve(t, ["--kv-memory", "128M", "--adapter-dir", temporaryFolder(t)]);
  const data = ["fox", "bear", "mouse", "owl"].map((animal) => ({ chosen: `The ${animal} was happy and played.`, rejected: `The ${animal} was sad and cried.` }));
  const begin = async (name) => json(await post(`${server.url}/v1/training/jobs`, { name, data, epochs: 100 }));
  const finished = async (job) => {
    while (job.finished === null) job = await json(await fetch(`${server.url}/v1/training/jobs/${job.id}`));
    return job;
  };
  const quiet = await finished(await begin("quiet"));
  assert.equal(quiet.status, "succeeded", quiet.error);
  const job = await begin("beside");
  const [{ revision }, two] = await Promise.all([update(server, norm(1)), update(server, norm(2))]);
  assert.notEqual(revision, two.revision);
  assert.equal((await finished(job)).revision, quiet.revision);
  const other = await finished(await begin("other"));
  assert.equal(other.status, "succeeded", other.error);
  assert.notEqual(other.revision, quiet.revision, "these weights say something else of the texts");

  const kept = await begin("kept");
  await update(server, norm(3), { mode: "keep" });
  const { status, error } = await finished(kept);
  if (status !== "succeeded") assert.match(error, /were replaced/);
  assert.equal((await finished(await begin("last"))).status, "succeeded");
  await frees_everything(server.url);
});

// Each answer is the solo answer of the revision that it tells.
test("a storm of answers while the weights are updated", async (t) => {
  const server = await serve(t, ["--kv-memory", "128M", "--speculate", "off"]);
  const seeds = [1, 2, 3];
  const prompts = Array.from({ length: 6 }, (_, i) => `${story} Part ${i}.`);
  const solo = new Map();
  for (const seed of seeds) {
    const { revision } = await update(server, norm(seed));
    for (const prompt of prompts) solo.set(`${revision} ${prompt}`, (await ask(server, { prompt })).text);
  }
  let running = true;
  const seen = new Set();
  const asking = prompts.map(async (prompt, i) => {
    while (running) {
      const { text, fingerprint } = await ask(server, { prompt, cache_salt: i % 2 ? "other" : undefined });
      const revision = fingerprint.slice(fingerprint.lastIndexOf("-") + 1);
      assert.equal(text, solo.get(`${revision} ${prompt}`), revision);
      seen.add(revision);
    }
  });
  for (let i = 0; i < 12; ++i) await update(server, norm(seeds[i % 3]));
  running = false;
  await Promise.all(asking);
  assert.ok(seen.size > 1);
  await frees_everything(server.url);
});

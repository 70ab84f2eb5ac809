// Models that come and go while the server runs: by name, for room, when nobody uses them, and by an administrator's word.
import assert from "node:assert/strict";
import { copyFileSync, mkdirSync, readFileSync, renameSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { sanitized, serve, sourceFolder, temporaryFolder } from "./support/processes.mjs";
import { collect, events, eventually, metrics, post } from "./support/client.mjs";

const demo = path.join(sourceFolder, "models/demo-q8_0.gguf");
const draft = path.join(sourceFolder, "models/demo-draft-q8_0.gguf");
const modest = ["--kv-memory", "32M"];
const cycles = sanitized ? 10 : 100;

// demo.gguf, team/little.gguf and twin.gguf, which is demo.gguf once more.
function models(t) {
  const folder = temporaryFolder(t);
  mkdirSync(path.join(folder, "team"));
  symlinkSync(demo, path.join(folder, "demo.gguf"));
  symlinkSync(demo, path.join(folder, "twin.gguf"));
  symlinkSync(draft, path.join(folder, "team/little.gguf"));
  return folder;
}

const wish = (model, name = "the fox", more = {}) => ({
  model, prompt: `The story of ${name}. Once upon a time, ${name}`, max_tokens: 60, temperature: 0.8, seed: 11, ignore_eos: true,
  stream: true, return_token_ids: true, ...more,
});
const answer = async (server, body) => {
  const { text, tokens, finish, done } = await collect(await post(`${server.url}/v1/completions`, body));
  assert.ok(done);
  return { text, tokens, finish };
};
const states = async (server) => {
  const list = await (await fetch(`${server.url}/v1/models`)).json();
  return Object.fromEntries(list.data.map((model) => [model.id, model.status.value]));
};
const resident = (server) => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${server.child.pid}/status`, "utf8"))[1]) * 1024;
const command = async (server, name, body) => {
  const response = await post(`${server.url}/v1/models/${name}`, body);
  return { status: response.status, ...(await response.json()) };
};

test("a request loads the model that it names, and the one unused for longest makes room", async (t) => {
  const alone = await serve(t, [demo, ...modest]);
  const expected = await answer(alone, wish("demo-q8_0"));
  const server = await serve(t, ["--models-dir", models(t), "--max-models", "2", ...modest]);
  assert.deepEqual(await states(server), { demo: "unloaded", "team/little": "unloaded", twin: "unloaded" });

  const [one, other, little] = await Promise.all(["demo", "demo", "little"].map((name) => answer(server, wish(name))));
  assert.deepEqual(one, expected);
  assert.deepEqual(other, expected);
  assert.notDeepEqual(little, expected);
  assert.deepEqual(await states(server), { demo: "loaded", "team/little": "loaded", twin: "unloaded" });
  await answer(server, wish("demo"));
  assert.deepEqual(await answer(server, wish("twi")), expected, "by the beginning of its name");
  assert.deepEqual(await states(server), { demo: "loaded", "team/little": "unloaded", twin: "loaded" });

  const unknown = await post(`${server.url}/v1/chat/completions`, { model: "larger", messages: [] });
  assert.equal(unknown.status, 404);
  assert.match((await unknown.json()).error.message, /'larger' does not exist; this server has 'demo', 'team\/little', 'twin'/);
  const all = await metrics(server.url);
  assert.ok(all.get('braid_generation_tokens_total{model="demo"}') > 0);
  assert.ok(all.get('braid_generation_tokens_total{model="twin"}') > 0);
});

test("a file that is served twice is packed once", async (t) => {
  const server = await serve(t, ["--models-dir", models(t), ...modest]);
  await answer(server, wish("demo"));
  const before = resident(server);
  await answer(server, wish("twin"));
  const { data } = await (await fetch(`${server.url}/v1/models`)).json();
  const weights = 30 * 2 ** 20;
  assert.ok(data.every((model) => model.id === "team/little" || model.status.memory_bytes > weights));
  const grown = resident(server) - before;
  t.diagnostic(`the second one takes ${(grown / 2 ** 20).toFixed(1)} MiB`);
  assert.ok(grown < 16 * 2 ** 20 + weights, "a pool and what it computes with");
});

test("keep_alive, and what Ollama's clients see of it", async (t) => {
  const server = await serve(t, ["--models-dir", models(t), "--keep-alive", "1h", ...modest]);
  const generate = async (body) => (await post(`${server.url}/api/generate`, { stream: false, options: { num_predict: 2 }, ...body })).json();
  const running = async () => (await (await fetch(`${server.url}/api/ps`)).json()).models;
  assert.deepEqual(await running(), []);
  assert.equal((await generate({ model: "demo" })).done_reason, "load");
  const [loaded] = await running();
  assert.equal(loaded.name, "demo");
  const minutes = (new Date(loaded.expires_at) - Date.now()) / 60_000;
  assert.ok(minutes > 50 && minutes < 61, `${minutes} minutes`);
  await generate({ model: "demo", prompt: "Hello", keep_alive: -1 });
  assert.ok(new Date((await running())[0].expires_at) - Date.now() > 1e12);
  assert.equal((await generate({ model: "demo", keep_alive: 0 })).done_reason, "unload");
  await eventually("it is unloaded", async () => (await running()).length === 0);
  assert.equal((await generate({ model: "little", keep_alive: 0 })).done_reason, "unload", "is not loaded for that");
  assert.equal((await states(server))["team/little"], "unloaded");
  await generate({ model: "little", prompt: "Hello", keep_alive: "10ms" });
  await eventually("its time is over", async () => (await running()).length === 0);
});

test("an administrator loads, unloads, puts to sleep and wakes", async (t) => {
  const server = await serve(t, ["--models-dir", models(t), ...modest]);
  const seen = [];
  for await (const event of events(await post(`${server.url}/v1/models/load`, { model: "demo", stream: true }))) seen.push(event);
  assert.deepEqual(seen.pop(), { object: "model.status", id: "demo", status: "loaded", success: true });
  for (const event of seen) assert.equal(event.object, "model.progress");
  const lines = (await (await post(`${server.url}/v1/models/load`, { model: "little", stream: "ndjson" })).text()).trim().split("\n");
  assert.equal(JSON.parse(lines.at(-1)).status, "loaded");
  assert.deepEqual(await command(server, "unload", { model: "demo" }), { status: "unloaded", object: "model.status", id: "demo", success: true });
  assert.equal((await states(server)).demo, "unloaded");
  assert.equal((await command(server, "load", {})).status, 400);
  assert.equal((await command(server, "load", { model: "nobody" })).status, 404);

  const asleep = async () => (await (await fetch(`${server.url}/is_sleeping`)).json()).is_sleeping;
  assert.equal(await asleep(), false);
  assert.equal((await post(`${server.url}/sleep?level=1`, {})).status, 200);
  assert.equal(await asleep(), true);
  const refused = await post(`${server.url}/v1/completions`, wish("little"));
  assert.equal(refused.status, 503);
  assert.ok(Number(refused.headers.get("retry-after")) >= 1);
  assert.equal((await post(`${server.url}/wake_up`, {})).status, 200);
  assert.equal(await asleep(), false);
  assert.equal((await answer(server, wish("little"))).tokens.length, 60);
  const stranger = await fetch(`${server.url}/sleep`, { method: "POST", headers: { Origin: "http://elsewhere.example" } });
  assert.equal(stranger.status, 403);
});

test("what cannot be loaded says why and harms nobody, and what comes later is found", async (t) => {
  const folder = models(t);
  copyFileSync(demo, path.join(folder, "broken.gguf"));
  truncateSync(path.join(folder, "broken.gguf"), 20_000_000);
  writeFileSync(path.join(folder, "none.gguf"), "no model");
  const server = await serve(t, ["--models-dir", folder, ...modest]);
  const expected = await answer(server, wish("demo"));
  const running = answer(server, wish("demo", "the fox", { max_tokens: 60 }));
  for (const name of ["broken", "none"]) {
    const failed = await post(`${server.url}/v1/completions`, wish(name));
    assert.equal(failed.status, 500);
    assert.match((await failed.json()).error.message, new RegExp(`'${name}' cannot be loaded: .+`));
    assert.equal((await command(server, "load", { model: name })).status, 500);
  }
  assert.deepEqual(await running, expected);
  copyFileSync(draft, path.join(folder, "later.part"));
  renameSync(path.join(folder, "later.part"), path.join(folder, "later.gguf"));
  assert.equal((await answer(server, wish("later"))).tokens.length, 60);
});

test("a pool shrinks under its streams for another model", async (t) => {
  const folder = temporaryFolder(t);
  symlinkSync(demo, path.join(folder, "demo.gguf"));
  symlinkSync(draft, path.join(folder, "little.gguf"));
  const server = await serve(t, ["--models-dir", folder, "--memory", "400M", "--kv-dtype", "f32"]);
  const expected = await answer(server, wish("demo", "the owl", { max_tokens: 400 }));
  const total = async () => (await metrics(server.url)).get('braid_kv_blocks_total{model="demo"}');
  const before = await total();
  const names = ["the owl", "Luna", "the fox", "the owl", "the owl"];
  const streams = names.map((name) => answer(server, wish("demo", name, { max_tokens: 400 })));
  await eventually("they run", async () => (await metrics(server.url)).get('braid_sequences_decoding{model="demo"}') >= 2);
  assert.equal((await answer(server, wish("little"))).tokens.length, 60);
  const during = await total();
  assert.ok(during < before, `${during} of ${before} blocks`);
  const answers = await Promise.all(streams);
  for (const [i, name] of names.entries()) if (name === "the owl") assert.deepEqual(answers[i], expected);
  await command(server, "unload", { model: "little" });
  await eventually("the pool grows again", async () => (await total()) > during);
});

test("a model that comes back with its draft has the pool that it had", async (t) => {
  const server = await serve(t, [demo, "--draft", draft, "--kv-memory", "256M", "--max-batch", "4", "--no-warmup"]);
  const total = async () => (await metrics(server.url)).get("braid_kv_blocks_total") ?? (await metrics(server.url)).get('braid_kv_blocks_total{model="demo-q8_0"}');
  const before = await total();
  const expected = await answer(server, wish("demo-q8_0"));
  assert.equal((await command(server, "unload", { model: "demo-q8_0" })).status, "unloaded");
  assert.deepEqual(await answer(server, wish("demo-q8_0")), expected);
  assert.equal(await total(), before);
});

test("the pool of a model that came second grows beyond its first size when the other one goes", async (t) => {
  const folder = temporaryFolder(t);
  for (const name of ["demo", "twin"]) symlinkSync(demo, path.join(folder, `${name}.gguf`));
  const server = await serve(t, ["--models-dir", folder, "--memory", "200M", "--kv-dtype", "f32"]);
  const total = async (name) => (await metrics(server.url)).get(`braid_kv_blocks_total{model="${name}"}`);
  const expected = await answer(server, wish("demo", "the owl", { max_tokens: 200 }));
  const alone = await total("demo");
  assert.deepEqual(await answer(server, wish("twin", "the owl", { max_tokens: 200 })), expected);
  const first = await total("twin");
  assert.ok(first < alone, `${first} blocks, ${alone} alone`);
  const streams = ["the owl", "Luna", "the owl"].map((name) => answer(server, wish("twin", name, { max_tokens: 200 })));
  await command(server, "unload", { model: "demo" });
  await eventually("it grows", async () => (await total("twin")) > first);
  assert.ok(await total("twin") <= alone);
  const answers = await Promise.all(streams);
  assert.deepEqual(answers[0], expected);
  assert.deepEqual(answers[2], expected);
  assert.deepEqual(await answer(server, wish("demo", "the owl", { max_tokens: 200 })), expected, "and shrinks for it again");
});

test(`${cycles} times two models come and go beside a third that streams`, async (t) => {
  const folder = temporaryFolder(t);
  for (const [name, file] of [["steady", demo], ["a", draft], ["b", demo]]) copyFileSync(file, path.join(folder, `${name}.gguf`));
  const server = await serve(t, ["--models-dir", folder, "--kv-memory", "24M"]);
  const expected = {};
  for (const name of ["steady", "a", "b"]) expected[name] = await answer(server, wish(name));
  for (const name of ["a", "b"]) await command(server, "unload", { model: name });
  let ends = false;
  const steady = Promise.all([1, 2].map(async () => {
    let count = 0;
    for (; !ends; ++count) assert.deepEqual(await answer(server, wish("steady")), expected.steady);
    return count;
  }));
  const cycle = async () => {
    const answers = await Promise.all(["a", "b", "a"].map((name) => answer(server, wish(name))));
    ["a", "b", "a"].forEach((name, i) => assert.deepEqual(answers[i], expected[name], name));
    await Promise.all(["a", "b"].map((name) => command(server, "unload", { model: name })));
  };
  const warm = Math.max(3, Math.round(cycles / 5));
  for (let i = 0; i < warm; ++i) await cycle();
  const before = resident(server);
  for (let i = warm; i < cycles; ++i) await cycle();
  const after = resident(server);
  ends = true;
  t.diagnostic(`${(before / 2 ** 20).toFixed(1)} MiB, then ${(after / 2 ** 20).toFixed(1)} MiB; ${await steady} answers beside`);
  if (!sanitized) assert.ok(after < before * 1.02, `${before} bytes, then ${after}`);
  assert.deepEqual(await states(server), { a: "unloaded", b: "unloaded", steady: "loaded" });
  server.child.kill("SIGTERM");
  assert.equal((await server.exited).code, 0);
});

test("an end during a load is clean", async (t) => {
  const server = await serve(t, ["--models-dir", models(t), ...modest]);
  const streaming = answer(server, wish("little", "the fox", { max_tokens: 200 }));
  await eventually("it is loaded", async () => (await states(server))["team/little"] === "loaded");
  const waiting = post(`${server.url}/v1/completions`, wish("demo"));
  server.child.kill("SIGTERM");
  assert.equal((await streaming).tokens.length, 200);
  const response = await waiting;
  assert.ok([200, 503].includes(response.status), `${response.status}`);
  await response.text();
  assert.equal((await server.exited).code, 0);
});

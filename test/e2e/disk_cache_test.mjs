// What a server has computed, its successor finds on disk, whatever ended the first one; and says the same bytes as a cold one.
import assert from "node:assert/strict";
import { readdirSync, rmSync, truncateSync } from "node:fs";
import net from "node:net";
import path from "node:path";
import { test } from "node:test";
import { braid, serve, temporaryFolder } from "./support/processes.mjs";
import { eventually, metric, post } from "./support/client.mjs";
import { recurrentModel } from "./support/recurrent_model.mjs";

const story = "Once upon a time, a brave fox named Luna lived in the castle. She loved her kite more than anything. ".repeat(4);
const wish = (ending, more = {}) => ({
  prompt: story + ending, max_tokens: 24, temperature: 0.8, seed: 7, ignore_eos: true, logprobs: 3, return_token_ids: true, ...more,
});

async function ask(server, body) {
  const answer = await (await post(`${server.url}/v1/completions`, body)).json();
  return { choices: answer.choices, cached: answer.usage.prompt_tokens_details.cached_tokens, known: answer.usage.prompt_tokens };
}

const through = (folder, ...more) => ["--kv-disk", folder, "--kv-disk-write", "through", "--kv-disk-read", "always", "--kv-memory", "64M", "--no-warmup", ...more];
const segments = (folder) => readdirSync(folder).filter((name) => name.endsWith(".kv")).map((name) => path.join(folder, name));

async function killed(server) {
  server.child.kill("SIGKILL");
  await server.exited;
}

// Answers, and waits until what was computed for it lies on disk.
async function fill(t, folder, ...args) {
  const server = await serve(t, through(folder, ...args));
  const cold = await ask(server, wish("One morning,"));
  assert.equal(cold.cached, 0);
  await eventually("blocks are written", async () => (await metric(server.url, "braid_disk_cache_writes_total")) >= 6);
  await killed(server);
  return cold;
}

for (const type of ["f16", "f32", "bf16", "int8"]) {
  test(`a killed server's blocks are found again, ${type}`, async (t) => {
    const folder = temporaryFolder(t);
    const cold = await fill(t, folder, "--kv-dtype", type);
    const server = await serve(t, through(folder, "--kv-dtype", type));
    const restored = await ask(server, wish("One morning,"));
    assert.ok(restored.cached > 0, "nothing was restored");
    assert.deepEqual(restored.choices, cold.choices);
    const warm = await ask(server, wish("One morning,"));
    assert.ok(warm.cached >= restored.cached);
    assert.deepEqual(warm.choices, cold.choices);
    const stats = await (await fetch(`${server.url}/v1/cache/stats`)).json();
    assert.equal(stats.tokens.disk_hits, restored.cached);
    assert.equal(stats.tokens.saved, restored.cached + warm.cached);
    assert.ok(stats.disk.reads > 0 && stats.disk.mean_read_ms > 0 && stats.disk.blocks > 0 && stats.disk.read_errors === 0);
    assert.equal(await metric(server.url, "braid_prefix_cache_disk_hit_tokens_total"), restored.cached);
  });
}

test("another salt or KV type finds nothing of it", async (t) => {
  const folder = temporaryFolder(t);
  const cold = await fill(t, folder);
  const server = await serve(t, through(folder));
  assert.equal((await ask(server, wish("One morning,", { cache_salt: "other" }))).cached, 0);
  assert.deepEqual((await ask(server, wish("One morning,"))).choices, cold.choices);
  await killed(server);
  const other = await serve(t, through(folder, "--kv-dtype", "f32"));
  assert.equal((await ask(other, wish("One morning,"))).cached, 0);
});

test("what is exported and imported is found", async (t) => {
  const folder = temporaryFolder(t);
  const file = path.join(temporaryFolder(t), "kv.safetensors");
  const memory = ["--kv-memory", "64M"];
  const exported = await braid(t, ["cache", "export", "braid-demo", file, "--prompt", story, ...memory]);
  assert.equal(exported.code, 0, exported.stderr);
  const imported = await braid(t, ["cache", "import", "braid-demo", file, "--kv-disk", folder, ...memory]);
  assert.equal(imported.code, 0, imported.stderr);
  const cold = await ask(await serve(t, ["--no-warmup", ...memory]), wish("One morning,"));
  const server = await serve(t, through(folder));
  const restored = await ask(server, wish("One morning,"));
  assert.ok(restored.cached > 0, "nothing was found");
  assert.deepEqual(restored.choices, cold.choices);
  const busy = await braid(t, ["cache", "import", "braid-demo", file, "--kv-disk", folder, ...memory]);
  assert.equal(busy.code, 1);
  assert.match(busy.stderr, /in use by another process/);
  const other = await braid(t, ["cache", "import", "braid-demo", file, "--kv-disk", folder, "--kv-dtype", "f32", ...memory]);
  assert.match(other.stderr, /'kv_dtype' is 'b?f16', this model asks for 'f32'/);
});

test("damage and loss cost a miss", async (t) => {
  const folder = temporaryFolder(t);
  const cold = await fill(t, folder);
  for (const file of segments(folder)) truncateSync(file, 200_000);
  const server = await serve(t, through(folder));
  assert.deepEqual((await ask(server, wish("One morning,"))).choices, cold.choices);
  await eventually("the loss is logged", () => /are no records/.test(server.errors));
  rmSync(folder, { recursive: true });
  assert.deepEqual((await ask(server, wish("The end of"))).choices.length, 1);
  assert.deepEqual((await ask(server, wish("One morning,"))).choices, cold.choices);
});

test("a second server on one folder goes on without it", async (t) => {
  const folder = temporaryFolder(t);
  const first = await serve(t, through(folder));
  const second = await serve(t, through(folder));
  await eventually("it is logged", () => /going on without a disk cache: .* in use by another process/.test(second.errors));
  const answer = await ask(first, wish("One day"));
  assert.deepEqual((await ask(second, wish("One day"))).choices, answer.choices);
  assert.equal((await (await fetch(`${second.url}/v1/cache/stats`)).json()).disk, null);
});

test("a successor has what the server before it computed, once that has ended", async (t) => {
  const folder = temporaryFolder(t);
  const takeover = ["--takeover", path.join(temporaryFolder(t), "control"), "--drain-timeout", "120s", "--header-timeout", "1h"];
  const first = await serve(t, through(folder, ...takeover));
  const silent = net.connect(first.port, "127.0.0.1");  // its first request comes late, so the first server stays
  await new Promise((resolve) => silent.on("connect", resolve));
  const cold = await ask(first, wish("One morning,"));
  await eventually("blocks are written", async () => (await metric(first.url, "braid_disk_cache_writes_total")) >= 6);
  const second = await serve(t, through(folder, ...takeover));
  await eventually("it waits", () => /is the other server's until that has ended/.test(second.errors));
  // The first one answers once more on the connection that was kept, and says that this was the last time.
  await eventually("the second one answers", async () => (await fetch(`${second.url}/health`)).headers.get("connection") !== "close");
  const apart = (salt) => ask(second, wish("One evening,", { cache_salt: salt }));
  assert.equal((await apart("a")).cached, 0);
  assert.equal(await metric(second.url, "braid_disk_cache_writes_total"), 0);
  silent.write("GET /readyz HTTP/1.1\r\nHost: a\r\n\r\n");
  for await (const part of silent) void part;
  assert.deepEqual(await first.exited, { code: 0, signal: null });
  await eventually("what the first one wrote is found", async () => (await metric(second.url, "braid_disk_cache_blocks")) >= 6);
  await apart("b");
  await eventually("it writes", async () => (await metric(second.url, "braid_disk_cache_writes_total")) > 0);
  const restored = await ask(second, wish("One morning,"));
  assert.ok(restored.cached > 0, "nothing was restored");
  assert.deepEqual(restored.choices, cold.choices);
  assert.ok((await metric(second.url, "braid_prefix_cache_disk_hit_tokens_total")) > 0);
});

test("--kv-verify computes every hit again and finds no difference", async (t) => {
  const folder = temporaryFolder(t);
  const cold = await fill(t, folder);
  const server = await serve(t, through(folder, "--kv-verify"));
  for (let round = 0; round < 2; ++round) {
    const answer = await ask(server, wish("One morning,"));
    assert.equal(answer.cached, 0);
    assert.deepEqual(answer.choices, cold.choices);
  }
  await eventually("blocks are compared", async () => (await metric(server.url, "braid_prefix_cache_verified_blocks_total")) > 10);
});

// Tokens of these are letters.
const letters = "Once upon a time, a brave fox named Luna lived in the castle by the sea.";
const spell = (prompt, more = {}) => ({
  prompt, max_tokens: 11, temperature: 0.8, seed: 7, ignore_eos: true, logprobs: 3, return_token_ids: true, ...more });

test("recurrent states of a killed server are found again, wherever in a block they end", async (t) => {
  for (const name of ["lfm2", "mamba2"]) {
    const model = recurrentModel(t, name);
    const folder = temporaryFolder(t);
    const first = await serve(t, [model, ...through(folder)]);
    const cold = await ask(first, spell(letters));
    assert.equal(cold.cached, 0);
    let written = -1;
    await eventually("states are written", async () => {
      const before = written;
      written = await metric(first.url, "braid_disk_cache_writes_total");
      return written > 0 && written === before;
    });
    await killed(first);
    const second = await serve(t, [model, ...through(folder)]);
    const again = await ask(second, spell(letters));
    assert.equal(again.cached, cold.known - 1, `${name}: all but the last token`);
    assert.deepEqual(again.choices, cold.choices);
    const stats = await (await fetch(`${second.url}/v1/cache/stats`)).json();
    assert.equal(stats.tokens.disk_hits, again.cached);
  }
});

test("keys and values that layers share, and of heads that layers have of their own, are found again", async (t) => {
  for (const name of ["gemma3n", "gemma4"]) {
    const model = recurrentModel(t, name);
    const folder = temporaryFolder(t);
    const first = await serve(t, [model, ...through(folder)]);
    const cold = await ask(first, spell(letters));
    assert.equal(cold.cached, 0);
    const warm = await ask(first, spell(letters));
    assert.ok(warm.cached > 0, `${name}: nothing was found in memory`);
    assert.deepEqual(warm.choices, cold.choices);
    let written = -1;
    await eventually("blocks are written", async () => {
      const before = written;
      written = await metric(first.url, "braid_disk_cache_writes_total");
      return written > 0 && written === before;
    });
    await killed(first);
    const second = await serve(t, [model, ...through(folder)]);
    const again = await ask(second, spell(letters));
    assert.ok(again.cached > 0, `${name}: nothing was restored`);
    assert.deepEqual(again.choices, cold.choices);
    assert.equal((await (await fetch(`${second.url}/v1/cache/stats`)).json()).tokens.disk_hits, again.cached);
  }
});

test("what is exported of a model with recurrent layers is found with its state", async (t) => {
  const model = recurrentModel(t);
  const folder = temporaryFolder(t);
  const file = path.join(temporaryFolder(t), "kv.safetensors");
  const memory = ["--kv-memory", "64M"];
  const exported = await braid(t, ["cache", "export", model, file, "--prompt", letters, ...memory]);
  assert.equal(exported.code, 0, exported.stderr);
  const imported = await braid(t, ["cache", "import", model, file, "--kv-disk", folder, ...memory]);
  assert.equal(imported.code, 0, imported.stderr);
  const cold = await ask(await serve(t, [model, "--no-warmup", ...memory]), spell(letters));
  const server = await serve(t, [model, ...through(folder)]);
  const restored = await ask(server, spell(letters));
  assert.equal(restored.cached, Math.floor(cold.known / 16) * 16, "the state at the end of its full blocks");
  assert.deepEqual(restored.choices, cold.choices);
});

test("a model with recurrent layers and windows goes on without a disk cache, and says so", async (t) => {
  const model = recurrentModel(t);
  const server = await serve(t, [model, ...through(temporaryFolder(t), "--max-kv-size", "48")]);
  await eventually("it is logged", () => /going on without a disk cache: lfm2 has recurrent layers and windows/.test(server.errors));
  const answer = await ask(server, spell(letters));
  assert.equal(answer.choices.length, 1);
  assert.equal((await (await fetch(`${server.url}/v1/cache/stats`)).json()).disk, null);
});

test("states take no more of the pool than they may", async (t) => {
  const model = recurrentModel(t);
  const stats = async ({ url }) => (await (await fetch(`${url}/v1/cache/stats`)).json()).states;
  const server = async (checkpoints) => {
    const started = await serve(t, [model, "--no-warmup", "--kv-memory", "8M", "--state-checkpoints", checkpoints]);
    await ask(started, spell(letters));
    return started;
  };
  const all = await stats(await server("16"));
  assert.ok(all.cached > 3 && all.dropped === 0, JSON.stringify(all));
  const none = await server("16,1");
  const told = /--state-checkpoints: a recurrent state of lfm2 takes ([\d.]+) (Ki|Mi|)B, more than 1 B: the prefix cache keeps none/;
  await eventually("it is logged", () => told.test(none.errors));
  assert.equal((await stats(none)).cached, 0);
  const [, size, unit] = told.exec(none.errors);
  const few = await stats(await server(`16,${2.5 * Number(size)}${unit}B`));
  assert.deepEqual([few.cached, few.blocks, few.dropped], [2, 2 * all.blocks / all.cached, all.cached - 2]);
});

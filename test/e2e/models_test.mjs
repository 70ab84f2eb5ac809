// Several models in one process: each answers as if it were alone, and they share the processor evenly.
import assert from "node:assert/strict";
import { symlinkSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { serve, sourceFolder, temporaryFolder } from "./support/processes.mjs";
import { collect, eventually, metrics, post } from "./support/client.mjs";

const demo = path.join(sourceFolder, "models/demo-q8_0.gguf");
const draft = path.join(sourceFolder, "models/demo-draft-q8_0.gguf");
const modest = ["--kv-memory", "64M"];

const wish = (model, name, more = {}) => ({
  model, prompt: `The story of ${name}. Once upon a time, ${name}`, max_tokens: 120, temperature: 0.8, seed: 11, ignore_eos: true,
  stream: true, return_token_ids: true, ...more,
});
const names = ["the fox", "the owl", "Luna"];

async function answer(server, body, options) {
  const { text, tokens, finish, done } = await collect(await post(`${server.url}/v1/completions`, body, options));
  assert.ok(done);
  return { text, tokens, finish };
}

async function solo_answers(t, file, model) {
  const server = await serve(t, [file, ...modest]);
  const answers = [];
  for (const name of names) answers.push(await answer(server, wish(model, name)));
  server.child.kill("SIGTERM");
  await server.exited;
  return answers;
}

// Of one model: its figure, from all of /metrics.
const figure = (all, model, name) => all.get(`braid_${name}{model="${model}"}`);

test("each answers as alone while both stream, and is shown everywhere", async (t) => {
  const expected = { "demo-q8_0": await solo_answers(t, demo, "demo-q8_0"), little: await solo_answers(t, draft, "demo-draft-q8_0") };
  const server = await serve(t, [demo, draft, "--alias", "demo-q8_0", "--alias", "little", ...modest]);
  const both = Object.keys(expected);
  const together = await Promise.all(both.map((model) => Promise.all(names.map((name) => answer(server, wish(model, name))))));
  both.forEach((model, i) => assert.deepEqual(together[i], expected[model], model));
  assert.notDeepEqual(together[0], together[1]);

  // One client's leaving is nothing to the other model.
  const controller = new AbortController();
  const leaving = post(`${server.url}/v1/completions`, wish("demo-q8_0", "nobody", { max_tokens: 900 }), { signal: controller.signal });
  const staying = answer(server, wish("little", names[0]));
  const reader = (await leaving).body.getReader();
  await reader.read();
  controller.abort();
  assert.deepEqual(await staying, expected.little[0]);

  const list = await (await fetch(`${server.url}/v1/models`)).json();
  assert.deepEqual(list.data.map((model) => model.id), both);
  const tags = await (await fetch(`${server.url}/api/tags`)).json();
  assert.deepEqual(tags.models.map((model) => model.name), both);
  const unknown = await post(`${server.url}/v1/completions`, wish("large", "x"));
  assert.equal(unknown.status, 404);
  assert.match((await unknown.json()).error.message, /'demo-q8_0', 'little'/);
  await eventually("the aborted answer is gone", async () => figure(await metrics(server.url), "demo-q8_0", "sequences_decoding") === 0);
  const all = await metrics(server.url);
  for (const model of both) {
    assert.ok(figure(all, model, "generation_tokens_total") >= 360);
    assert.equal(figure(all, model, "kv_blocks_free"), figure(all, model, "kv_blocks_total"));
    const stats = await (await fetch(`${server.url}/v1/cache/stats?model=${model}`)).json();
    assert.equal(stats.blocks.total, figure(all, model, "kv_blocks_total"));
  }
});

test("equal models under equal load get equal strand time", async (t) => {
  const folder = temporaryFolder(t);
  const models = ["one", "two"];
  for (const model of models) symlinkSync(demo, path.join(folder, `${model}.gguf`));
  const server = await serve(t, [...models.map((model) => path.join(folder, `${model}.gguf`)), ...modest]);
  const had = async () => {
    const all = await metrics(server.url);
    return models.map((model) => ({
      tokens: figure(all, model, "generation_tokens_total"),
      seconds: figure(all, model, "prefill_seconds_total") + figure(all, model, "decode_seconds_total"),
    }));
  };
  const streams = models.flatMap((model) => names.map((name) => answer(server, wish(model, name, { max_tokens: 700 }))));
  await eventually("both are at work", async () => (await had()).every(({ tokens }) => tokens > 60));
  const before = await had();
  await eventually("they have worked", async () => (await had()).some(({ tokens }) => tokens > 1500));
  const after = await had();
  const [one, two] = models.map((_, i) => ({ tokens: after[i].tokens - before[i].tokens, seconds: after[i].seconds - before[i].seconds }));
  assert.ok(Math.abs(one.seconds / two.seconds - 1) < 0.1, `strand time: ${one.seconds} s and ${two.seconds} s`);
  t.diagnostic(`tokens meanwhile: ${one.tokens} and ${two.tokens}`);
  const answers = await Promise.all(streams);
  assert.deepEqual(answers.slice(0, 3), answers.slice(3), "equal models, equal answers");
});

test("a server of several models is followed by another, with the disk tier of each", async (t) => {
  const folder = temporaryFolder(t);
  const args = [demo, draft, ...modest, "--kv-disk", path.join(folder, "kv"), "--kv-disk-write", "through", "--kv-disk-read", "always",
    "--takeover", path.join(folder, "control")];
  const first = await serve(t, args);
  const models = ["demo-q8_0", "demo-draft-q8_0"];
  const long = (model) => wish(model, names[1], { prompt: "Once upon a time there was a fox in a wood. ".repeat(12), max_tokens: 4 });
  const before = [];
  for (const model of models) before.push(await answer(first, long(model)));
  await eventually("both have written", async () => {
    const all = await metrics(first.url);
    return models.every((model) => figure(all, model, "disk_cache_writes_total") > 0);
  });
  const second = await serve(t, args, { port: [] });
  assert.equal((await first.exited).code, 0);
  await eventually("what the first one wrote is found", async () => {
    const all = await metrics(second.url);
    return models.every((model) => figure(all, model, "disk_cache_blocks") > 0);
  });
  for (const [i, model] of models.entries()) assert.deepEqual(await answer(second, long(model)), before[i]);
  const all = await metrics(second.url);
  for (const model of models) assert.ok(figure(all, model, "prefix_cache_disk_hit_tokens_total") > 0, model);
});

test("an end waits for the streams of all models", async (t) => {
  const server = await serve(t, [demo, draft, ...modest]);
  const responses = await Promise.all(["demo-q8_0", "demo-draft-q8_0"].map((model) => post(`${server.url}/v1/completions`, wish(model, names[0], { max_tokens: 300 }))));
  const streams = responses.map((response) => collect(response));
  server.child.kill("SIGTERM");
  for (const stream of await Promise.all(streams)) assert.equal(stream.tokens.length, 300);
  assert.equal((await server.exited).code, 0);
});

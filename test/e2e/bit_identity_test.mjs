// The same request gets the same bytes, log-probabilities included, however its keys and values came to be: computed alone, found in RAM,
// copied for several choices, given up and computed again, or given up and read from disk; in each type of keys and values, with a
// window and without.
import assert from "node:assert/strict";
import { test } from "node:test";
import { serve, temporaryFolder } from "./support/processes.mjs";
import { metric, post } from "./support/client.mjs";

const story = "Once upon a time, a brave fox named Luna lived in the castle. She loved her kite more than anything. ".repeat(2);
const heroes = ["fox", "owl", "bear", "mouse"];
const wish = (hero, more = {}) => ({
  prompt: `The story of the ${hero}. ${story}One morning, the ${hero}`,
  max_tokens: 60, temperature: 0.8, seed: 7, ignore_eos: true, logprobs: 3, return_token_ids: true, ...more,
});

// `wanted` tokens fit, whatever a block takes: a server tells how much it would have had.
async function memory_for(t, wanted, args) {
  const server = await serve(t, ["--no-warmup", "--kv-memory", "64M", ...args]);
  const blocks = await metric(server.url, "braid_kv_blocks_total");
  server.child.kill("SIGTERM");
  await server.exited;
  return String(Math.ceil((64 * 1024 * 1024 * wanted) / (blocks * 16)));
}

async function ask(server, body) {
  const response = await post(`${server.url}/v1/completions`, body);
  const answer = await response.json();
  assert.equal(response.status, 200, JSON.stringify(answer));
  return { choices: answer.choices, cached: answer.usage.prompt_tokens_details.cached_tokens };
}

// What each gets when nothing is shared and nobody else is there.
async function cold_answers(t, wishes, args) {
  const server = await serve(t, ["--no-warmup", "--prefix-cache", "off", "--kv-memory", "64M", ...args]);
  const answers = [];
  for (const body of wishes) answers.push((await ask(server, body)).choices);
  return answers;
}

async function compare(t, args) {
  const wishes = heroes.map((hero) => wish(hero));
  const several = wish("fox", { n: 3, max_tokens: 16 });
  const [expected_choices, ...expected] = await cold_answers(t, [several, ...wishes], args);
  assert.ok(new Set(expected_choices.map((choice) => choice.text)).size > 1, "the choices differ");

  const roomy = await serve(t, ["--no-warmup", "--kv-memory", "64M", ...args]);
  assert.deepEqual((await ask(roomy, several)).choices, expected_choices, "forked");
  assert.deepEqual((await ask(roomy, wishes[1])).choices, expected[1], "cold, with the cache on");
  const warm = await ask(roomy, wishes[1]);
  assert.deepEqual(warm.choices, expected[1], "warm");
  assert.ok((await metric(roomy.url, "braid_prefix_cache_hit_tokens_total")) > 0);

  const tight = ["--no-warmup", "--kv-memory", await memory_for(t, 240, args), ...args];
  const together = async (server) => (await Promise.all(wishes.map((body) => ask(server, body)))).map((answer) => answer.choices);
  const recomputing = await serve(t, [...tight, "--prefix-cache", "off"]);
  assert.deepEqual(await together(recomputing), expected, "given up and computed again");
  assert.ok((await metric(recomputing.url, "braid_preemptions_total")) > 0);
  const parking = await serve(t, [...tight, "--kv-disk", temporaryFolder(t), "--kv-disk-read", "always"]);
  for (let round = 0; round < 2; ++round) assert.deepEqual(await together(parking), expected, "given up and read from disk");
  assert.ok((await metric(parking.url, "braid_preemptions_total")) > 0);
  return parking;
}

for (const type of ["f16", "f32", "bf16", "int8"]) {
  test(`forked, warm, preempted and parked answers equal cold ones, ${type}`, async (t) => {
    const parking = await compare(t, ["--kv-dtype", type]);
    assert.ok((await metric(parking.url, "braid_prefix_cache_disk_hit_tokens_total")) > 0);
  });
  test(`so do those of a window, ${type}`, async (t) => {
    await compare(t, ["--kv-dtype", type, "--max-kv-size", "64"]);
  });
}

// A window of 64 positions takes seven blocks, and the pool has no more.
test("a window answers prompts longer than the pool, and finds them on disk", async (t) => {
  const args = ["--max-kv-size", "64", "--max-batch", "8", "--max-batch-tokens", "32"];
  const long = wish("fox", { prompt: story.repeat(3) });
  const [expected] = await cold_answers(t, [long], args);
  const disk = ["--kv-disk", temporaryFolder(t), "--kv-disk-read", "always", "--kv-disk-write", "through"];
  const roomy = await serve(t, ["--no-warmup", "--kv-memory", "64M", ...disk, ...args]);
  assert.deepEqual((await ask(roomy, long)).choices, expected);
  roomy.child.kill("SIGTERM");
  await roomy.exited;
  const small = await serve(t, ["--no-warmup", "--kv-memory", await memory_for(t, 112, args), ...disk, ...args]);
  assert.equal(await metric(small.url, "braid_kv_blocks_total"), 7);
  const restored = await ask(small, long);
  assert.deepEqual(restored.choices, expected);
  assert.ok(restored.cached > 112, `${restored.cached} tokens restored`);
});

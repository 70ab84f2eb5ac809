// 256 streaming clients at once: each gets what it would have got alone.
import assert from "node:assert/strict";
import { test } from "node:test";
import { serve } from "./support/processes.mjs";
import { collect, frees_everything, metric, post } from "./support/client.mjs";

const clients = 256;
const distinct = 64;

const prompts = ["Once upon a time", "The little robot", "A brave fox", "One morning, Luna woke up and saw", "What is 17 + 25?", "<json>",
  "My name is Sam and I live in", "Hello!"];

// Greedy and sampled, short and long, in turn.
const wish = (i) => ({
  prompt: `${prompts[i % prompts.length]} ${"and then ".repeat((i * 7) % 40)}${i % distinct}`,
  max_tokens: 8 + (i % distinct) % 25,
  temperature: i % 2 === 0 ? 0 : 0.9,
  top_p: i % 3 === 0 ? 0.9 : 1,
  top_k: i % 5 === 0 ? 40 : 0,
  seed: 1000 + (i % distinct),
  ignore_eos: true,
  return_token_ids: true,
  stream: true,
});

const ask = async (server, i) => collect(await post(`${server.url}/v1/completions`, wish(i % distinct)));

async function compare(t, args) {
  const server = await serve(t, args);
  const solo = [];
  for (let i = 0; i < distinct; ++i) solo.push(await ask(server, i));
  const together = await Promise.all(Array.from({ length: clients }, (_, i) => ask(server, i)));
  for (let i = 0; i < clients; ++i) {
    assert.ok(together[i].done, `client ${i} did not end: ${JSON.stringify(together[i].error)}`);
    assert.equal(together[i].tokens.length, wish(i).max_tokens);
    assert.deepEqual(together[i], solo[i % distinct], `client ${i} differs from its solo answer`);
  }
  await frees_everything(server.url);
  return server;
}

test("256 clients in one batch", async (t) => { await compare(t, []); });

test("256 clients in a pool that is too small for them, with preemptions", async (t) => {
  const server = await compare(t, ["--kv-memory", "8MiB", "--speculate", "off"]);  // answers guessed from the solo ones end too soon
  assert.ok((await metric(server.url, "braid_preemptions_total")) > 0);
});

// The server that was cross-built for 64-bit Arm, under qemu-user, beside this machine's own: the same greedy answers, and the smoke of a
// server. `BRAID_AARCH64` is its program, `BRAID_EMULATOR` what runs it (scripts/check-aarch64).
import assert from "node:assert/strict";
import { test } from "node:test";
import { serve } from "./support/processes.mjs";
import { collect, eventually, metric, post } from "./support/client.mjs";

const arm = { binary: process.env.BRAID_AARCH64, prefix: (process.env.BRAID_EMULATOR ?? "").split(" ").filter(Boolean) };
const story = "Once upon a time, a brave fox named Luna lived in the castle. ".repeat(2);

const complete = async (server, body) =>
  (await post(`${server.url}/v1/completions`, { temperature: 0, max_tokens: 12, return_token_ids: true, ...body })).json();

// Attention over f32 keys and values is exact on every tier but AMX's, products are integers.
const exact = ["--kv-dtype", "f32", "--kv-memory", "64MiB"];

test("greedy answers are those of x86-64", async (t) => {
  const here = await serve(t, [...exact, "--isa", "scalar"]);
  const there = await serve(t, exact, arm);
  for (const prompt of [story, "The dragon said:", "What is 17 + 25?"]) {
    const expected = await complete(here, { prompt });
    const answer = await complete(there, { prompt });
    assert.deepEqual(answer.choices, expected.choices, prompt);
  }
});

test("it streams, calls a tool, finds a prefix again and ends what nobody waits for", async (t) => {
  const server = await serve(t, exact, arm);
  const streamed = await collect(await post(`${server.url}/v1/completions`, { prompt: story, stream: true, temperature: 0, max_tokens: 8 }));
  assert.ok(streamed.done && streamed.text.length > 0);

  const again = await complete(server, { prompt: story });
  assert.ok(again.usage.prompt_tokens_details.cached_tokens > 0);

  const tools = [{ type: "function", function: { name: "look", parameters: { type: "object", properties: { n: { enum: [1, 2] } }, required: ["n"] } } }];
  const called = await (await post(`${server.url}/v1/chat/completions`, {
    messages: [{ role: "user", content: "Look!" }], tools, tool_choice: "required", temperature: 0, max_tokens: 40,
  })).json();
  const [call] = called.choices[0].message.tool_calls;
  assert.equal(call.function.name, "look");
  assert.ok([1, 2].includes(JSON.parse(call.function.arguments).n));

  const leaving = new AbortController();
  const endless = await post(`${server.url}/v1/completions`, { prompt: story, stream: true, max_tokens: 800, ignore_eos: true }, { signal: leaving.signal });
  await endless.body.getReader().read();
  leaving.abort();
  await eventually("the sequence is gone", async () => (await metric(server.url, "braid_sequences_decoding")) === 0, 300);
});

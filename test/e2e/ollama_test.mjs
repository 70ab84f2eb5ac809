// The official ollama package against the embedded model.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Ollama } from "ollama";
import { serve } from "./support/processes.mjs";

const cleanups = [];
let server, client;

before(async () => {
  server = await serve({ after: (cleanup) => cleanups.push(cleanup) });
  client = new Ollama({ host: server.url });
});
after(async () => { for (const cleanup of cleanups) await cleanup(); });

const model = "braid-demo";
const messages = [{ role: "user", content: "What is 17 + 25?" }];
const exact = { temperature: 0, repeat_penalty: 1 };

function check_counts(last) {
  assert.equal(last.done, true);
  assert.equal(last.done_reason, "stop");
  assert.ok(last.prompt_eval_count > 0 && last.eval_count > 0);
  assert.ok(last.total_duration >= last.eval_duration && Number.isInteger(last.total_duration));
}

test("a whole chat", async () => {
  const answer = await client.chat({ model, messages, options: exact });
  assert.equal(answer.model, model);
  assert.equal(answer.message.role, "assistant");
  assert.equal(answer.message.content, "17 + 25 = 42.");
  check_counts(answer);
});

test("a streamed chat says the same", async () => {
  const parts = [];
  for await (const part of await client.chat({ model, messages, options: exact, stream: true })) parts.push(part);
  assert.ok(parts.length > 2);
  assert.equal(parts.map((part) => part.message.content).join(""), "17 + 25 = 42.");
  assert.ok(parts.slice(0, -1).every((part) => part.done === false));
  check_counts(parts.at(-1));
});

test("a prompt goes through the template, and a raw one does not", async () => {
  const prompt = messages[0].content;
  const answer = await client.generate({ model, prompt, options: exact });
  assert.equal(answer.response, "17 + 25 = 42.");
  const raw = await client.generate({ model, prompt: "Once upon a time", raw: true, options: { ...exact, num_predict: 4 } });
  assert.equal(raw.done_reason, "length");
  assert.equal(raw.eval_count, 4);
  assert.ok(raw.prompt_eval_count < answer.prompt_eval_count);
});

test("a format binds the answer", async () => {
  const format = { type: "object", properties: { answer: { type: "integer" } }, required: ["answer"], additionalProperties: false };
  const answer = await client.chat({ model, messages, format, options: exact });
  assert.equal(typeof JSON.parse(answer.message.content).answer, "number");
});

const tools = [{ type: "function", function: { name: "get_weather", description: "Get the current weather in a given location", parameters: {
  type: "object", properties: { location: { type: "string", description: "The city" } }, required: ["location"] } } }];

test("tools are called, and what they say is told", async () => {
  const asked = [{ role: "user", content: "What is the weather in Paris?" }];
  const { message } = await client.chat({ model, messages: asked, tools, options: exact });
  assert.deepEqual(message.tool_calls.map((call) => [call.function.name, call.function.arguments]), [["get_weather", { location: "Paris" }]]);
  const result = { role: "tool", tool_name: "get_weather", content: '{"temperature": 21, "condition": "sunny"}' };
  const answer = await client.chat({ model, messages: [...asked, message, result], tools, options: exact });
  assert.match(answer.message.content, /21 degrees/);
});

test("tokens come with their log-probabilities where these are wanted", async () => {
  const chat = await client.chat({ model, messages, options: exact, logprobs: true, top_logprobs: 2 });
  assert.equal(chat.logprobs.slice(0, -1).map((one) => one.token).join(""), "17 + 25 = 42.");  // the last one ends it
  for (const one of chat.logprobs) {
    assert.ok(one.logprob <= 0 && one.top_logprobs.length === 2 && one.top_logprobs[0].logprob >= one.logprob);
    assert.equal(Buffer.from(one.bytes).toString(), one.token);
  }
  const prompt = await client.generate({ model, prompt: messages[0].content, options: exact, logprobs: true });
  assert.deepEqual(prompt.logprobs.map((one) => one.token), chat.logprobs.map((one) => one.token));
});

test("thoughts, gaps and images are as the model can have them", async () => {
  const silent = await client.chat({ model, messages, think: false, options: exact });
  assert.equal(silent.message.content, "17 + 25 = 42.");
  await assert.rejects(client.generate({ model, prompt: "a", suffix: "b" }), { status_code: 400 });
  await assert.rejects(client.chat({ model, messages: [{ ...messages[0], images: [Buffer.from("none")] }] }), { status_code: 400 });
});

test("models are listed and shown", async () => {
  const { models } = await client.list();
  assert.deepEqual(models.map((listed) => listed.name), [model]);
  const shown = await client.show({ model });
  assert.ok(shown.capabilities.includes("completion"));
  assert.ok(shown.template.length > 0);
  assert.match((await client.version()).version, /^\d+\.\d+\.\d+$/);
});

test("loaded models are listed, and loading one is done at once", async () => {
  const { models: [loaded] } = await client.ps();
  assert.equal(loaded.name, model);
  assert.match(loaded.digest, /^[0-9a-f]{64}$/);
  assert.ok(loaded.size > 1e6);
  assert.equal(loaded.details.quantization_level, "Q8_0");
  assert.ok(new Date(loaded.expires_at) > new Date("2200-01-01"));
  assert.equal((await client.generate({ model, prompt: "" })).done_reason, "load");
  assert.equal((await client.chat({ model, messages: [], keep_alive: "10m" })).done_reason, "load");
  assert.equal(await (await fetch(server.url)).text(), "Ollama is running");
  assert.equal((await fetch(server.url, { method: "HEAD" })).status, 200);
});

test("texts become vectors of length 1, as at OpenAI's route", async () => {
  const input = ["The little fox", "ran home."];
  const { embeddings, prompt_eval_count } = await client.embed({ model, input });
  const answer = await fetch(`${server.url}/v1/embeddings`, { method: "POST", body: JSON.stringify({ input }) });
  const { data, usage } = await answer.json();
  assert.deepEqual(embeddings, data.map((one) => one.embedding));
  assert.equal(prompt_eval_count, usage.prompt_tokens);
  assert.deepEqual((await client.embeddings({ model, prompt: input[0] })).embedding, embeddings[0]);
  assert.deepEqual((await client.embed({ model, input: [] })).embeddings, []);
});

test("an unknown model is a 404", async () => {
  await assert.rejects(client.chat({ model: "none", messages }), { name: "ResponseError", status_code: 404 });
});

test("a client that goes ends its answer", async () => {
  const stream = await client.generate({ model, prompt: "Once upon a time", raw: true, stream: true, options: { num_predict: -1 } });
  let parts = 0;
  await assert.rejects(async () => {
    for await (const part of stream) if (part && ++parts === 3) stream.abort();
  }, { name: "AbortError" });
  const answer = await client.chat({ model, messages, options: exact });
  assert.equal(answer.message.content, "17 + 25 = 42.");
});

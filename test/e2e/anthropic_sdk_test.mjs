// Anthropic's official SDK against the embedded model.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import Anthropic from "@anthropic-ai/sdk";
import { serve } from "./support/processes.mjs";
import { frees_everything } from "./support/client.mjs";

const cleanups = [];
let server, client;

before(async () => {
  server = await serve({ after: (cleanup) => cleanups.push(cleanup) });
  client = new Anthropic({ baseURL: server.url, apiKey: "none", maxRetries: 0 });
});
after(async () => { for (const cleanup of cleanups) await cleanup(); });

const model = "braid-demo";
const body = { model, max_tokens: 200, temperature: 0 };
const weather = {
  name: "get_weather",
  description: "Get the current weather in a given location",
  input_schema: { type: "object", properties: { location: { type: "string", description: "The city" } }, required: ["location"] },
};

test("a message", async () => {
  const message = await client.messages.create({ ...body, messages: [{ role: "user", content: "What is 17 + 25?" }] });
  assert.equal(message.type, "message");
  assert.match(message._request_id, /^req-/);
  assert.deepEqual(message.content, [{ type: "text", text: "17 + 25 = 42.", citations: null }]);
  assert.equal(message.stop_reason, "end_turn");
  assert.ok(message.usage.input_tokens > 0 && message.usage.output_tokens > 0);
});

test("a streamed message says the same", async () => {
  const stream = client.messages.stream({ ...body, messages: [{ role: "user", content: [{ type: "text", text: "What is 17 + 25?" }] }] });
  let text = "";
  stream.on("text", (piece) => { text += piece; });
  const message = await stream.finalMessage();
  assert.equal(text, "17 + 25 = 42.");
  assert.equal(message.content[0].text, text);
  assert.equal(message.stop_reason, "end_turn");
});

test("a two-step agent loop", async () => {
  const messages = [{ role: "user", content: "What is the weather in Paris?" }];
  const first = await client.messages.create({ ...body, tools: [weather], messages });
  assert.equal(first.stop_reason, "tool_use");
  const call = first.content.find((block) => block.type === "tool_use");
  assert.equal(call.name, "get_weather");
  assert.deepEqual(call.input, { location: "Paris" });
  messages.push({ role: "assistant", content: first.content },
    { role: "user", content: [{ type: "tool_result", tool_use_id: call.id, content: '{"temperature": 21, "condition": "sunny"}' }] });
  const second = await client.messages.create({ ...body, tools: [weather], messages });
  assert.match(second.content.at(-1).text, /21 degrees/);
});

test("streamed tool input, and a forced tool", async () => {
  const options = { ...body, tools: [weather], messages: [{ role: "user", content: "What is the weather in Paris?" }] };
  const streamed = await client.messages.stream(options).finalMessage();
  assert.deepEqual(streamed.content.find((block) => block.type === "tool_use").input, { location: "Paris" });
  const forced = await client.messages.create(
    { ...options, messages: [{ role: "user", content: "Hello!" }], tool_choice: { type: "tool", name: "get_weather" } });
  assert.equal(forced.stop_reason, "tool_use");
  assert.equal(typeof forced.content.find((block) => block.type === "tool_use").input.location, "string");
});

test("system prompts, stop sequences and the limit", async () => {
  const stopped = await client.messages.create(
    { ...body, system: "You are a helpful assistant.", stop_sequences: ["="], messages: [{ role: "user", content: "What is 17 + 25?" }] });
  assert.equal(stopped.stop_reason, "stop_sequence");
  assert.equal(stopped.stop_sequence, "=");
  assert.equal(stopped.content[0].text, "17 + 25 ");
  const cut = await client.messages.create({ ...body, max_tokens: 2, messages: [{ role: "user", content: "Tell me a story." }] });
  assert.equal(cut.stop_reason, "max_tokens");
});

test("an answer that the client has begun is continued", async () => {
  const message = await client.messages.create(
    { ...body, messages: [{ role: "user", content: "What is 17 + 25?" }, { role: "assistant", content: "17 + 25 =" }] });
  assert.match(message.content[0].text, /^ 42/);
});

test("tokens are counted without an answer", async () => {
  const messages = [{ role: "user", content: "What is 17 + 25?" }];
  const count = await client.messages.countTokens({ model, messages });
  const message = await client.messages.create({ ...body, messages });
  assert.equal(count.input_tokens, message.usage.input_tokens + message.usage.cache_read_input_tokens);
});

test("errors have its envelope; an abort frees everything", async () => {
  await assert.rejects(client.messages.create({ ...body, temperature: 2, messages: [{ role: "user", content: "x" }] }),
    (error) => error.status === 400 && error.error.error.type === "invalid_request_error");
  const stream = client.messages.stream({ ...body, max_tokens: 1000, messages: [{ role: "user", content: "Tell me a story." }] });
  stream.on("text", () => stream.abort());
  await assert.rejects(stream.finalMessage());
  await frees_everything(server.url);
});

// OpenAI's Responses API with the official SDK on the embedded model.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import OpenAI from "openai";
import { serve } from "./support/processes.mjs";
import { frees_everything } from "./support/client.mjs";

const cleanups = [];
let server, client;

before(async () => {
  server = await serve({ after: (cleanup) => cleanups.push(cleanup) });
  client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: "none", maxRetries: 0 });
});
after(async () => { for (const cleanup of cleanups) await cleanup(); });

const model = "braid-demo";
const weather = {
  type: "function",
  name: "get_weather",
  description: "Get the current weather in a given location",
  parameters: { type: "object", properties: { location: { type: "string", description: "The city" } }, required: ["location"] },
  strict: false,
};

test("a response says what a chat says", async () => {
  const response = await client.responses.create({ model, input: "What is 17 + 25?", temperature: 0 });
  assert.equal(response.object, "response");
  assert.equal(response.status, "completed");
  assert.equal(response.output_text, "17 + 25 = 42.");
  assert.equal(response.usage.total_tokens, response.usage.input_tokens + response.usage.output_tokens);
});

test("a stream of events that the SDK gathers into the same response", async () => {
  const stream = client.responses.stream({ model, input: "What is 17 + 25?", temperature: 0 });
  const types = [];
  let last = -1;
  stream.on("event", (event) => {
    types.push(event.type);
    assert.equal(event.sequence_number, ++last);
  });
  const response = await stream.finalResponse();
  assert.equal(response.output_text, "17 + 25 = 42.");
  assert.deepEqual(types.filter((type) => type !== "response.output_text.delta"), [
    "response.created", "response.in_progress", "response.output_item.added", "response.content_part.added",
    "response.output_text.done", "response.content_part.done", "response.output_item.done", "response.completed"]);
});

test("a conversation by previous_response_id, read and deleted", async () => {
  const first = await client.responses.create({ model, input: "My name is Mira.", temperature: 0 });
  const second = await client.responses.create(
    { model, input: "What is my name?", previous_response_id: first.id, temperature: 0 });
  assert.match(second.output_text, /Mira/);
  assert.equal(second.previous_response_id, first.id);
  assert.equal((await client.responses.retrieve(first.id)).output_text, first.output_text);
  assert.equal((await client.responses.inputItems.list(second.id)).data.length, 1);
  await client.responses.delete(first.id);
  await assert.rejects(client.responses.retrieve(first.id), (error) => error.status === 404);
});

test("a two-step agent loop", async () => {
  const input = [{ role: "user", content: "What is the weather in Paris?" }];
  const body = { model, tools: [weather], temperature: 0 };
  const first = await client.responses.create({ ...body, input });
  const call = first.output.find((item) => item.type === "function_call");
  assert.equal(call.name, "get_weather");
  assert.deepEqual(JSON.parse(call.arguments), { location: "Paris" });
  input.push(...first.output, { type: "function_call_output", call_id: call.call_id, output: '{"temperature": 21, "condition": "sunny"}' });
  const second = await client.responses.create({ ...body, input });
  assert.match(second.output_text, /21 degrees/);
});

test("streamed calls carry their arguments", async () => {
  const stream = await client.responses.create({ model, input: "What is the weather in Paris?", tools: [weather], temperature: 0, stream: true });
  let text = "";
  let done;
  for await (const event of stream) {
    if (event.type === "response.function_call_arguments.delta") text += event.delta;
    if (event.type === "response.function_call_arguments.done") done = event;
  }
  assert.deepEqual(JSON.parse(text), { location: "Paris" });
  assert.equal(done.arguments, text);
});

test("structured output", async () => {
  const schema = { type: "object", properties: { sum: { type: "integer" } }, required: ["sum"], additionalProperties: false };
  const response = await client.responses.create(
    { model, input: "What is 17 + 25? Answer in JSON.", temperature: 0, text: { format: { type: "json_schema", name: "sum", schema, strict: true } } });
  assert.equal(typeof JSON.parse(response.output_text).sum, "number");
});

test("too few tokens make it incomplete", async () => {
  const response = await client.responses.create({ model, input: "Tell me a story.", max_output_tokens: 3 });
  assert.equal(response.status, "incomplete");
  assert.equal(response.incomplete_details.reason, "max_output_tokens");
});

test("errors have their status and field; an abort frees everything", async () => {
  await assert.rejects(client.responses.create({ model, input: "x", temperature: 9 }),
    (error) => error.status === 400 && error.param === "temperature");
  await assert.rejects(client.responses.create({ model: "gpt-9", input: "x" }), (error) => error.status === 404);
  const stream = await client.responses.create({ model, input: "Tell me a story about a brave fox.", stream: true });
  for await (const event of stream) if (event.type === "response.output_text.delta") break;
  stream.controller.abort();
  await frees_everything(server.url);
});

// What Open Responses' ResponseResource requires, whose suite sends these.
const required = ["id", "object", "created_at", "completed_at", "status", "incomplete_details", "model", "previous_response_id", "instructions",
  "output", "error", "tools", "tool_choice", "truncation", "parallel_tool_calls", "text", "top_p", "presence_penalty", "frequency_penalty",
  "top_logprobs", "temperature", "reasoning", "user", "usage", "max_output_tokens", "max_tool_calls", "store", "background", "service_tier",
  "metadata", "safety_identifier", "prompt_cache_key"];

test("every member that the schema requires is there, streamed and not", async () => {
  const message = (role, content) => ({ type: "message", role, content });
  const inputs = [
    [message("user", "Say hello in exactly 3 words.")],
    [message("system", "You are a pirate. Always respond in pirate speak."), message("user", "Say hello.")],
    [message("user", "My name is Alice."), message("assistant", "Hello Alice! Nice to meet you."), message("user", "What is my name?")],
    [message("user", "What's the weather like in San Francisco?")],
  ];
  for (const input of inputs) for (const stream of [false, true]) {
    const { strict, ...tool } = weather;
    const body = { model, input, temperature: 0, ...(input === inputs[3] ? { tools: [tool] } : {}) };
    const response = stream ? await client.responses.stream(body).finalResponse() : await client.responses.create(body);
    assert.deepEqual(required.filter((name) => !Object.hasOwn(response, name)), []);
    assert.equal(response.status, "completed");
    assert.match(response.id, /^resp_/);
    assert.ok(response.output.length > 0);
    for (const { type, name, description, parameters, strict: kept } of response.tools)
      assert.deepEqual([type, name, typeof description, typeof parameters, kept], ["function", "get_weather", "string", "object", false]);
    if (input === inputs[3]) assert.ok(response.output.some((item) => item.type === "function_call"));
  }
});

// The official OpenAI SDK against the embedded model.
import assert from "node:assert/strict";
import { before, after, test } from "node:test";
import OpenAI from "openai";
import { serve } from "./support/processes.mjs";
import { frees_everything, story } from "./support/client.mjs";

const cleanups = [];
let server, client;

before(async () => {
  server = await serve({ after: (cleanup) => cleanups.push(cleanup) });
  client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: "none", maxRetries: 0 });
});
after(async () => { for (const cleanup of cleanups) await cleanup(); });

const question = [{ role: "user", content: "What is 17 + 25?" }];

test("a chat answer", async () => {
  const answer = await client.chat.completions.create({ model: "braid-demo", messages: question, temperature: 0 });
  assert.equal(answer.object, "chat.completion");
  assert.equal(answer.model, "braid-demo");
  assert.equal(answer.choices.length, 1);
  assert.equal(answer.choices[0].message.role, "assistant");
  assert.equal(answer.choices[0].message.content, "17 + 25 = 42.");
  assert.equal(answer.choices[0].finish_reason, "stop");
  assert.equal(answer.usage.total_tokens, answer.usage.prompt_tokens + answer.usage.completion_tokens);
});

test("content parts are joined", async () => {
  const parts = [{ type: "text", text: "What is " }, { type: "text", text: "17 + 25?" }];
  const answer = await client.chat.completions.create({ model: "", messages: [{ role: "user", content: parts }], temperature: 0 });
  assert.equal(answer.choices[0].message.content, "17 + 25 = 42.");
});

test("a streamed chat says the same, with usage at the end", async () => {
  const whole = await client.chat.completions.create({ model: "default", messages: question, temperature: 0 });
  const stream = await client.chat.completions.create(
    { model: "default", messages: question, temperature: 0, stream: true, stream_options: { include_usage: true } });
  const chunks = [];
  for await (const chunk of stream) chunks.push(chunk);
  assert.equal(chunks[0].choices[0].delta.role, "assistant");
  assert.ok(chunks.every((chunk) => chunk.object === "chat.completion.chunk" && chunk.id === chunks[0].id));
  assert.equal(chunks.map((chunk) => chunk.choices[0]?.delta.content ?? "").join(""), whole.choices[0].message.content);
  const reasons = chunks.flatMap((chunk) => chunk.choices.map((choice) => choice.finish_reason));
  assert.deepEqual(reasons.filter((reason) => reason !== null), ["stop"]);
  assert.deepEqual(chunks.at(-1).choices, []);
  assert.equal(chunks.at(-1).usage.completion_tokens, whole.usage.completion_tokens);
});

test("completions of a text, of token ids, of several prompts", async () => {
  const one = await client.completions.create({ model: "braid-demo", prompt: "Once upon a time", max_tokens: 8, temperature: 0 });
  assert.equal(one.object, "text_completion");
  assert.equal(one.usage.completion_tokens, 8);
  assert.equal(one.choices[0].finish_reason, "length");
  const ids = await client.completions.create(
    { model: "braid-demo", prompt: [1, 314, 206], max_tokens: 4, temperature: 0, return_token_ids: true });
  assert.equal(ids.choices[0].token_ids.length, 4);
  const two = await client.completions.create(
    { model: "braid-demo", prompt: ["Once upon a time", "The little robot"], max_tokens: 8, temperature: 0 });
  assert.deepEqual(two.choices.map((choice) => choice.index), [0, 1]);
  assert.equal(two.choices[0].text, one.choices[0].text);
});

test("a streamed completion", async () => {
  const body = { model: "braid-demo", prompt: "Once upon a time", max_tokens: 24, temperature: 0 };
  const whole = await client.completions.create(body);
  let text = "", last;
  for await (const chunk of await client.completions.create({ ...body, stream: true })) {
    text += chunk.choices[0]?.text ?? "";
    last = chunk;
  }
  assert.equal(text, whole.choices[0].text);
  assert.equal(last.choices[0].finish_reason, "length");
});

test("a seed makes a sampled answer repeatable", async () => {
  const body = { model: "braid-demo", prompt: "Once upon a time", max_tokens: 24, temperature: 1, seed: 7 };
  const first = await client.completions.create(body);
  const second = await client.completions.create(body);
  const other = await client.completions.create({ ...body, seed: 8 });
  assert.equal(first.choices[0].text, second.choices[0].text);
  assert.notEqual(first.choices[0].text, other.choices[0].text);
});

test("stop strings end an answer and stay out of it", async () => {
  const answer = await client.chat.completions.create({ model: "braid-demo", messages: question, temperature: 0, stop: ["= 4"] });
  assert.equal(answer.choices[0].message.content, "17 + 25 ");
  assert.equal(answer.choices[0].finish_reason, "stop");
});

test("log-probabilities in both forms", async () => {
  const chat = await client.chat.completions.create(
    { model: "braid-demo", messages: question, temperature: 0, logprobs: true, top_logprobs: 3 });
  const { content } = chat.choices[0].logprobs;
  assert.ok(content.length > 3);
  for (const token of content) {
    assert.ok(token.logprob <= 0 && token.top_logprobs.length === 3);
    assert.equal(token.top_logprobs[0].token, token.token);
    assert.deepEqual(Buffer.from(token.bytes).toString(), token.token);
  }
  const text = await client.completions.create(
    { model: "braid-demo", prompt: "Once upon a time", max_tokens: 6, temperature: 0, logprobs: 2 });
  const { tokens, token_logprobs, top_logprobs, text_offset } = text.choices[0].logprobs;
  assert.deepEqual([tokens.length, token_logprobs.length, top_logprobs.length, text_offset.length], [6, 6, 6, 6]);
  assert.equal(tokens.join(""), text.choices[0].text);
});

test("the list of models", async () => {
  const models = (await client.models.list()).data;
  assert.deepEqual(models.map((model) => model.id), ["braid-demo"]);
  assert.equal((await client.models.retrieve("braid-demo")).id, "braid-demo");
});

test("errors have OpenAI's classes and name the parameter", async () => {
  const ask = (body) => client.chat.completions.create({ model: "braid-demo", messages: question, ...body });
  await assert.rejects(ask({ model: "gpt-4o" }), (e) => e instanceof OpenAI.NotFoundError && e.code === "model_not_found");
  await assert.rejects(ask({ temperature: "hot" }), (e) => e instanceof OpenAI.BadRequestError && e.param === "temperature");
  await assert.rejects(ask({ messages: [{ role: "user" }] }),
    (e) => e instanceof OpenAI.BadRequestError && e.param.startsWith("messages"));
  await assert.rejects(ask({ top_p: 2 }), (e) => e instanceof OpenAI.BadRequestError && e.param === "top_p");
  await assert.rejects(client.completions.create({ model: "braid-demo", prompt: "word ".repeat(3000) }),
    (e) => e instanceof OpenAI.BadRequestError && /1024/.test(e.message));
});

test("an aborted stream stops the work", async () => {
  const stream = await client.chat.completions.create(
    { model: "braid-demo", messages: [{ role: "user", content: story }], stream: true, max_tokens: 900, ignore_eos: true });
  let chunks = 0;
  for await (const chunk of stream) {
    assert.ok(chunk);
    if (++chunks === 3) break;  // the SDK aborts the request
  }
  await frees_everything(server.url);
});

// Parameters through the official OpenAI SDK against the embedded model.
import assert from "node:assert/strict";
import { before, after, test } from "node:test";
import Ajv2020 from "ajv/dist/2020.js";
import OpenAI from "openai";
import { serve } from "./support/processes.mjs";
import { events, frees_everything, post, story } from "./support/client.mjs";

const cleanups = [];
let server, client;

before(async () => {
  server = await serve({ after: (cleanup) => cleanups.push(cleanup) });
  client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: "none", maxRetries: 0 });
});
after(async () => { for (const cleanup of cleanups) await cleanup(); });

const model = "braid-demo";
const question = [{ role: "user", content: "What is 17 + 25?" }];
const ask = async (path, body) => (await post(server.url + path, body)).json();

test("three choices share a prompt and repeat with a seed", async () => {
  const body = { model, messages: [{ role: "user", content: story }], n: 3, seed: 3, temperature: 1, max_tokens: 24 };
  const first = await client.chat.completions.create(body);
  assert.deepEqual(first.choices.map((choice) => choice.index), [0, 1, 2]);
  const texts = first.choices.map((choice) => choice.message.content);
  assert.equal(new Set(texts).size, 3);
  assert.equal(first.usage.completion_tokens, 72);
  const single = await client.chat.completions.create({ ...body, n: 1 });
  assert.equal(single.usage.prompt_tokens, first.usage.prompt_tokens);
  assert.equal(single.choices[0].message.content, texts[0]);
  const again = await client.chat.completions.create(body);
  assert.deepEqual(again.choices.map((choice) => choice.message.content), texts);

  const streamed = ["", "", ""];
  for await (const chunk of await client.chat.completions.create({ ...body, stream: true }))
    for (const choice of chunk.choices) streamed[choice.index] += choice.delta.content ?? "";
  assert.deepEqual(streamed, texts);
});

test("the best of several is the likeliest", async () => {
  const body = { model, prompt: "Once upon a time", max_tokens: 12, seed: 5, temperature: 1, logprobs: 0 };
  const mean = (choice) => choice.logprobs.token_logprobs.reduce((sum, value) => sum + value, 0) / choice.logprobs.tokens.length;
  const all = await client.completions.create({ ...body, n: 5 });
  const best = await client.completions.create({ ...body, n: 2, best_of: 5 });
  const expected = [...all.choices].sort((a, b) => mean(b) - mean(a)).slice(0, 2).map((choice) => choice.text);
  assert.deepEqual(best.choices.map((choice) => choice.text), expected);
});

test("an echo scores the prompt", async () => {
  const prompt = "Once upon a time";
  const answer = await client.completions.create({ model, prompt, echo: true, logprobs: 2, max_tokens: 0 });
  const { tokens, token_logprobs, top_logprobs, text_offset } = answer.choices[0].logprobs;
  assert.equal(answer.choices[0].text, prompt);
  assert.equal(answer.choices[0].finish_reason, "length");
  assert.equal(answer.usage.completion_tokens, 0);
  assert.equal(tokens.join(""), prompt);
  assert.equal(token_logprobs[0], null);
  assert.ok(token_logprobs.slice(1).every((value) => value < 0));
  assert.ok(top_logprobs.slice(1).every((top) => Object.keys(top).length >= 2));
  text_offset.forEach((offset, i) => assert.ok(prompt.slice(offset).startsWith(tokens[i])));

  const longer = await client.completions.create({ model, prompt, echo: true, logprobs: 0, max_tokens: 4, temperature: 0 });
  assert.equal(longer.choices[0].logprobs.tokens.length, tokens.length + 4);
  assert.deepEqual(longer.choices[0].logprobs.token_logprobs.slice(0, tokens.length), token_logprobs);
  assert.ok(longer.choices[0].text.startsWith(prompt));

  const prompt_logprobs = (await client.completions.create({ model, prompt, prompt_logprobs: 0, max_tokens: 1 })).choices[0].prompt_logprobs;
  assert.deepEqual(prompt_logprobs.slice(1).map((entry) => Object.values(entry)[0].logprob), token_logprobs.slice(1));

  const score = await ask("/v1/perplexity", { input: prompt });
  const nll = -token_logprobs.slice(1).reduce((sum, value) => sum + value, 0) / (tokens.length - 1);
  assert.ok(Math.abs(score.nll_mean - nll) < 1e-6 && Math.abs(score.perplexity - Math.exp(nll)) < 1e-4);
  assert.equal(score.tokens, tokens.length - 1);
});

test("no tokens are an empty answer", async () => {
  const answer = await client.chat.completions.create({ model, messages: question, max_tokens: 0 });
  assert.equal(answer.choices[0].message.content, "");
  assert.equal(answer.choices[0].finish_reason, "length");
  assert.equal(answer.usage.completion_tokens, 0);
});

test("penalties, biases and extensions change the answer", async () => {
  const body = { model, prompt: "Once upon a time", max_tokens: 24, temperature: 0 };
  const plain = (await client.completions.create({ ...body, return_token_ids: true })).choices[0];
  const text = async (more) => (await client.completions.create({ ...body, ...more })).choices[0].text;
  assert.ok(!(await text({ logit_bias: { [plain.token_ids[0]]: -100 } })).startsWith(plain.text.slice(0, 4)));
  assert.notEqual(await text({ repetition_penalty: 2 }), plain.text);
  assert.equal(await text({ typical_p: 1, top_n_sigma: -1, xtc_probability: 0, dry_multiplier: 0, mirostat: 0 }), plain.text);
  assert.ok((await text({ temperature: 1, mirostat: 2, dry_multiplier: 0.8, xtc_probability: 0.5, seed: 1 })).length > 0);
});

test("a share of nothing is the most probable token, also as the server's default", async (t) => {
  const body = { prompt: "Once upon a time", max_tokens: 24, seed: 4 };
  const text_of = async (url, more) => (await (await post(`${url}/v1/completions`, { ...body, ...more })).json()).choices[0].text;
  const greedy = await text_of(server.url, { temperature: 0 });
  assert.notEqual(await text_of(server.url, { temperature: 1.5 }), greedy);
  assert.equal(await text_of(server.url, { temperature: 1.5, top_p: 0 }), greedy);
  const other = await serve(t, ["--top-p", "0", "--temperature", "1.5"]);
  assert.equal(await text_of(other.url, {}), greedy);
  assert.notEqual(await text_of(other.url, { top_p: 1 }), greedy);
});

test("usage all along, and timings", async () => {
  const counts = [];
  let timings;
  for await (const chunk of await client.chat.completions.create(
    { model, messages: question, temperature: 0, stream: true, timings_per_token: true,
      stream_options: { include_usage: true, continuous_usage_stats: true } })) {
    counts.push(chunk.usage.completion_tokens);
    timings = chunk.timings;
  }
  assert.deepEqual(counts, [...counts].sort((a, b) => a - b));
  assert.equal(timings.predicted_n, counts.at(-1));
  assert.ok(timings.prompt_ms > 0 && timings.predicted_ms > 0 && timings.predicted_per_second > 0);
});

test("stop strings may stay, and wait for min_tokens", async () => {
  const content = async (more) =>
    (await client.chat.completions.create({ model, messages: question, temperature: 0, stop: ["+"], ...more })).choices[0].message.content;
  assert.equal(await content({}), "17 ");
  assert.equal(await content({ include_stop_str_in_output: true }), "17 +");
  assert.equal(await content({ min_tokens: 8 }), "17 + 25 = 42.");
});

test("equal fingerprints and seeds mean equal bytes", async () => {
  const body = { model, messages: question, temperature: 1, seed: 11 };
  const [first, second] = [await client.chat.completions.create(body), await client.chat.completions.create(body)];
  assert.ok(first.system_fingerprint);
  assert.equal(first.system_fingerprint, second.system_fingerprint);
  assert.equal(first.choices[0].message.content, second.choices[0].message.content);
});

const schemas = {
  person: { type: "object", additionalProperties: false, required: ["name", "age"],
    properties: { name: { type: "string", maxLength: 20 }, age: { type: "integer", minimum: 0, maximum: 120 } } },
  list: { type: "array", minItems: 1, maxItems: 3, items: { enum: ["red", "green", "blue"] } },
};

test("structured output parses and validates", async () => {
  const ajv = new Ajv2020();
  for (const [name, schema] of Object.entries(schemas)) {
    const valid = ajv.compile(schema);
    for (const format of [
      { response_format: { type: "json_schema", json_schema: { name, strict: true, schema } } }, { guided_json: schema }]) {
      const answer = await client.chat.completions.create(
        { model, messages: [{ role: "user", content: "Give me a JSON answer." }], temperature: 1, seed: 2, max_tokens: 200, n: 2, ...format });
      for (const choice of answer.choices) {
        assert.equal(choice.finish_reason, "stop");
        assert.ok(valid(JSON.parse(choice.message.content)), choice.message.content);
      }
    }
  }
  const content = async (more) =>
    (await client.chat.completions.create({ model, messages: question, temperature: 1, seed: 4, max_tokens: 100, ...more })).choices[0].message.content;
  assert.match(await content({ guided_regex: "[0-9]{3}-[a-z]{2}" }), /^[0-9]{3}-[a-z]{2}$/);
  assert.ok(["yes", "no"].includes(await content({ guided_choice: ["yes", "no"] })));
  assert.match(await content({ grammar: 'root ::= "a" [0-9]+ "!"' }), /^a[0-9]+!$/);
});

test("a strict schema that cannot be honoured is refused with its path", async () => {
  const schema = { type: "object", properties: { a: { type: "string", pattern: "(a)\\1" } } };
  await assert.rejects(
    client.chat.completions.create(
      { model, messages: question, response_format: { type: "json_schema", json_schema: { name: "x", strict: true, schema } } }),
    (e) => e instanceof OpenAI.BadRequestError && e.param.startsWith("response_format.json_schema.schema"));
});

test("parameters out of range are refused by name", async () => {
  for (const [name, value] of Object.entries({ n: 129, presence_penalty: 3, top_n_sigma: -2, best_of: 21, suffix: "x", priority: 101 }))
    await assert.rejects(client.completions.create({ model, prompt: "a", [name]: value }),
      (e) => e instanceof OpenAI.BadRequestError && e.param === name, name);
});

test("texts become tokens and come back", async () => {
  const content = "Tom the fox, 😀 and a kite";
  const { tokens, count } = await ask("/tokenize", { content });
  assert.equal(tokens.length, count);
  assert.deepEqual(await ask("/detokenize", { tokens }), { content });
  const { prompt } = await ask("/apply-template", { messages: question });
  assert.match(prompt, /What is 17 \+ 25\?/);
  assert.deepEqual((await ask("/tokenize", { messages: question })).tokens, (await ask("/tokenize", { content: prompt })).tokens);
});

test("an answer is aborted by its id", async () => {
  const stream = events(await post(`${server.url}/v1/completions`,
    { prompt: "Once upon a time", n: 2, stream: true, max_tokens: 900, ignore_eos: true }));
  const { id } = (await stream.next()).value;
  const slots = (await (await fetch(`${server.url}/slots`)).json()).filter((slot) => slot.request);
  assert.deepEqual(slots.map((slot) => slot.request).sort(), [`${id}/0`, `${id}/1`]);
  assert.deepEqual(await ask("/v1/abort", { id }), { id, object: "abort", aborted: true });
  let last;
  for await (const event of stream) last = event;
  assert.equal(last.error.code, "cancelled");
  assert.equal((await post(`${server.url}/v1/abort`, { id })).status, 404);
  await frees_everything(server.url);
});

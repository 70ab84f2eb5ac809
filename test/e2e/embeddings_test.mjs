// Embeddings of the embedded model through the official OpenAI SDK.
import assert from "node:assert/strict";
import { test } from "node:test";
import OpenAI from "openai";
import { serve } from "./support/processes.mjs";

const texts = ["The little fox ran home.", "A small fox went to its den.", "17 + 25 = 42"];
const dot = (one, other) => one.reduce((sum, value, i) => sum + value * other[i], 0);

async function start(t, ...options) {
  const server = await serve(t, options);
  return new OpenAI({ baseURL: `${server.url}/v1`, apiKey: "none", maxRetries: 0 });
}

async function embed(client, input, encoding_format) {
  const answer = await client.embeddings.create({ model: "braid-demo", input, ...(encoding_format && { encoding_format }) });
  assert.equal(answer.model, "braid-demo");
  assert.ok(answer.usage.prompt_tokens > 0 && answer.usage.total_tokens === answer.usage.prompt_tokens);
  return answer.data.map((item, i) => { assert.equal(item.index, i); return item.embedding; });
}

test("vectors have the length one and are the same in both forms, alone and together", async (t) => {
  const client = await start(t);
  const together = await embed(client, texts);  // the SDK asks for base64
  const floats = await embed(client, texts, "float");
  for (const [i, vector] of together.entries()) {
    assert.ok(Math.abs(dot(vector, vector) - 1) < 1e-5);
    assert.deepEqual(Float32Array.from(floats[i]), Float32Array.from(vector));
    assert.deepEqual((await embed(client, texts[i]))[0], vector);
  }
});

test("token ids are what the text becomes", async (t) => {
  const client = await start(t);
  const { tokens } = await client.post("/tokenize", { body: { prompt: texts[0] } });
  assert.deepEqual(await embed(client, [tokens]), await embed(client, texts[0]));
});

test("each pooling gives another vector", async (t) => {
  const vectors = [];
  for (const pooling of ["last", "mean", "cls"]) vectors.push((await embed(await start(t, "--pooling", pooling), texts[0]))[0]);
  for (const [i, one] of vectors.entries())
    for (const other of vectors.slice(i + 1)) assert.ok(dot(one, other) < 0.999);
});

// What transformers computes, over HTTP: the demo model's greedy answers, a small model's vectors. Needs BRAID_TEST_DATA.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { serve } from "./support/processes.mjs";
import { post } from "./support/client.mjs";

const data = process.env.BRAID_TEST_DATA;
if (!data) console.log("skipped: BRAID_TEST_DATA is not set");

test("greedy chat answers equal the reference", { skip: !data }, async (t) => {
  const reference = JSON.parse(readFileSync(path.join(data, "models/demo-reference.json"), "utf8")).q8_0;
  const server = await serve(t);
  const parted = [];
  const ask = async (route, body) => (await post(`${server.url}/v1/${route}`, { temperature: 0, return_token_ids: true, ...body })).json();
  for (const { messages, tools, prompt_ids, greedy_ids } of reference) {
    const max_tokens = greedy_ids.length;
    const completion = await ask("completions", { prompt: prompt_ids, max_tokens });
    if (JSON.stringify(completion.choices[0].token_ids) !== JSON.stringify(greedy_ids)) parted.push(messages.at(-1).content);
    if (tools) continue;  // not a parameter of the chat route yet
    const chat = await ask("chat/completions", { messages, max_tokens });
    assert.equal(chat.usage.prompt_tokens, prompt_ids.length, "the rendered prompt has as many tokens");
    assert.deepEqual(chat.choices[0].token_ids, completion.choices[0].token_ids);
  }
  // 8-bit activations may part at the story's near tie (margin 0.005 at its token 13).
  assert.ok(parted.every((content) => /brave fox/.test(content)), parted.join("\n"));
});

test("vectors of a prompt equal the reference, by each pooling", { skip: !data }, async (t) => {
  const file = new URL("../model/reference/embeddings_stories260K.json", import.meta.url);
  const reference = JSON.parse(readFileSync(file, "utf8"));
  for (const pooling of ["last", "mean", "cls"]) {
    const server = await serve(t, [path.join(data, "models/stories260K-hf"), "--kv-dtype", "f32", "--pooling", pooling]);
    const answer = await (await post(`${server.url}/v1/embeddings`, { input: [reference.ids] })).json();
    const length = Math.hypot(...reference[pooling]);
    for (const [i, value] of answer.data[0].embedding.entries())
      assert.ok(Math.abs(value - reference[pooling][i] / length) < 2e-4, `${pooling}, number ${i}: ${value}`);
  }
});

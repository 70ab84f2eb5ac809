// The demo model's greedy answers by transformers, over HTTP. Needs BRAID_TEST_DATA.
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
  for (const { messages, tools, prompt_ids, greedy_ids } of reference) {
    const body = { messages, temperature: 0, max_tokens: greedy_ids.length, return_token_ids: true, ...(tools ? { tools } : {}) };
    const chat = await (await post(`${server.url}/v1/chat/completions`, body)).json();
    const completion = await (await post(`${server.url}/v1/completions`,
      { prompt: prompt_ids, temperature: 0, max_tokens: greedy_ids.length, return_token_ids: true })).json();
    assert.equal(chat.error, undefined, JSON.stringify(chat.error));
    assert.equal(chat.usage.prompt_tokens, prompt_ids.length, "the rendered prompt has as many tokens");
    assert.deepEqual(chat.choices[0].token_ids, completion.choices[0].token_ids);
    if (JSON.stringify(chat.choices[0].token_ids) !== JSON.stringify(greedy_ids)) parted.push(messages.at(-1).content);
  }
  // 8-bit activations may part at the story's near tie (margin 0.005 at its token 13).
  assert.ok(parted.every((content) => /brave fox/.test(content)), parted.join("\n"));
});

// A warm answer is the cold answer, byte for byte, and says how much of its prompt was already there.
import assert from "node:assert/strict";
import { test } from "node:test";
import { serve } from "./support/processes.mjs";
import { metric, post } from "./support/client.mjs";
import { recurrentModel } from "./support/recurrent_model.mjs";

const story = "Once upon a time, a brave fox named Luna lived in the castle. She loved her kite more than anything. ".repeat(4);
const wish = (ending, more = {}) => ({
  prompt: story + ending, max_tokens: 24, temperature: 0.8, seed: 7, ignore_eos: true, logprobs: 3, return_token_ids: true, ...more,
});

async function ask(server, body) {
  const answer = await (await post(`${server.url}/v1/completions`, body)).json();
  return { choices: answer.choices, cached: answer.usage.prompt_tokens_details.cached_tokens, prompt: answer.usage.prompt_tokens };
}

test("warm answers equal cold ones", async (t) => {
  const cold = await serve(t, ["--prefix-cache", "off"]);
  const warm = await serve(t, []);
  for (const ending of ["One morning,", "One morning,", "The end of", "One day", "The end of"]) {
    const expected = await ask(cold, wish(ending));
    assert.equal(expected.cached, 0);
    assert.deepEqual((await ask(warm, wish(ending))).choices, expected.choices, ending);
  }
  const again = await ask(warm, wish("One day"));
  assert.ok(again.cached > 0 && again.cached < again.prompt, `${again.cached} of ${again.prompt} tokens cached`);
  assert.equal(again.cached, again.prompt - 1, "all but the last token");
  assert.ok((await metric(warm.url, "braid_prefix_cache_hit_tokens_total")) > 0);
  assert.equal(await metric(cold.url, "braid_prefix_cache_hit_tokens_total"), 0);
});

test("another cache_salt shares nothing", async (t) => {
  const server = await serve(t, []);
  const first = await ask(server, wish("One day", { cache_salt: "a" }));
  const other = await ask(server, wish("One day", { cache_salt: "b" }));
  const same = await ask(server, wish("One day", { cache_salt: "a" }));
  assert.deepEqual([first.cached, other.cached], [0, 0]);
  assert.ok(same.cached > 0);
  assert.deepEqual(other.choices, first.choices);
  assert.deepEqual(same.choices, first.choices);
});

// Of such a model a beginning is of use only where its state was kept: without marks behind the last eight turns.
test("a marked message of a model with recurrent layers is found again, however far back it is", async (t) => {
  const template = "{% for message in messages %}{{ message.content }}</s>{% endfor %}";
  const model = recurrentModel(t, "lfm2", { template });
  const server = await serve(t, [model, "--no-warmup", "--kv-memory", "64M", "--state-checkpoints", "0"]);
  const mark = { cache_control: { type: "ephemeral" } };
  const text = (words, more) => [{ type: "text", text: words, ...more }];
  const turns = (first) => Array.from({ length: 13 }, (_, turn) => ({ role: turn % 2 ? "assistant" : "user", content: `${first}${turn}` }));
  const asked = {
    "/v1/messages": async (system, first, more) => {
      const answer = await (await post(`${server.url}/v1/messages`, { max_tokens: 2, system: text(system, more), messages: turns(first) })).json();
      return answer.usage.cache_read_input_tokens;
    },
    "/v1/chat/completions": async (system, first, more) => {
      const messages = [{ role: "system", content: text(system, more) }, ...turns(first)];
      const answer = await (await post(`${server.url}/v1/chat/completions`, { max_tokens: 2, messages })).json();
      return answer.usage.prompt_tokens_details.cached_tokens;
    },
  };
  for (const [route, cached] of Object.entries(asked)) {
    const system = `You are a fox at ${route}.`;
    assert.equal(await cached(system, "a", mark), 0);
    assert.equal(await cached(system, "b", mark), system.length + 1, route);
    const other = `Nobody marked ${route}.`;
    assert.equal(await cached(other, "a"), 0);
    assert.equal(await cached(other, "b"), 0, route);
  }
});
